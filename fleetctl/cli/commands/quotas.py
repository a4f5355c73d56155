"""Quota rows: what a tenant may use of a pool."""

from __future__ import annotations

import click

from fleetctl.cli import builds
from fleetctl.cli.arguments import quota_of
from fleetctl.cli.calling import run_call
from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.queries import look
from fleetctl.cli.wiring import open_engine
from fleetctl.render import capacity as views


@click.group("quotas", cls=Group, no_args_is_help=True)
def quotas() -> None:
    """Quotas: the most that a tenant may use of a resource in a pool. A missing row grants 0."""


@command("list")
@click.argument("pool")
def list_quotas(settings: Settings, pool: str) -> None:
    """List a pool's quota rows with what is used and left.

    \b
    Example:
      fleetctl quotas list pool-fra1-h100
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    rows = seen.quotas(seen.pool(pool).id)
    emit(settings, lambda: [views.quotas_table(rows)], lambda: {"result": "ok", "items": views.quotas_json(rows)})


@command("set")
@click.argument("pool")
@click.argument("tenant")
@click.argument("quota", metavar="RESOURCE=COUNT...", nargs=-1, required=True)
def set_quotas(settings: Settings, pool: str, tenant: str, quota: tuple[str, ...]) -> int:
    """Set quota rows of a TENANT in a POOL; resources that are not named stay.

    \b
    Example:
      fleetctl quotas set pool-fra1-h100 acme gpu=16
    """
    rows = quota_of(quota)
    build = builds.quota_change(pool, tenant, rows)
    return run_call(settings, "quotas.set", lambda _: build, pool=pool, tenant=tenant)


for _command in (list_quotas, set_quotas):
    quotas.add_command(_command)
