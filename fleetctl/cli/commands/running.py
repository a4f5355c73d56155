"""Running work: what it has spent and completed so far, which of it yields first, and which of it is idle."""

from __future__ import annotations

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.types import DURATION, ENERGY, GRADE, POWER, Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render import running as views
from fleetctl.render.objects import names_of


@command("report")
@click.option("--claim", metavar="ID", required=True, help="The running claim.")
@click.option("--units", metavar="N", type=Count(min=0), required=True, help="Completed since it began, not attempted.")
@click.option("--energy", metavar="ENERGY", type=ENERGY, required=True, help="Spent since it began, such as 2MJ.")
@click.option("--grade", type=GRADE, required=True, help="Where the figures come from.")
@click.option("--observed", metavar="DURATION", type=DURATION, help="How long it was watched without a gap, until now.")
@click.option("--observed-energy", metavar="ENERGY", type=ENERGY, help="What of it was spent in that time.")
@click.option("--zero-weight", is_flag=True, help="The figures are a share that attribution gave to weight 0.")
def report(
    settings: Settings,
    claim: str,
    units: int,
    energy: int,
    grade: str,
    observed: int | None,
    observed_energy: int | None,
    zero_weight: bool,
) -> None:
    """Record what a running claim has completed and spent so far, in the place of its last report.

    It charges nothing and enters no ledger: `claims victims` and `claims idle` answer from it, and a rotation splits the claim by it.
    Without --observed nothing is known of how busy the claim is, and it is never idle.

    \b
    Example:
      fleetctl claims report --claim c1 --units 40 --energy 2MJ --grade HwShunt \\
        --observed 10m --observed-energy 300kJ
    """
    from fleetctl.engine.reports import report as keep_report
    from fleetctl.pool1.grade import Grade

    if (observed is None) is not (observed_energy is None):
        raise click.UsageError("--observed and --observed-energy go together.")
    if zero_weight and observed is None:
        raise click.UsageError("--zero-weight says something of what was observed: give --observed too.")
    with open_engine(settings, seals=True) as engine:
        found = keep_report(
            engine,
            claim=claim,
            completed_units=units,
            spent_uj=energy,
            grade=Grade(grade),
            observed_ms=observed,
            observed_uj=observed_energy,
            weight_zero=zero_weight,
        )
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.reported_document(found, names), lambda: views.reported_json(found, names))


@command("victims")
@click.option("--raw", is_flag=True, help="Rank every running claim, as the standard does.")
@click.option("--for", "beneficiary", metavar="ENT", help="Only claims that make room for this entitlement.")
def victims(settings: Settings, raw: bool, beneficiary: str | None) -> None:
    """Rank running claims in the order in which they yield (pool/1 section 5.2), from their reports.

    By default only claims of entitlements past their guarantee are ranked, which is a rule of fleetctl's own; the answer says
    which order it is. A claim without a report has no known cost and yields after every claim that has one.

    \b
    Example:
      fleetctl claims victims --for ent-vision
    """
    from fleetctl.engine.reports import victims as rank_victims

    if raw and beneficiary is not None:
        raise click.UsageError("--raw ranks every claim; it does not go with --for.")
    with open_engine(settings) as engine:
        found = rank_victims(engine, raw=raw, beneficiary=beneficiary)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.victims_document(found, names), lambda: views.victims_json(found, names))


@command("idle")
@click.option("--window", metavar="DURATION", type=DURATION, help="What a verdict must rest on, such as 10m.")
@click.option("--threshold", metavar="POWER", type=POWER, help="Mean power of a claim below which it is idle.")
def idle(settings: Settings, window: int | None, threshold: int | None) -> None:
    """Say which running claims are idle, and in which order they are reclaimed (pool/1 section 2.7), from their reports.

    Without --window and --threshold nothing is reclaimed: both are properties of the devices. A missing, short or old reading
    is no verdict, and so is a guess.

    \b
    Example:
      fleetctl claims idle --window 10m --threshold 640W
    """
    from fleetctl.engine.reports import idle as judge_idle
    from fleetctl.pool1.idle import IdlePolicy

    policy = IdlePolicy(window_ms=window, threshold_uw=threshold)
    with open_engine(settings) as engine:
        found = judge_idle(engine, policy)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.idleness_document(found, names), lambda: views.idleness_json(found, names))
