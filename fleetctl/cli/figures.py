"""Energy figures with their grades, from options that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fleetctl.engine.reservations import Estimate
    from fleetctl.pool1.claim import Figure


def reading_of(energy_uj: int | None, grade: str | None) -> Figure | None:
    """What was measured or modelled; None without options. Raises a usage error for one without the other."""
    from fleetctl.pool1.claim import Figure
    from fleetctl.pool1.grade import Grade

    if energy_uj is None and grade is None:
        return None
    if energy_uj is None or grade is None:
        raise click.UsageError("--energy and --grade go together: a figure without its grade cannot be judged.")
    return Figure(energy_uj=energy_uj, grade=Grade(grade))


def admission_figure(energy_uj: int | None, grade: str | None, *, derived: bool, required: int | None) -> Figure | None:
    """The estimate of a claim; None when it is to be derived. Raises a usage error for both, neither, or half of one."""
    if derived:
        if energy_uj is not None or grade is not None:
            raise click.UsageError("--estimate derive gives energy and grade; leave --energy and --grade away.")
        return None
    if required is not None:
        raise click.UsageError("--required goes with --estimate derive.")
    figure = reading_of(energy_uj, grade)
    if figure is None:
        raise click.UsageError("give the estimate with --energy and --grade, or have it made with --estimate derive.")
    return figure


def estimate_of(
    entitlement: str | None, energy_uj: int | None, grade: str | None, workload_class: str | None
) -> Estimate | None:
    """What a reservation will take from an entitlement; None without options. Raises a usage error for half of it."""
    from fleetctl.engine.reservations import Estimate
    from fleetctl.pool1.grade import Grade

    if entitlement is None and energy_uj is None and grade is None and workload_class is None:
        return None
    if entitlement is None or energy_uj is None or grade is None:
        raise click.UsageError("--entitlement, --energy and --grade go together.")
    return Estimate(entitlement=entitlement, energy_uj=energy_uj, grade=Grade(grade), workload_class=workload_class)
