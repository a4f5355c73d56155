"""What happened to pools, offers, quotas and reservations."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.queries import events_after
from fleetctl.cli.types import Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render import capacity as views


@click.group("events", cls=Group, no_args_is_help=True)
def events() -> None:
    """Events: what happened to pools, offers, quotas and reservations."""


@command("list")
@click.option("--since", metavar="N", type=Count(min=0), default=0, help="After this sequence number.")
@click.option("--limit", metavar="N", type=Count(min=1, max=10_000), default=100, show_default=True)
def list_events(settings: Settings, since: int, limit: int) -> None:
    """List events in their order.

    \b
    Example:
      fleetctl events list --since 120
    """
    with open_engine(settings) as engine:
        found, last = events_after(engine, since, limit, settings.tenant)
    emit(settings, lambda: views.events_document(found), lambda: views.events_json(found, last))


events.add_command(list_events)
