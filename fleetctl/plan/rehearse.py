"""The operations of a plan decided in their order, as an apply will decide them: what the engine would refuse, the plan refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import Diagnostic, Span
from fleetctl.errors import FleetctlError
from fleetctl.model.bodies import Body
from fleetctl.model.live import Snapshot, State
from fleetctl.model.operation import Operation
from fleetctl.units import UnixMs

Step = tuple[Operation, Body | None, str | None, Span | None]
"""An operation, the typed body of what it makes and its canonical JSON where they are known, and where it is declared."""


def rehearse(steps: Iterable[Step], actor: Actor, snapshot: Snapshot, now: UnixMs) -> list[Diagnostic]:
    """Every refusal, in order. One that only follows from another is left out: a creation that names what cannot be
    made, a removal of what something that stays still names.
    """
    working = Working(snapshot)
    problems: list[Diagnostic] = []
    unmade: set[str] = set()
    kept: set[str] = set()
    for item, body, text, span in steps:
        if item.verb == "create" and unmade and unmade & _strings(item.after):
            unmade.add(item.id)
            continue
        if item.verb == "remove" and item.id in kept:
            kept |= _strings(item.before)
            continue
        live = working.get(item.kind, item.id)
        if live is not None and item.before is not None:
            working.know_state(live, item.before)
        try:
            working.apply(decide(working, item, actor, now, body, text))
        except FleetctlError as error:
            problems += [found if found.span else replace(found, span=span) for found in error.diagnostics]
            if item.verb == "create":
                unmade.add(item.id)
            elif item.verb == "remove":
                kept |= _strings(item.before)
    return problems


def _strings(state: State | None) -> set[str]:
    """Everything in a state that might be the id of another object."""
    return {value for value in (state or {}).values() if isinstance(value, str)}
