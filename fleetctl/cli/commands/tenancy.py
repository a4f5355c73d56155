"""Tenants and sites."""

from __future__ import annotations

import click

from fleetctl.cli import builds, deleting
from fleetctl.cli.calling import run_call
from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.queries import look
from fleetctl.cli.types import DANGER
from fleetctl.cli.wiring import open_engine
from fleetctl.model.ids import Kind
from fleetctl.render.objects import list_document, list_json, names_of


@click.group("tenants", cls=Group, no_args_is_help=True)
def tenants() -> None:
    """Tenants: a tree under the root tenant."""


@click.group("sites", cls=Group, no_args_is_help=True)
def sites() -> None:
    """Sites: the places that pools live in."""


def _list(settings: Settings, kind: Kind) -> None:
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    items, names = seen.of_kind(kind), names_of(seen.snapshot.objects.values())
    emit(settings, lambda: list_document(kind, items, names), lambda: list_json(items))


@command("list")
def list_tenants(settings: Settings) -> None:
    """List tenants.

    \b
    Example:
      fleetctl tenants list
    """
    _list(settings, "tenant")


@command("get")
@click.argument("tenant")
def get_tenant(settings: Settings, tenant: str) -> None:
    """Show a tenant.

    \b
    Example:
      fleetctl tenants get acme
    """
    from fleetctl.engine.builders import find
    from fleetctl.render.objects import object_document, object_json

    with open_engine(settings) as engine:
        item = find(look(engine, None).snapshot, "tenant", tenant)
    emit(settings, lambda: object_document(item, {}), lambda: {"result": "ok", **object_json(item)})


@command("create")
@click.argument("tenant")
@click.option("--parent", metavar="TENANT", default="root", show_default=True, help="The tenant above it.")
@click.option("--description", metavar="TEXT")
def create_tenant(settings: Settings, tenant: str, parent: str, description: str | None) -> int:
    """Create a tenant.

    \b
    Example:
      fleetctl tenants create acme
    """
    return run_call(
        settings,
        "tenants.create",
        lambda engine: builds.new_tenant(engine, settings, tenant, parent, description),
        name=tenant,
    )


@command("delete")
@click.argument("tenant")
@click.option("--accept", metavar="ID", multiple=True, type=DANGER, help="Accept the danger, remove:tenant/TENANT.")
@click.option("--dry-run", is_flag=True, help="Show what ends with the tenant, and do nothing.")
def delete_tenant(settings: Settings, tenant: str, accept: tuple[str, ...], dry_run: bool) -> int:
    """Delete a tenant for good: its pools are archived, offers withdrawn, its reservations ended.

    It is a danger, and refused until that is accepted. Tenants below it, entitlements and market pools stand in its way.

    \b
    Example:
      fleetctl tenants delete acme --dry-run
      fleetctl tenants delete acme --accept remove:tenant/acme
    """
    if dry_run:
        return deleting.survey(settings, tenant)
    return deleting.delete(settings, tenant, accept)


@command("list")
def list_sites(settings: Settings) -> None:
    """List sites.

    \b
    Example:
      fleetctl sites list
    """
    _list(settings, "site")


@command("create")
@click.argument("site")
@click.option("--kind", type=click.Choice(builds.SITE_KINDS), required=True, help="Whose machines it has.")
@click.option("--region", metavar="REGION", required=True)
@click.option("--tenant", "owner", metavar="TENANT", help="Its owner; the acting tenant if absent.")
def create_site(settings: Settings, site: str, kind: str, region: str, owner: str | None) -> int:
    """Create a site.

    \b
    Example:
      fleetctl sites create fra1 --kind shared --region eu-central
    """
    return run_call(
        settings,
        "sites.create",
        lambda engine: builds.new_site(engine, settings, site, kind, region, owner),  # type: ignore[arg-type]  # click has checked the kind
        name=site,
    )


for _group, _commands in (
    (tenants, (list_tenants, get_tenant, create_tenant, delete_tenant)),
    (sites, (list_sites, create_site)),
):
    for _command in _commands:
        _group.add_command(_command)
