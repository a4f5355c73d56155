"""The witness: made once, served as a process of its own."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.folders import user_folders
from fleetctl.cli.output import emit, write
from fleetctl.cli.types import FILE_PATH
from fleetctl.cli.wiring import now_clock
from fleetctl.render.document import Facts, Verdict
from fleetctl.render.ledger import witness_heads_document, witness_heads_json

_ID = click.option("--id", "id", metavar="ID", required=True, help="The witness's name.")


@click.group("witness", cls=Group, no_args_is_help=True)
def witness() -> None:
    """Run a witness: another key and another memory, which countersign a ledger only as it grows."""


@command("init", own=("steward_key",))
@_ID
@click.option(
    "--steward-key",
    "steward_keys",
    metavar="PUB",
    required=True,
    multiple=True,
    type=FILE_PATH,
    help="The steward's public key; give one that it had before as well.",
)
@click.option("--steward", metavar="ID", required=True, help="Whose ledgers it countersigns.")
def init(settings: Settings, id: str, steward_keys: tuple[Path, ...], steward: str) -> None:
    """Make a witness's key and its empty memory. A witness that exists is left alone.

    \b
    Example:
      fleetctl witness init --id audit-1 --steward root-steward \\
        --steward-key steward.pub.pem
    """
    from fleetctl.cli.making import WITNESS_PUBLIC_KEY, make_witness
    from fleetctl.ledger.keyfiles import load_public_key

    folders = user_folders()
    key = make_witness(folders, id, {steward: [load_public_key(path) for path in steward_keys]})
    path = folders.witness(id) / WITNESS_PUBLIC_KEY
    emit(
        settings,
        lambda: [Verdict(f"Witness {id} is ready", "good"), Facts([("public key", str(path)), ("", key.hex())])],
        lambda: {"result": "ok", "witness": id, "public_key": key.hex(), "public_key_file": str(path)},
    )


@command("serve")
@_ID
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:0", show_default=True, help="Port 0 takes a free one."
)
def serve(settings: Settings, id: str, listen: str) -> None:
    """Serve a witness until a signal ends it. Prints one line, its URL, once it answers.

    \b
    Example:
      fleetctl witness serve --id audit-1 --listen 0.0.0.0:8642
    """
    from fleetctl.api.witness_service import listen_address, witness_app
    from fleetctl.api.witness_service import serve as serve_app
    from fleetctl.cli.witnesses import open_witness_state

    host, port = listen_address(listen)
    state, signer = open_witness_state(user_folders().witness(id), id)
    try:
        app = witness_app(state=state, signer=signer, clock=now_clock(settings))
        gc.enable()
        serve_app(app, host=host, port=port, announce=lambda url: write(f"{url}\n"))
    except KeyboardInterrupt:
        sys.stdout.flush()  # asked to stop: that is how a witness ends
    finally:
        state.close()


@command("head")
@_ID
@click.argument("ledgers", metavar="LEDGER...", nargs=-1, required=True)
def head(settings: Settings, id: str, ledgers: tuple[str, ...]) -> None:
    """Show what a witness that lives here last signed for each LEDGER.

    \b
    Example:
      fleetctl witness head --id audit-1 root-steward/journal
    """
    from fleetctl.cli.witnesses import signed_heads

    found = signed_heads(user_folders().witness(id), id, ledgers)
    emit(settings, lambda: witness_heads_document(id, found), lambda: witness_heads_json(id, found))


for _command in (init, serve, head):
    witness.add_command(_command)
