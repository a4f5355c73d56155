"""`ledger rotate`: one window of the entitlement ledger is closed, the next begins."""

from __future__ import annotations

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit, warn
from fleetctl.cli.types import DANGER, DURATION
from fleetctl.cli.wiring import open_engine
from fleetctl.render import rotation as views
from fleetctl.render.objects import names_of


@command("rotate")
@click.option("--window", metavar="NAME", help="What the new window is called; named by its time if absent.")
@click.option("--accept", metavar="ID", multiple=True, type=DANGER, help="Accept a danger by its id.")
@click.option("--require-witness", is_flag=True, help="Exit 5 unless a witness has countersigned.")
@click.option("--wait", metavar="DURATION", type=DURATION, default="60s", show_default=True, help="For a writer.")
def rotate(settings: Settings, window: str | None, accept: tuple[str, ...], require_witness: bool, wait: int) -> int:
    """Close the entitlement ledger and begin the next window: every open claim is charged what it was last reported to have
    spent, and what is left of it comes first in the new ledger. People go on naming it as before.

    A rotation is due once the `period` of the root entitlements is over; an earlier one is the danger `reset-usage:ledger`, refused
    (exit 3) until it is accepted. Exit 5 when it is done and a required witness is missing.

    \b
    Example:
      fleetctl ledger rotate
      fleetctl ledger rotate --window 2026w50 --accept reset-usage:ledger
    """
    from fleetctl.engine.rotating import RotatedUnwitnessed
    from fleetctl.engine.rotating import rotate as rotate_ledger

    with open_engine(settings, seals=True) as engine:
        try:
            found, missing = (
                rotate_ledger(engine, window=window, accept=accept, require_witness=require_witness, wait_ms=wait),
                None,
            )
        except RotatedUnwitnessed as error:
            found, missing = error.rotation, error
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.rotation_document(found, names), lambda: views.rotation_json(found, names))
    if missing is None:
        return 0
    warn(missing.diagnostics)
    return missing.exit_code
