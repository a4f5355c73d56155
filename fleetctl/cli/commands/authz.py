"""The authorization rows of pools."""

from __future__ import annotations

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.wiring import open_engine
from fleetctl.render import capacity as views
from fleetctl.render.objects import names_of


@click.group("authz", cls=Group, no_args_is_help=True)
def authz() -> None:
    """Authorization rows: what tenant policies can decide on."""


@command("list")
def list_authz(settings: Settings) -> None:
    """List the authorization rows of pools, by tenant.

    \b
    Example:
      fleetctl authz list --as acme
    """
    from fleetctl.engine.context import check_identity

    with open_engine(settings) as engine, engine.store.read() as reader:
        check_identity(engine, reader)
        rows = [row for row in reader.authz() if settings.tenant in (None, row.tenant)]
        names = names_of(reader.objects())
    emit(settings, lambda: views.authz_document(rows, names), lambda: views.authz_json(rows, names))


authz.add_command(list_authz)
