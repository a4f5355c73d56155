"""The two ways to apply: a saved plan, or a fleet that is planned, shown, agreed to and applied in one go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetctl.cli.command import Settings
from fleetctl.cli.fleets import fleet_and_engine, read_plan_bytes
from fleetctl.cli.output import note, page
from fleetctl.cli.wiring import open_engine
from fleetctl.diagnostics import code
from fleetctl.errors import Interrupted, SafetyRefused, Usage
from fleetctl.frozen import dataclass
from fleetctl.render.plan import plan_document

if TYPE_CHECKING:
    from fleetctl.engine.apply import ApplyReceipt
    from fleetctl.engine.context import Engine
    from fleetctl.plan.planfile import PlanFile

UNEXPECTED_PLAN = code(
    "unexpected-plan",
    "The plan is not the one that was expected",
    trigger="`apply --expect DIGEST` with a plan, or a fleet that plans to one, of another digest",
    exit_code=3,
)
NOT_AGREED = code(
    "not-agreed",
    "Nobody agreed to the plan",
    trigger="`apply PATH` without a terminal and without --yes",
    exit_code=64,
)
DECLINED = code(
    "declined",
    "The plan was declined",
    trigger="the question of `apply PATH` was answered with anything but yes",
    exit_code=130,
)

Done = Callable[["ApplyReceipt"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to apply. `terminal`: somebody is there to be asked."""

    yes: bool
    expect: str | None
    accept: tuple[str, ...]
    require_witness: bool
    wait_ms: int
    terminal: bool


def apply_saved(settings: Settings, path: Path, options: Options, done: Done) -> ApplyReceipt:
    """Apply a plan file. `done` gets the receipt as soon as there is one, even if a witness is missing.

    Raises as `engine.apply.apply_plan`, and SafetyRefused for another digest than `--expect`.
    """
    from fleetctl.plan.planfile import read_plan

    data = read_plan_bytes(path)
    file = read_plan(data)
    check_expected(file, options.expect)
    with open_engine(settings, plan_engine=file.body.engine, seals=True) as engine:
        return run_apply(engine, data, options, done)


def apply_fleet(settings: Settings, path: Path, options: Options, done: Done) -> ApplyReceipt:
    """Plan a fleet and apply that plan; on a terminal it is shown first and needs a yes.

    Raises as `apply_saved`, Usage when there is nobody to ask, Interrupted when the answer is no.
    """
    from fleetctl.cli.actor import host_name
    from fleetctl.engine.planning import plan_fleet
    from fleetctl.plan.planfile import write_plan

    if not options.yes and not options.terminal and path.exists():  # a path that is missing is said as that
        raise Usage(
            NOT_AGREED.at(f"there is no terminal to ask on; review `fleetctl plan {path} -o plan.json`, or give --yes")
        )
    with fleet_and_engine(settings, path, seals=True) as (loaded, engine):
        file = plan_fleet(engine, loaded.fleet, loaded.source, host=host_name(), accept=options.accept).file
        check_expected(file, options.expect)
        if file.body.operations and not options.yes:
            _ask(settings, file, engine, options.accept)
        return run_apply(engine, write_plan(file), options, done)


def check_expected(file: PlanFile, expect: str | None) -> None:
    """Raises SafetyRefused for a plan of another digest."""
    if expect is not None and file.digest != expect:
        raise SafetyRefused(
            UNEXPECTED_PLAN.at(
                f"the plan has the digest {file.digest}, expected is {expect}: what would be done is not what was approved"
            )
        )


def _ask(settings: Settings, file: PlanFile, engine: Engine, accept: tuple[str, ...]) -> None:
    """Show the plan and ask. What would be refused whatever the answer is refused before the question."""
    from fleetctl.engine.apply import check_plan
    from fleetctl.plan.planfile import write_plan

    stream = sys.stderr
    document = plan_document(file, now_ms=engine.clock.now_ms(), apply_with=())
    note(page(settings, document, stream) + "\n")
    check_plan(engine, write_plan(file), accept)
    if not click.confirm("Apply this plan?", default=False, err=True):
        raise Interrupted(DECLINED.at("nothing was done"))


def run_apply(engine: Engine, data: bytes, options: Options, done: Done) -> ApplyReceipt:
    """Apply the bytes of a plan. `done` gets the receipt of what was committed, even if a witness is missing.

    An interrupt that comes after the commit undoes nothing: it is said, and the receipt tells what was done (exit 130 is
    for interrupts before it). Raises as `engine.apply.apply_plan`.
    """
    from fleetctl.engine.apply import Unwitnessed, apply_plan

    def run() -> ApplyReceipt:
        return apply_plan(
            engine, data, accept=options.accept, wait_ms=options.wait_ms, require_witness=options.require_witness
        )

    try:
        try:
            receipt = run()
        except KeyboardInterrupt:
            if not _is_applied(engine, data):
                raise
            note("note: the interrupt came after the commit; the plan is applied, and stays so\n")
            receipt = run()
    except Unwitnessed as error:
        done(error.receipt)
        raise
    done(receipt)
    return receipt


def _is_applied(engine: Engine, data: bytes) -> bool:
    from fleetctl.plan.planfile import read_plan

    with engine.store.read() as reader:
        return reader.applied_entry(read_plan(data).digest) is not None
