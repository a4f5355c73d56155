"""`drift`: what moved on the live side since the last apply."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.fleets import fleet_and_engine
from fleetctl.cli.output import emit, warn
from fleetctl.cli.statusfile import with_status_file
from fleetctl.cli.types import FILE_PATH
from fleetctl.render.drift import drift_document, drift_json

_EXITS = {"none": 0, "drift": 2, "tampered": 3}


@command("drift")
@click.argument("path", type=FILE_PATH)
@click.option(
    "--full", is_flag=True, help="Verify from genesis and fold every document, instead of from the checkpoint."
)
@click.option("--seal", is_flag=True, help="Keep the report and put its digest on the journal.")
@click.option("--status-file", metavar="FILE", type=FILE_PATH, help="Write the result here too, as JSON.")
def drift(settings: Settings, path: Path, full: bool, seal: bool, status_file: Path | None) -> int:
    """Compare what is live with what the fleet at PATH last applied: exit 0 none, 2 drift, 3 tampered. Reads only.

    \b
    Example:
      fleetctl drift fleets/eu-prod --status-file drift.json
    """
    from fleetctl.engine.drifting import drift_fleet, seal_report

    with with_status_file(status_file) as status:
        with fleet_and_engine(settings, path, seals=seal, looks=not seal) as (loaded, engine):
            report = drift_fleet(engine, loaded.fleet, loaded.source, full=full)
            data = drift_json(report)
            if seal and report.result != "tampered":
                data["sealed"] = seal_report(engine, drift_json(report), report.result)
        warn(report.warnings)
        status.result = data
    emit(settings, lambda: drift_document(report), lambda: data)
    return _EXITS[report.result]
