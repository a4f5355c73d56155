"""`apply`: run a plan, all of it or nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli.applying import Options, apply_fleet, apply_saved
from fleetctl.cli.command import Settings, command
from fleetctl.cli.commands.plan import ACCEPT
from fleetctl.cli.fleets import is_fleet, is_missing_folder
from fleetctl.cli.output import emit, warn
from fleetctl.cli.statusfile import with_status_file
from fleetctl.cli.types import DIGEST, DURATION, FILE_PATH
from fleetctl.errors import FleetctlError
from fleetctl.render.diagnostics import error_json
from fleetctl.render.outcome import apply_document, apply_json

if TYPE_CHECKING:
    from fleetctl.diagnostics import Diagnostic
    from fleetctl.engine.apply import ApplyReceipt


@command("apply")
@click.argument("target", metavar="PLAN|PATH", type=FILE_PATH)
@click.option("--yes", is_flag=True, help="Do not ask before applying the fleet at PATH.")
@click.option("--expect", metavar="DIGEST", type=DIGEST, help="Refuse any plan but the one with this digest.")
@ACCEPT
@click.option("--require-witness", is_flag=True, help="Exit 5 unless a witness has countersigned.")
@click.option("--wait", metavar="DURATION", type=DURATION, default="60s", show_default=True, help="For another apply.")
@click.option("--status-file", metavar="FILE", type=FILE_PATH, help="Write the result here too, as JSON.")
def apply(
    settings: Settings,
    target: Path,
    yes: bool,
    expect: str | None,
    accept: tuple[str, ...],
    require_witness: bool,
    wait: int,
    status_file: Path | None,
) -> int:
    """Apply a saved PLAN, or plan and apply the fleet at PATH in one go: in one transaction, all of it or nothing.

    \b
    Example:
      fleetctl apply plan.json
      fleetctl apply fleets/eu-prod --yes --expect 2f0c…e1
    """
    options = Options(
        yes=yes,
        expect=expect,
        accept=accept,
        require_witness=require_witness,
        wait_ms=wait,
        terminal=sys.stdin.isatty() and sys.stdout.isatty(),
    )
    run = apply_fleet if is_fleet(target) or is_missing_folder(target) else apply_saved
    done: list[ApplyReceipt] = []
    try:
        with with_status_file(status_file) as status:

            def keep(receipt: ApplyReceipt) -> None:
                status.result = apply_json(receipt)
                done.append(receipt)

            run(settings, target, options, keep)
    except FleetctlError as error:
        if not done:
            raise
        # What was done stands, whatever is missing: the receipt is the answer, and says what went wrong after it.
        _show(settings, done[0], error.diagnostics)
        return error.exit_code
    _show(settings, done[0])
    return 0


def _show(settings: Settings, receipt: ApplyReceipt, missing: Sequence[Diagnostic] = ()) -> None:
    told = error_json(missing) if missing else {}
    emit(settings, lambda: apply_document(receipt), lambda: told | apply_json(receipt))
    if missing:
        warn(missing)
