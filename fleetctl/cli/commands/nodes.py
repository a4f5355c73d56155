"""Machines of pools."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.queries import look
from fleetctl.cli.types import Count
from fleetctl.cli.wiring import open_engine
from fleetctl.render import capacity as views
from fleetctl.render.document import Paragraph, Verdict
from fleetctl.render.objects import names_of

_COUNT = Count(min=1)


@click.group("nodes", cls=Group, no_args_is_help=True)
def nodes() -> None:
    """Nodes: the machines of pools."""


@command("list")
def list_nodes(settings: Settings) -> None:
    """List machines by pool.

    \b
    Example:
      fleetctl nodes list
    """
    with open_engine(settings) as engine:
        seen = look(engine, settings.tenant)
    visible = {item.id for item in seen.of_kind("pool")}
    found = sorted((item for item in seen.nodes if item.pool in visible), key=lambda item: (item.pool, item.name))
    names = names_of(seen.snapshot.objects.values())
    emit(
        settings,
        lambda: [views.nodes_table(found, names) if found else Paragraph("There are no nodes.")],
        lambda: {"result": "ok", "items": [views.node_json(item, names) for item in found]},
    )


@command("join")
@click.option("--pool", metavar="POOL", required=True, help="The pool's id or key.")
@click.option("--name", metavar="NAME", required=True)
@click.option("--gpus", metavar="N", type=_COUNT, required=True)
@click.option("--product", metavar="NAME", help="Such as H100-SXM5-80GB.")
@click.option("--vram-gib", metavar="N", type=_COUNT, help="Of each GPU.")
@click.option("--vcpu", metavar="N", type=_COUNT, help="Logical CPUs installed.")
@click.option("--memory-gib", metavar="N", type=_COUNT, help="Memory installed.")
def join(settings: Settings, pool: str, name: str, gpus: int, **installed: int | str | None) -> None:
    """Add a machine to a pool by hand. Joining again under the same name updates it.

    \b
    Example:
      fleetctl nodes join --pool pool-fra1-h100 --name n1 --gpus 8
    """
    from fleetctl.engine.reservations import join_node

    with open_engine(settings, seals=True) as engine:
        node = join_node(engine, pool=pool, name=name, gpus=gpus, tenant=settings.tenant, **installed)  # type: ignore[arg-type]  # each option has its field's type
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(
        settings,
        lambda: [Verdict(f"Node {node.name} joined {names.get(node.pool, node.pool)} with {node.gpus} GPUs", "good")],
        lambda: {"result": "done", **views.node_json(node, names)},
    )


@command("leave")
@click.argument("node")
def leave(settings: Settings, node: str) -> None:
    """Take a machine out of its pool. Refused while reservations are on it.

    \b
    Example:
      fleetctl nodes leave n1
    """
    from fleetctl.engine.reservations import leave_node

    with open_engine(settings, seals=True) as engine:
        gone = leave_node(engine, node, tenant=settings.tenant)
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(
        settings,
        lambda: [Verdict(f"Node {gone.name} left", "good")],
        lambda: {"result": "done", **views.node_json(gone, names)},
    )


for _command in (list_nodes, join, leave):
    nodes.add_command(_command)
