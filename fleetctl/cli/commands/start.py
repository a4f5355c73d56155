"""Commands that need nothing: version, explain, schema, completion."""

from __future__ import annotations

import platform

import click

import fleetctl
from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit, write
from fleetctl.cli.reference import code_named, schema_names, schema_text
from fleetctl.render.diagnostics import explanation, explanation_json
from fleetctl.render.document import Items, Verdict

_SHELLS = ("bash", "zsh", "fish")


@command("version")
def version(settings: Settings) -> None:
    """Print the version.

    \b
    Example:
      fleetctl version
    """
    emit(
        settings,
        lambda: [Verdict(f"fleetctl {fleetctl.__version__}")],
        lambda: {"result": "ok", "version": fleetctl.__version__, "python": platform.python_version()},
    )


@command("explain")
@click.argument("code")
def explain(settings: Settings, code: str) -> None:
    """Say what a diagnostic CODE means, when it is reported, and with which exit code.

    \b
    Example:
      fleetctl explain stale-plan
    """
    found = code_named(code)
    emit(settings, lambda: explanation(found), lambda: explanation_json(found))


@command("schema")
@click.argument("kind", required=False)
def schema(settings: Settings, kind: str | None) -> None:
    """Print the JSON schema of a KIND of document as it is, or list the kinds.

    \b
    Example:
      fleetctl schema fleet > fleet.schema.json
    """
    if kind is not None:
        write(schema_text(kind))
        return
    names = schema_names()
    emit(settings, lambda: [Items([(name, None) for name in names])], lambda: {"result": "ok", "schemas": names})


@command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(_settings: Settings, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      source <(fleetctl completion bash)
    """
    from click.shell_completion import get_completion_class

    from fleetctl.cli.main import COMPLETE, cli

    kind = get_completion_class(shell)
    assert kind is not None, shell
    write(f"{kind(cli, {}, 'fleetctl', COMPLETE).source()}\n")
