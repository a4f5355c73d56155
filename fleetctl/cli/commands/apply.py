"""`apply`: run a plan, all of it or nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli.applying import Options, apply_fleet, apply_saved
from fleetctl.cli.command import Settings, command
from fleetctl.cli.commands.plan import ACCEPT
from fleetctl.cli.fleets import is_fleet, is_missing_folder
from fleetctl.cli.output import emit
from fleetctl.cli.statusfile import with_status_file
from fleetctl.cli.types import DIGEST, DURATION, FILE_PATH
from fleetctl.errors import FleetctlError
from fleetctl.render.outcome import apply_document, apply_json

if TYPE_CHECKING:
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
) -> None:
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
    with with_status_file(status_file) as status:
        run = apply_fleet if is_fleet(target) or is_missing_folder(target) else apply_saved
        done: list[ApplyReceipt] = []

        def keep(receipt: ApplyReceipt) -> None:
            status.result = apply_json(receipt)
            done.append(receipt)

        try:
            run(settings, target, options, keep)
        except FleetctlError:
            if done and settings.format == "text":  # what was done stands, whatever is missing
                emit(settings, lambda: apply_document(done[0]), lambda: apply_json(done[0]))
            raise
    emit(settings, lambda: apply_document(done[0]), lambda: apply_json(done[0]))
