"""`doctor`: whether everything about an engine is as it should be."""

from __future__ import annotations

from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit
from fleetctl.render.health import health_document, health_json


@command("doctor")
def doctor(settings: Settings) -> int:
    """Look at everything: configuration, keys, state, both ledgers from genesis, tables against their fold, witnesses.
    Changes nothing. Exit 3 when something does not verify, 1 when something is missing.

    \b
    Example:
      fleetctl doctor
    """
    from fleetctl.cli.checkup import checkup

    found = checkup(settings)
    emit(settings, lambda: health_document(found), lambda: health_json(found))
    return max((problem.code.exit_code for item in found for problem in item.problems), default=0)
