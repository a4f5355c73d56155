"""Reservations of whole GPUs."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.figures import estimate_of, reading_of
from fleetctl.cli.output import emit
from fleetctl.cli.queries import look
from fleetctl.cli.types import ENERGY, GRADE, Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render import capacity as views
from fleetctl.render import claims as claim_views
from fleetctl.render.document import Facts, Paragraph, Verdict
from fleetctl.render.objects import names_of


@click.group("reservations", cls=Group, no_args_is_help=True)
def reservations() -> None:
    """Reservations: a tenant's hold on whole GPUs of a pool."""


@command("create")
@click.option("--tenant", metavar="TENANT", required=True, help="Whose it is.")
@click.option("--pool", metavar="POOL", required=True, help="The pool's id or key.")
@click.option("--gpus", metavar="N", type=Count(min=1), required=True)
@click.option("--entitlement", metavar="ENT", help="What pays for it; with --energy and --grade.")
@click.option("--energy", metavar="ENERGY", type=ENERGY, help="The estimate for all of it, such as 5MJ.")
@click.option("--grade", type=GRADE, help="Where the estimate comes from.")
@click.option("--class", "workload_class", metavar="CLASS", help="The word for comparable work.")
@click.option("--key", metavar="KEY", help="The same key again is the same reservation.")
def create(
    settings: Settings,
    tenant: str,
    pool: str,
    gpus: int,
    entitlement: str | None,
    energy: int | None,
    grade: str | None,
    workload_class: str | None,
    key: str | None,
) -> None:
    """Reserve GPUs, and admit the claim that pays for them. Pending and failed are answers: exit 0.

    \b
    Example:
      fleetctl reservations create --tenant acme --pool pool-fra1-h100 --gpus 8
    """
    from fleetctl.engine import reservations as engine_reservations

    estimate = estimate_of(entitlement, energy, grade, workload_class)
    with open_engine(settings, seals=True) as engine:
        booked = engine_reservations.create(engine, tenant=tenant, pool=pool, gpus=gpus, estimate=estimate, key=key)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: claim_views.booked_document(booked, names), lambda: claim_views.booked_json(booked, names))


@command("list")
@click.option("--all", "every", is_flag=True, help="Ended and failed ones too.")
def list_(settings: Settings, every: bool) -> None:
    """List reservations, or with --as those of a tenant.

    \b
    Example:
      fleetctl reservations list --as acme
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    found = [
        item
        for item in seen.reservations
        if settings.tenant in (None, item.tenant) and (every or item.state in ("pending", "active"))
    ]
    names = names_of(seen.snapshot.objects.values())
    emit(
        settings,
        lambda: [views.reservations_table(found, names) if found else Paragraph("There are no reservations.")],
        lambda: {"result": "ok", "items": [views.reservation_json(item, names) for item in found]},
    )


@command("get")
@click.argument("reservation")
def get(settings: Settings, reservation: str) -> None:
    """Show one reservation.

    \b
    Example:
      fleetctl reservations get res_01k3v5
    """
    from fleetctl.capacity.refusals import NOT_FOUND, refuse

    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    found = next((item for item in seen.reservations if item.id == reservation), None)
    if found is None or settings.tenant not in (None, found.tenant):
        refuse(NOT_FOUND, f"there is no reservation {reservation}", f"reservation/{reservation}")
    names = names_of(seen.snapshot.objects.values()) | {str(node.id): node.name for node in seen.nodes}
    emit(
        settings,
        lambda: [Verdict(f"Reservation {found.id}: {found.state}"), Facts(views.reservation_facts(found, names))],
        lambda: {"result": "ok", **views.reservation_json(found, names)},
    )


@command("end")
@click.argument("reservation")
@click.option("--energy", metavar="ENERGY", type=ENERGY, help="What it spent; what was reserved if absent.")
@click.option("--grade", type=GRADE, help="Where the figure comes from.")
def end(settings: Settings, reservation: str, energy: int | None, grade: str | None) -> None:
    """End a reservation and release its claim. Ending twice is nothing.

    \b
    Example:
      fleetctl reservations end res_01k3v5 --energy 4.2MJ --grade HwShunt
    """
    from fleetctl.engine import reservations as engine_reservations

    reading = reading_of(energy, grade)
    with open_engine(settings, seals=True) as engine:
        ended = engine_reservations.end(engine, reservation, reading, tenant=settings.tenant)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: claim_views.ended_document(ended, names), lambda: claim_views.ended_json(ended, names))


for _command in (create, list_, get, end):
    reservations.add_command(_command)
