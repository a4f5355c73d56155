"""The ledgers: where they stand, what is in them, export, verification, countersigning, recovery."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fleetctl.cli.audits import Known, audit_path
from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.commands.decisions import decisions
from fleetctl.cli.commands.rotate import rotate
from fleetctl.cli.exports import export_bundle, export_file, ledger_bytes
from fleetctl.cli.output import emit, note, write_bytes
from fleetctl.cli.types import DANGER, DURATION, FILE_PATH, Count
from fleetctl.cli.wiring import now_clock, open_engine
from fleetctl.render.ledger import (
    entries_document,
    entries_json,
    heads_document,
    heads_json,
    report_document,
)
from fleetctl.render.recovery import recovery_document, recovery_json

STREAM = click.option(
    "--stream",
    metavar="S",
    help="`journal`, or a window such as `entitlements` or `entitlements:2026w50`; the entitlement ledger in force if absent.",
)


@click.group("ledger", cls=Group, no_args_is_help=True)
def ledger() -> None:
    """The signed chains: the entitlement ledger, and the journal beside it."""


@command("head")
def head(settings: Settings) -> None:
    """Show how long both ledgers and closed windows are, their heads, and who has witnessed them.

    \b
    Example:
      fleetctl ledger head
    """
    from fleetctl.engine.status import read_status

    with open_engine(settings, witnessed=True) as engine:
        found = read_status(engine)
    heads, closed = (found.usage, found.journal), found.closed_windows
    emit(
        settings,
        lambda: heads_document(heads, found.witnessed, closed),
        lambda: heads_json(heads, found.witnessed, closed),
    )


@command("show")
@STREAM
@click.option("--since", metavar="N", type=Count(min=0), default=0, help="From this entry on.")
@click.option("--limit", metavar="N", type=Count(min=1), default=100, show_default=True, help="At most this many.")
def show(settings: Settings, stream: str | None, since: int, limit: int) -> None:
    """Show entries of a ledger, verified first.

    \b
    Example:
      fleetctl ledger show --stream journal --since 10
    """
    from fleetctl.cli.exports import shown_entries

    with open_engine(settings) as engine:
        name, entries = shown_entries(engine, stream, since, limit)
    emit(settings, lambda: entries_document(name, entries), lambda: entries_json(name, entries))


@command("export")
@STREAM
@click.option("--out", "-o", metavar="FILE", type=FILE_PATH, help="A CBOR sequence of sealed entries.")
@click.option("--bundle", metavar="DIR", type=FILE_PATH, help="Everything an auditor needs, in a new folder.")
def export(settings: Settings, stream: str | None, out: Path | None, bundle: Path | None) -> None:
    """Write a ledger to a FILE or to standard output, or both ledgers with receipts, documents and public keys to a new
    folder DIR.

    \b
    Example:
      fleetctl ledger export --bundle audit-2026-12
    """
    if bundle is not None and (out is not None or stream is not None):
        raise click.UsageError("--bundle writes both ledgers to a folder; --out and --stream are for one of them.")
    if bundle is None and out is None and (settings.format == "json" or sys.stdout.isatty()):
        raise click.UsageError("A ledger is bytes: give --out FILE, or send standard output to a file or a pipe.")
    with open_engine(settings) as engine:
        if bundle is None and out is None:
            write_bytes(ledger_bytes(engine, stream))
            return
        written = export_bundle(engine, bundle) if bundle is not None else export_file(engine, stream, out or Path())
    emit(settings, written.document, written.to_json)


@command("verify", own=("steward_key",))
@click.argument("file", metavar="[FILE|BUNDLE]", type=FILE_PATH, required=False)
@click.option("--steward-key", metavar="PUB", type=FILE_PATH, help="The steward's public key.")
@click.option("--steward", metavar="ID", help="Whose ledger it must be; the key id of entry 0 if absent.")
@STREAM
@click.option("--receipt", "receipts", metavar="FILE", multiple=True, type=FILE_PATH, help="A witness's receipt.")
@click.option("--witness-key", "witness_keys", metavar="ID=PUB", multiple=True, help="A witness's public key.")
@click.option(
    "--required-witnesses",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many, counted by key, make it a witnessed one; the engine's own settings may ask for more.",
)
@click.option("--min-length", metavar="N", type=Count(min=0), help="Fail a shorter ledger.")
@click.option(
    "--max-receipt-age", "max_receipt_age_ms", metavar="DURATION", type=DURATION, help="Older receipts do not count."
)
@click.option("--resume", metavar="FILE", type=FILE_PATH, help="The JSON of the last verification.")
@click.option("--cross-check", is_flag=True, help="Verify every entry a second time with pycose.")
def verify(settings: Settings, file: Path | None, **known: object) -> int:
    """Verify every entry from genesis: exit 0, or 3 with the first fault. Without FILE: every ledger of the engine.

    \b
    Example:
      fleetctl ledger verify
      fleetctl ledger verify audit-2026-12 --steward-key steward.pub.pem \\
        --witness-key audit-1=audit-1.pub.pem
    """
    from fleetctl.cli.exports import audit_own

    asked = Known(**known, witness=settings.witness)  # type: ignore[arg-type]  # click has converted each option to its field's type
    if file is not None:
        report = audit_path(file, asked, now_clock(settings).now_ms())
    else:
        if asked.stream is not None:
            raise click.UsageError("--stream goes with FILE; without it both ledgers of the engine are verified.")
        with open_engine(settings, witnessed=True) as engine:
            report = audit_own(engine, asked)
    emit(settings, lambda: report_document(report), report.to_json)
    return 0 if report.ok else 3


@command("witness")
@click.option("--remember", is_flag=True, help="Write where the witnesses of --witness are into your config.toml.")
def countersign(settings: Settings, remember: bool) -> int:
    """Show both heads to the witnesses again, and keep their receipts: exit 5 while a required one is missing, 3 when
    one knows more than this state.

    \b
    Example:
      fleetctl ledger witness
      fleetctl ledger witness --remember \\
        --witness audit-1=https://a.example,audit-2=https://b.example
    """
    from fleetctl.cli.witnesses import remember as remember_witnesses
    from fleetctl.engine.status import read_status
    from fleetctl.engine.witnessing import refuse_rollback, witness_heads

    with open_engine(settings, seals=True) as engine:
        if remember:
            note(f"remembered: {', '.join(remember_witnesses(settings, engine.id, engine.store))}\n")
        refuse_rollback(engine)
        found = witness_heads(engine)
        status = read_status(engine)
    heads, closed = (status.usage, status.journal), status.closed_windows
    emit(settings, lambda: heads_document(heads, found, closed), lambda: heads_json(heads, found, closed))
    return 0 if found.enough() else 5


@command("recover")
@click.option(
    "--from",
    "sources",
    metavar="PATH",
    multiple=True,
    type=FILE_PATH,
    help="A replica: an exported bundle, or one exported ledger.",
)
@click.option("--accept", "accept", metavar="ID", multiple=True, type=DANGER, help="Give up what the danger ID names.")
@click.option("--wait", metavar="DURATION", type=DURATION, default="60s", show_default=True, help="For a writer.")
def recover(settings: Settings, sources: tuple[Path, ...], accept: tuple[str, ...], wait: int) -> int:
    """Bring back ledger entries that a witness signed and this state has lost, from the witness or a replica, all of them or
    nothing. What nobody has is given up only with --accept: a new ledger begins, and says so.

    \b
    Example:
      fleetctl ledger recover --from audit-2026-12
      fleetctl ledger recover --accept lose-entries:ledger/journal
    """
    from fleetctl.cli.replicas import read_replica
    from fleetctl.engine.recovery import recover as recover_ledgers

    replicas = [read_replica(path) for path in sources]
    with open_engine(settings, seals=True, every_witness=True) as engine:
        found = recover_ledgers(engine, replicas, accept=accept, wait_ms=wait)
    emit(settings, lambda: recovery_document(found), lambda: recovery_json(found))
    return 0 if found.result == "nothing-to-do" or found.witnessed.enough() else 5


for _command in (head, show, export, verify, decisions, countersign, rotate, recover):
    ledger.add_command(_command)
