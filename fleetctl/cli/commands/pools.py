"""Pools: the seed's eight methods."""

from __future__ import annotations

import click

from fleetctl.cli import builds
from fleetctl.cli.arguments import policy_of, quota_of
from fleetctl.cli.calling import run_call
from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.queries import look
from fleetctl.cli.types import Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render.capacity import capacity_document, capacity_json, pool_document, pool_json
from fleetctl.render.objects import list_document, names_of

_POOL = click.argument("pool")
_POLICY = click.option("--policy", metavar="JSON|@FILE", help="The pool policy, as fleet files write it.")
_TO = click.option("--to", "tenant", metavar="TENANT", required=True, help="The tenant.")


@click.group("pools", cls=Group, no_args_is_help=True)
def pools() -> None:
    """Pools: one site, one GPU model, one sharing mode, one policy. A POOL is named by its id or key."""


@command("list")
@click.option("--archived", is_flag=True, help="Archived ones too.")
def list_(settings: Settings, archived: bool) -> None:
    """List pools: all of them, or with --as those that a tenant sees, with its quotas.

    \b
    Example:
      fleetctl pools list --as acme
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    items = [item for item in seen.of_kind("pool") if archived or not item.archived]
    names = names_of(seen.snapshot.objects.values())
    emit(
        settings,
        lambda: list_document("pool", items, names),
        lambda: {
            "result": "ok",
            "items": [pool_json(item, seen.quotas(item.id), owned=item.tenant == seen.acting) for item in items],
        },
    )


@command("get")
@_POOL
def get(settings: Settings, pool: str) -> None:
    """Show one pool with its quotas.

    \b
    Example:
      fleetctl pools get pool-fra1-h100
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    item = seen.pool(pool)
    names, rows = names_of(seen.snapshot.objects.values()), seen.quotas(item.id)
    emit(
        settings,
        lambda: pool_document(item, rows, names),
        lambda: {"result": "ok", **pool_json(item, rows, owned=item.tenant == seen.acting)},
    )


@command("capacity")
@_POOL
def capacity(settings: Settings, pool: str) -> None:
    """Show a pool's machines, what is booked on them, and what each quota has left.

    \b
    Example:
      fleetctl pools capacity pool-fra1-h100
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    item = seen.pool(pool)
    nodes = [node for node in seen.nodes if node.pool == item.id]
    booked = seen.snapshot.usage.in_pool(item.id).resources.get("gpu", 0)
    rows = seen.quotas(item.id)
    emit(
        settings,
        lambda: capacity_document(item, nodes, booked, rows),
        lambda: capacity_json(item, nodes, booked, rows),
    )


@command("create")
@click.argument("key")
@click.option("--site", metavar="SITE", required=True, help="The site's id or key.")
@click.option(
    "--class", "pool_class", type=click.Choice(builds.CLASSES), required=True, help="What the machines are for."
)
@click.option("--gpu-model", metavar="MODEL", required=True, help="The GPU family, such as H100.")
@click.option(
    "--sharing",
    type=click.Choice(builds.SHARINGS),
    default="exclusive",
    show_default=True,
    help="How GPUs are handed out.",
)
@click.option("--agent", type=click.Choice(builds.AGENTS), help="bcd, or none for provider pools.")
@click.option("--provider-account", metavar="ID", help="The account behind a provider pool.")
@_POLICY
@click.option("--owner-quota", metavar="RESOURCE=COUNT", multiple=True, help="The owner's own quota.")
@click.option("--name", metavar="NAME", help="The key if absent.")
def create(settings: Settings, key: str, policy: str | None, owner_quota: tuple[str, ...], **fields: str | None) -> int:
    """Create a pool under an idempotency KEY. The same key again is the same pool.

    \b
    Example:
      fleetctl pools create pool-fra1-h100 --site fra1 --class metal-host \\
        --gpu-model H100
    """
    wanted = builds.NewPool(key=key, policy=policy_of(policy), owner_quota=quota_of(owner_quota), **fields)  # type: ignore[arg-type]  # click's choices are the literal types' words
    return run_call(settings, "pools.create", lambda engine: builds.new_pool(engine, settings, wanted), key=key)


@command("offer")
@_POOL
@_TO
@click.option("--quota", metavar="RESOURCE=COUNT", multiple=True, required=True, help="What the tenant may use.")
@click.option(
    "--priority",
    metavar="N",
    type=Count(-1000, 1000),
    default=0,
    show_default=True,
    help="Stored; no effect yet.",
)
@click.option("--include-descendants", is_flag=True, help="Stored; no effect yet.")
@click.option("--on-budget-exceeded", type=click.Choice(("stop-new", "drain")), help="What a spent budget does.")
def offer(settings: Settings, pool: str, tenant: str, quota: tuple[str, ...], **fields: object) -> int:
    """Make a pool visible to a tenant, with a quota. Offering again updates it; resources that are not named stay.

    \b
    Example:
      fleetctl pools offer pool-fra1-h100 --to acme --quota gpu=32
    """
    build = builds.new_offer(pool, tenant, quota_of(quota), fields)
    return run_call(settings, "pools.offer", lambda _: build, pool=pool, to=tenant)


@command("unoffer")
@_POOL
@_TO
def unoffer(settings: Settings, pool: str, tenant: str) -> int:
    """Withdraw a pool from a tenant: quotas drop to what is in use, and what runs runs to its end.

    \b
    Example:
      fleetctl pools unoffer pool-fra1-h100 --to acme
    """
    from fleetctl.engine.builders import unoffering

    return run_call(settings, "pools.unoffer", lambda _: unoffering(pool, tenant), pool=pool, to=tenant)


@command("update")
@_POOL
@_POLICY
@click.option("--gpu-model", metavar="MODEL", help="The GPU family.")
def update(settings: Settings, pool: str, policy: str | None, gpu_model: str | None) -> int:
    """Replace a pool's policy as a whole, its GPU model, or both.

    \b
    Example:
      fleetctl pools update pool-fra1-h100 --policy '{"maxPending": "12h"}'
    """
    if policy is None and gpu_model is None:
        raise click.UsageError("Give --policy, --gpu-model, or both.")
    build = builds.pool_update(pool, None if policy is None else policy_of(policy), gpu_model)
    return run_call(settings, "pools.update", lambda _: build, pool=pool)


@command("archive")
@_POOL
def archive(settings: Settings, pool: str) -> int:
    """Retire a pool: offers end, nothing new starts, what runs runs to its end. There is no way back.

    \b
    Example:
      fleetctl pools archive pool-fra1-h100
    """
    from fleetctl.engine.builders import removal

    return run_call(settings, "pools.archive", lambda _: removal("pool", pool), pool=pool)


for _command in (list_, get, create, capacity, offer, unoffer, update, archive):
    pools.add_command(_command)
