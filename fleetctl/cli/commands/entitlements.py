"""The entitlement tree and what is in use of it (pool/1)."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.wiring import open_engine
from fleetctl.render import entitlements as views


@click.group("entitlements", cls=Group, no_args_is_help=True)
def entitlements() -> None:
    """Entitlements: the tree of guarantees and limits."""


@command("tree")
def tree(settings: Settings) -> None:
    """Show the entitlement tree: guarantees, what is spent, reserved and borrowed, and what still fits.

    `share` is what its siblings' unspent guarantees would lend it, `headroom` the largest observed estimate that its energy
    admits now, `grade` the weakest of the figures that count.

    \b
    Example:
      fleetctl entitlements tree
    """
    from fleetctl.engine.standing import read_standings

    with open_engine(settings) as engine:
        found = read_standings(engine)
    emit(settings, lambda: views.tree_document(found), lambda: views.tree_json(found))


@command("usage")
@click.argument("entitlement", required=False)
def usage(settings: Settings, entitlement: str | None) -> None:
    """Show what entitlements have spent, reserved and hold: one by id or key, or all.

    \b
    Example:
      fleetctl entitlements usage ent-vision
    """
    from fleetctl.engine.builders import find
    from fleetctl.engine.standing import read_standings

    with open_engine(settings) as engine:
        found = read_standings(engine)
    only = None if entitlement is None else find(found.snapshot, "entitlement", entitlement).id
    emit(settings, lambda: views.usage_document(found, only), lambda: views.usage_json(found, only))


for _command in (tree, usage):
    entitlements.add_command(_command)
