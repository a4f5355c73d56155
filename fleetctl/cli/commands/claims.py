"""Claims on entitlements (pool/1)."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.commands.running import idle, report, victims
from fleetctl.cli.figures import admission_figure, reading_of
from fleetctl.cli.output import emit
from fleetctl.cli.queries import open_claims
from fleetctl.cli.types import ENERGY, GRADE, Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render import claims as views
from fleetctl.render.objects import names_of

_COUNT = Count(min=1)
_CLAIM = click.option("--claim", metavar="ID", required=True, help="Its id in the ledger, used once.")


@click.group("claims", cls=Group, no_args_is_help=True)
def claims() -> None:
    """Claims: what work takes from an entitlement, in energy and devices."""


@command("admit")
@click.option("--entitlement", metavar="ENT", required=True, help="Its id or key.")
@_CLAIM
@click.option("--devices", metavar="N", type=_COUNT, required=True, help="Of each member.")
@click.option("--gang", metavar="N", type=_COUNT, default=1, show_default=True, help="Members that start together.")
@click.option("--energy", metavar="ENERGY", type=ENERGY, help="The estimate for the whole gang, such as 5MJ.")
@click.option("--grade", type=GRADE, help="Where the estimate comes from.")
@click.option("--class", "workload_class", metavar="CLASS", help="The word for comparable work.")
@click.option(
    "--estimate",
    type=click.Choice(("derive",)),
    help="Instead of --energy: what the entitlement's own ended claims of the class have cost.",
)
@click.option(
    "--required",
    metavar="N",
    type=Count(min=0),
    help="Observed runs that a derived estimate takes.  [default: 3]",
)
def admit(
    settings: Settings,
    entitlement: str,
    claim: str,
    devices: int,
    gang: int,
    energy: int | None,
    grade: str | None,
    workload_class: str | None,
    estimate: str | None,
    required: int | None,
) -> None:
    """Decide a claim by pool/1 section 4, and record it when it is admitted. Queue and Deny are answers: exit 0.

    With --estimate derive the ledger's own history gives the estimate (section 2.6). Where it holds too few observed runs of
    the class, the answer says how many it has, and nothing is decided: exit 0 too.

    \b
    Example:
      fleetctl claims admit --entitlement ent-vision --claim c1 --devices 8 \\
        --energy 5MJ --grade ModelBased
      fleetctl claims admit --entitlement ent-vision --claim c2 --devices 8 \\
        --class train --estimate derive
    """
    from fleetctl.engine.claims import Admission, Unestimated, admit_derived
    from fleetctl.engine.claims import admit as admit_claim
    from fleetctl.pool1.estimates import DEFAULT_REQUIRED

    figure = admission_figure(energy, grade, derived=estimate is not None, required=required)
    with open_engine(settings, seals=True) as engine:
        found: Admission | Unestimated
        if figure is None:
            found = admit_derived(
                engine,
                claim=claim,
                entitlement=entitlement,
                gang_size=gang,
                devices_per_member=devices,
                workload_class=workload_class or "",
                required=DEFAULT_REQUIRED if required is None else required,
            )
        else:
            found = admit_claim(
                engine,
                claim=claim,
                entitlement=entitlement,
                gang_size=gang,
                devices_per_member=devices,
                estimate_uj=figure.energy_uj,
                grade=figure.grade,
                workload_class=workload_class,
            )
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    if isinstance(found, Unestimated):
        declined = found
        emit(settings, lambda: views.declined_document(declined, names), lambda: views.declined_json(declined, names))
    else:
        admission = found
        emit(
            settings, lambda: views.admission_document(admission, names), lambda: views.admission_json(admission, names)
        )


@command("release")
@_CLAIM
@click.option("--energy", metavar="ENERGY", type=ENERGY, help="What it spent; what was reserved if absent.")
@click.option("--grade", type=GRADE, help="Where the figure comes from.")
def release(settings: Settings, claim: str, energy: int | None, grade: str | None) -> None:
    """End a claim: lift its reservation and charge what it spent since it began. A claim that went on in a new window is named as
    before; what earlier windows were charged is taken off.

    \b
    Example:
      fleetctl claims release --claim c1 --energy 4.2MJ --grade HwShunt
    """
    from fleetctl.engine.claims import release as release_claim

    reading = reading_of(energy, grade)
    with open_engine(settings, seals=True) as engine:
        found = release_claim(engine, claim=claim, reading=reading)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.release_document(found, names), lambda: views.release_json(found, names))


@command("list")
def list_(settings: Settings) -> None:
    """List open claims, in the order of their admission.

    \b
    Example:
      fleetctl claims list
    """
    with open_engine(settings) as engine:
        found, before = open_claims(engine)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: views.claims_document(found, names, before), lambda: views.claims_json(found, names, before))


for _command in (admit, release, report, list_, victims, idle):
    claims.add_command(_command)
