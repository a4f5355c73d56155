"""The tree of commands, and `main`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from fleetctl import __version__
from fleetctl.cli.command import common_options
from fleetctl.cli.failures import prepare_streams, report, wants
from fleetctl.cli.lazy import Entry, LazyGroup
from fleetctl.cli.output import unwritten, write

_COMMANDS = "fleetctl.cli.commands"
COMPLETE = "_FLEETCTL_COMPLETE"

ENTRIES: Mapping[str, Entry] = {
    "init": Entry(f"{_COMMANDS}.init:init", "Make an engine, its keys, a witness, and files to begin with.", "Start"),
    "doctor": Entry(f"{_COMMANDS}.doctor:doctor", "Look at everything about an engine.", "Start"),
    "explain": Entry(f"{_COMMANDS}.start:explain", "Say what a diagnostic code means.", "Start"),
    "schema": Entry(f"{_COMMANDS}.start:schema", "Print a JSON schema, or list them.", "Start"),
    "completion": Entry(f"{_COMMANDS}.start:completion", "Print a shell's completion script.", "Start"),
    "version": Entry(f"{_COMMANDS}.start:version", "Print the version.", "Start"),
    "validate": Entry(f"{_COMMANDS}.files:validate", "Check fleet files, offline.", "Fleet files"),
    "fmt": Entry(f"{_COMMANDS}.files:fmt", "Put fleet files in one form.", "Fleet files"),
    "import": Entry(f"{_COMMANDS}.files:import_", "Write live objects as fleet files.", "Fleet files"),
    "plan": Entry(f"{_COMMANDS}.plan:plan", "Say what apply would do.", "Reconcile"),
    "show": Entry(f"{_COMMANDS}.plan:show", "Show a plan file.", "Reconcile"),
    "check": Entry(f"{_COMMANDS}.plan:check", "Say whether apply would take a plan now.", "Reconcile"),
    "apply": Entry(f"{_COMMANDS}.apply:apply", "Run a plan, all of it or nothing.", "Reconcile"),
    "drift": Entry(f"{_COMMANDS}.drift:drift", "Say what moved on the live side.", "Reconcile"),
    "status": Entry(f"{_COMMANDS}.status:status", "Show an engine at a glance.", "Reconcile"),
    "history": Entry(f"{_COMMANDS}.status:history", "Show who changed what, and when.", "Reconcile"),
    "pools": Entry(
        f"{_COMMANDS}.pools:pools", "Pools: list, get, create, capacity, offer, unoffer, update, archive.", "Capacity"
    ),
    "quotas": Entry(f"{_COMMANDS}.quotas:quotas", "Quotas: list, set.", "Capacity"),
    "tenants": Entry(f"{_COMMANDS}.tenancy:tenants", "Tenants: list, get, create, delete.", "Capacity"),
    "sites": Entry(f"{_COMMANDS}.tenancy:sites", "Sites: list, create.", "Capacity"),
    "events": Entry(f"{_COMMANDS}.events:events", "Events: list.", "Capacity"),
    "authz": Entry(f"{_COMMANDS}.authz:authz", "Authorization rows: list.", "Capacity"),
    "reservations": Entry(f"{_COMMANDS}.reservations:reservations", "Reservations: create, list, get, end.", "Use"),
    "nodes": Entry(f"{_COMMANDS}.nodes:nodes", "Nodes: list, join, leave.", "Use"),
    "claims": Entry(f"{_COMMANDS}.claims:claims", "Claims: admit, release, report, list, victims, idle.", "Use"),
    "entitlements": Entry(f"{_COMMANDS}.entitlements:entitlements", "Entitlements: tree, usage.", "Use"),
    "pool1": Entry(f"{_COMMANDS}.pool1:pool1", "Decide in JSON what pool/1 decides, without any state.", "Use"),
    "ledger": Entry(f"{_COMMANDS}.ledger:ledger", "The signed chains: show, export, verify, witness.", "Ledger"),
    "witness": Entry(f"{_COMMANDS}.witness:witness", "Run a witness.", "Ledger"),
    "state": Entry(f"{_COMMANDS}.state:state", "The state: backup, restore, move, copy, rebuild.", "State"),
    "settings": Entry(f"{_COMMANDS}.settings:settings_group", "The engine's settings: list, set.", "State"),
}


class Root(LazyGroup):
    """The root group. Its `main` is the only way in: it never prints a traceback by itself and always exits."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        prepare_streams()
        sys.exit(self._run(list(sys.argv[1:] if args is None else args), extra))

    def _run(self, arguments: list[str], extra: Mapping[str, Any]) -> int:
        try:
            if (instruction := os.environ.get(COMPLETE)) is not None:
                from click.shell_completion import shell_complete

                return shell_complete(self, dict(extra), "fleetctl", COMPLETE, instruction)
            with self.make_context("fleetctl", list(arguments), **extra) as ctx:
                answer = self.invoke(ctx)
            return answer if isinstance(answer, int) else 0
        except click.exceptions.Exit as done:
            return done.exit_code
        except BaseException as error:  # noqa: BLE001 - whatever happens is said in words, with an exit code
            if isinstance(error, OSError) and _is_written_by_click(arguments):
                unwritable = unwritten(error)
                if unwritable is None:
                    return 0
                error = unwritable
            debug = "--debug" in arguments or os.environ.get("FLEETCTL_DEBUG", "0") not in ("", "0", "false")
            as_json = wants("--format", arguments, os.environ.get("FLEETCTL_FORMAT")) == "json"
            return report(error, as_json=as_json, debug=debug)


def _is_written_by_click(arguments: Sequence[str]) -> bool:
    """Whether the output is help or a completion, which click writes by itself."""
    return COMPLETE in os.environ or "--help" in arguments or "-h" in arguments


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        write(f"fleetctl {__version__}\n")
        ctx.exit()


_VERSION = click.Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)

cli = Root(
    "fleetctl",
    entries=ENTRIES,
    params=[*common_options(("text", "json", "github")), _VERSION],
    no_args_is_help=True,
    help="""Reconcile GPU fleets with files in git: plan, apply exactly what was reviewed, all of it or nothing, and a
witnessed ledger of everything that was done.

\b
Example:
  fleetctl init first-fleet
  fleetctl plan first-fleet -o plan.json
  fleetctl apply plan.json
""",
)
