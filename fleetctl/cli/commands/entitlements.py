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


WINDOW = click.option(
    "--window",
    metavar="NAME",
    help="A window of the ledger, such as 2026w50, or `entitlements` for the first; the one in force if absent.",
)


@command("tree")
@WINDOW
def tree(settings: Settings, window: str | None) -> None:
    """Show the entitlement tree: guarantees, what is spent, reserved and borrowed, and what still fits.

    `share` is what its siblings' unspent guarantees would lend it, `headroom` the largest observed estimate that its energy
    admits now, `grade` the weakest of the figures that count.

    \b
    Example:
      fleetctl entitlements tree
      fleetctl entitlements tree --window 2026w49
    """
    from fleetctl.engine.standing import read_standings

    with open_engine(settings) as engine:
        found = read_standings(engine, window)
    emit(settings, lambda: views.tree_document(found), lambda: views.tree_json(found))


@command("usage")
@click.argument("entitlement", required=False)
@WINDOW
def usage(settings: Settings, entitlement: str | None, window: str | None) -> None:
    """Show what entitlements have spent, reserved and hold: one by id or key, or all.

    \b
    Example:
      fleetctl entitlements usage ent-vision
      fleetctl entitlements usage --window 2026w49
    """
    from fleetctl.engine.standing import named, read_standings

    with open_engine(settings) as engine:
        found = read_standings(engine, window)
    only = None if entitlement is None else named(found, entitlement)
    emit(settings, lambda: views.usage_document(found, only), lambda: views.usage_json(found, only))


for _command in (tree, usage):
    entitlements.add_command(_command)
