"""Deleting a tenant: what would end is shown first, and nothing ends before that is accepted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fleetctl.cli.command import Settings
from fleetctl.cli.output import emit, note, page
from fleetctl.cli.wiring import acting_tenant, open_engine
from fleetctl.render.objects import names_of

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine


def survey(settings: Settings, tenant: str) -> int:
    """Show what the deletion would take down. Raises as `delete`, but for the danger."""
    from fleetctl.engine.deletion import METHOD, survey_deletion
    from fleetctl.render import deletion as views

    with open_engine(settings) as engine:
        found = survey_deletion(engine, tenant, tenant=acting_tenant(settings))
        names = _names(engine)
    if found is None:
        emit(
            settings,
            lambda: views.gone_document(tenant),
            lambda: {"result": "nothing-to-do", "method": METHOD, "entry": None},
        )
    else:
        emit(
            settings,
            lambda: views.survey_document(found, names),
            lambda: views.survey_json(METHOD, found, names),
        )
    return 0


def delete(settings: Settings, tenant: str, accept: tuple[str, ...]) -> int:
    """Delete a tenant and show what ended with it: exit 5 while a required witness is missing.

    Raises EngineRefused with everything that stands in the way; SafetyRefused for the danger, once people were shown it.
    """
    from fleetctl.engine.deletion import NotAccepted, delete_tenant
    from fleetctl.render import deletion as views

    with open_engine(settings, seals=True) as engine:
        try:
            done = delete_tenant(engine, tenant, tenant=acting_tenant(settings), accept=accept)
        except NotAccepted as refused:
            if settings.format == "text":
                note(page(settings, views.survey_document(refused.teardown, _names(engine)), sys.stderr) + "\n")
            raise
        names = _names(engine)
    receipt = done.receipt
    emit(
        settings,
        lambda: views.deleted_document(receipt, done.teardown, names) if done.teardown else views.gone_document(tenant),
        lambda: views.deleted_json(receipt, done.teardown, done.accepted, names),
    )
    return 0 if receipt.entry is None or receipt.witnessed.enough() else 5


def _names(engine: Engine) -> dict[str, str]:
    with engine.store.read() as reader:
        return names_of(reader.objects())
