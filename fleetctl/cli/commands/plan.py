"""Plans: make one, show one, see whether one still holds."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.files import write_whole
from fleetctl.cli.fleets import fleet_and_engine, is_fleet, read_plan_bytes
from fleetctl.cli.output import emit
from fleetctl.cli.types import DANGER, FILE_PATH
from fleetctl.cli.wiring import now_clock, open_engine
from fleetctl.render.outcome import check_document, check_json
from fleetctl.render.plan import plan_document, plan_json, unaccepted_dangers

_PLAN = click.argument("plan_path", metavar="PLAN", type=FILE_PATH)
ACCEPT = click.option(
    "--accept", metavar="ID", multiple=True, type=DANGER, help="Accept a danger by its id, kind:object."
)


@command("plan")
@click.argument("path", type=FILE_PATH)
@click.option("--out", "-o", metavar="FILE", type=FILE_PATH, help="Write the plan file here.")
@ACCEPT
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when there are changes.")
@click.option("--fail-on-danger", is_flag=True, help="Exit 3 when a danger is not accepted.")
def plan(
    settings: Settings,
    path: Path,
    out: Path | None,
    accept: tuple[str, ...],
    detailed_exitcode: bool,
    fail_on_danger: bool,
) -> int:
    """Compare the fleet at PATH with what is live, and say what apply would do. Changes nothing.

    \b
    Example:
      fleetctl plan fleets/eu-prod -o plan.json
    """
    from fleetctl.cli.actor import host_name
    from fleetctl.engine.planning import plan_fleet
    from fleetctl.plan.planfile import write_plan

    if out is not None and is_fleet(out):
        raise click.UsageError(f"{out} is the name of a fleet; write the plan to a name such as plan.json.")
    with fleet_and_engine(settings, path, looks=True) as (loaded, engine):
        file = plan_fleet(engine, loaded.fleet, loaded.source, host=host_name(), accept=accept).file
        now = engine.clock.now_ms()
    if out is not None:
        write_whole(out, write_plan(file))
        command = f"fleetctl apply {shlex.quote(str(out))}"
    else:
        command = f"fleetctl apply {shlex.quote(str(path))} --expect {file.digest}"
    emit(settings, lambda: plan_document(file, now_ms=now, apply_with=[command]), lambda: plan_json(file))
    if fail_on_danger and unaccepted_dangers(file, now):
        return 3
    return 2 if detailed_exitcode and file.body.operations else 0


@command("show")
@_PLAN
def show(settings: Settings, plan_path: Path) -> None:
    """Show a plan file, its digests checked. Needs no engine.

    \b
    Example:
      fleetctl show plan.json
    """
    from fleetctl.plan.planfile import read_plan

    file = read_plan(read_plan_bytes(plan_path))
    command = f"fleetctl apply {shlex.quote(str(plan_path))}"
    now = now_clock(settings).now_ms()
    emit(settings, lambda: plan_document(file, now_ms=now, apply_with=[command]), lambda: plan_json(file))


@command("check")
@_PLAN
@ACCEPT
def check(settings: Settings, plan_path: Path, accept: tuple[str, ...]) -> None:
    """Say whether apply would take a PLAN now: exit 0, 3 (refused) or 4 (stale). Changes nothing.

    \b
    Example:
      fleetctl check plan.json
    """
    from fleetctl.engine.apply import check_plan
    from fleetctl.plan.planfile import read_plan

    data = read_plan_bytes(plan_path)
    engine_id = read_plan(data).body.engine
    with open_engine(settings, plan_engine=engine_id) as engine:
        file = check_plan(engine, data, accept)
        with engine.store.read() as reader:
            applied_as = reader.applied_entry(file.digest)
    emit(settings, lambda: check_document(file, applied_as), lambda: check_json(file, applied_as))
