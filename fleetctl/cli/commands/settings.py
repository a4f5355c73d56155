"""An engine's settings: thresholds, approvals, witnesses."""

from __future__ import annotations

import click

from fleetctl.cli.calling import run_call
from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.settingvalues import SETTINGS, setting_edit, settings_rows
from fleetctl.cli.wiring import open_engine
from fleetctl.render.document import Facts


@click.group("settings", cls=Group, no_args_is_help=True)
def settings_group() -> None:
    """An engine's settings: thresholds, required approvals and witnesses, and their keys."""


@command("list")
def list_settings(settings: Settings) -> None:
    """Show the engine's settings.

    \b
    Example:
      fleetctl settings list
    """
    from fleetctl.engine.receipts import read_settings
    from fleetctl.model.codec import encode

    with open_engine(settings) as engine, engine.store.read() as reader:
        body = read_settings(reader)
    emit(
        settings,
        lambda: [Facts(settings_rows(body))],
        lambda: {"result": "ok", "settings": encode("settings", body)},
    )


@command("set")
@click.argument("name", metavar="NAME", type=click.Choice(tuple(SETTINGS)))
@click.argument("value")
def set_setting(settings: Settings, name: str, value: str) -> int:
    """Change the setting NAME, as `settings list` shows it; the change is journalled. Keys are given as ID=PUB,ID=PUB
    and lists as A,B; `-` empties them.

    \b
    Example:
      fleetctl settings set requiredWitnesses 1
      fleetctl settings set witnesses audit-1=audit-1.pub.pem
    """
    from fleetctl.engine.builders import settings_change

    edit = setting_edit(name, value)
    return run_call(settings, "settings.set", lambda _: settings_change(edit), name=name, value=value)


for _command in (list_settings, set_setting):
    settings_group.add_command(_command)
