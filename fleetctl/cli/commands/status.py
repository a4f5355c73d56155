"""An engine at a glance, and what happened to its objects."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.audits import Known
from fleetctl.cli.command import Settings, command
from fleetctl.cli.files import write_whole
from fleetctl.cli.output import emit
from fleetctl.cli.types import FILE_PATH
from fleetctl.cli.wiring import now_clock, open_engine
from fleetctl.render.status import history_document, history_json, status_document, status_json


@command("status")
@click.option(
    "--snapshot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write everything that a plan is compared with here too, signed by the steward.",
)
def status(settings: Settings, snapshot: Path | None) -> None:
    """Show what the engine holds, how far its ledgers go and who has witnessed them.

    \b
    Example:
      fleetctl status --snapshot eu-prod.snapshot.json
    """
    from fleetctl.engine.status import read_status

    with open_engine(settings, seals=snapshot is not None, witnessed=True) as engine:
        found = read_status(engine)
        if snapshot is not None:
            from fleetctl.engine.snapshots import snapshot_file

            write_whole(snapshot, snapshot_file(engine))
    emit(settings, lambda: status_document(found), lambda: status_json(found))


@command("history", own=("steward_key",))
@click.argument("subject", metavar="[OBJECT]", required=False)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="The newest ones, at most this many.",
)
@click.option("--bundle", metavar="DIR", type=FILE_PATH, help="From an exported bundle, without an engine.")
@click.option("--steward-key", metavar="PUB", type=FILE_PATH, help="With --bundle: the steward's public key.")
@click.option(
    "--witness-key", "witness_keys", metavar="ID=PUB", multiple=True, help="With --bundle: a witness's public key."
)
def history(
    settings: Settings,
    subject: str | None,
    limit: int,
    bundle: Path | None,
    steward_key: Path | None,
    witness_keys: tuple[str, ...],
) -> None:
    """Show who changed an OBJECT (kind/key), or everything: when, from which commit, before and after, witnessed or not.

    \b
    Example:
      fleetctl history offer/pool-fra1-h100/acme
    """
    from fleetctl.cli.histories import bundle_history, engine_history

    if bundle is not None:
        known = Known(steward_key=steward_key, witness_keys=witness_keys)
        found, names = bundle_history(bundle, known, subject, now_clock(settings).now_ms(), limit)
    else:
        with open_engine(settings, witnessed=True) as engine:
            found, names = engine_history(engine, subject, limit)
    emit(settings, lambda: history_document(found, names, subject), lambda: history_json(found))
