"""Single commands that move configuration: as the acting tenant, shown in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fleetctl.cli.command import Settings
from fleetctl.cli.output import emit
from fleetctl.cli.wiring import acting_tenant, open_engine
from fleetctl.render.objects import names_of
from fleetctl.render.outcome import call_document, call_json

if TYPE_CHECKING:
    from fleetctl.engine.calls import Build
    from fleetctl.engine.context import Engine


def run_call(settings: Settings, method: str, build: Callable[[Engine], Build], **request: Any) -> int:
    """Run one command of the engine and show its receipt: exit 5 while a required witness is missing.

    Raises EngineRefused in the seed's codes, SafetyRefused, Busy.
    """
    from fleetctl.engine.calls import call

    with open_engine(settings, seals=True) as engine:
        receipt = call(engine, method, tenant=acting_tenant(settings), request=_present(request), build=build(engine))
        with engine.store.read() as reader:
            names = names_of(reader.objects())
    emit(settings, lambda: call_document(receipt, names), lambda: call_json(receipt))
    return 0 if receipt.entry is None or receipt.witnessed.enough() else 5


def _present(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if value is not None}
