"""Deleting a tenant: one command, decided and journalled as any other, that also ends what the tenant runs.

Configuration follows from the rules (`capacity.teardown`). Reservations and their claims are no configuration: they end in
the same transaction, before the journal entry, which so pins the entitlement ledger with their releases in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fleetctl.capacity.teardown import REASON
from fleetctl.diagnostics import Diagnostic
from fleetctl.engine.apply import UNACCEPTED_DANGER
from fleetctl.engine.builders import deletion
from fleetctl.engine.calls import WAIT_MS, CallReceipt, Decided, Nothing, call, decided_call
from fleetctl.engine.context import Engine, check_identity
from fleetctl.engine.reservations import end_all, is_running
from fleetctl.errors import SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.model.changes import Changes
from fleetctl.model.ids import object_name
from fleetctl.model.operational import Reservation
from fleetctl.plan.dangers import NOBODY, Danger, danger_id
from fleetctl.plan.deletion import Teardown, teardown_of
from fleetctl.ports import Reader, Writer

METHOD = "tenants.delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A tenant that is gone, and what ended with it; nothing (`teardown` is absent) when it was deleted before."""

    receipt: CallReceipt
    teardown: Teardown | None
    accepted: tuple[str, ...] = ()


class NotAccepted(SafetyRefused):
    """Nobody accepted what the deletion takes down; `teardown` is what that is."""

    def __init__(self, diagnostic: Diagnostic, teardown: Teardown) -> None:
        super().__init__(diagnostic)
        self.teardown = teardown


def delete_tenant(
    engine: Engine, key: str, *, tenant: str, accept: Iterable[str] = (), wait_ms: int = WAIT_MS
) -> Deleted:
    """Delete the tenant `key` as `tenant`, all that ends with it in one transaction. `accept` are danger ids.

    Raises EngineRefused with everything that stands in the way, NotAccepted, SafetyRefused, Busy.
    """
    danger = danger_id("remove", object_name("tenant", key))
    accepted = (danger,) if danger in (given := frozenset(accept)) else ()
    found: list[Teardown] = []

    def end_what_runs(tx: Writer, decided: Decided) -> Mapping[str, Any]:
        running = _running(tx, key)
        teardown = _teardown(tx, decided, running)
        if not accepted:
            raise NotAccepted(_not_accepted(teardown.danger(), given), teardown)
        found.append(replace(teardown, reservations=end_all(engine, tx, decided.usages, running, REASON)))
        return {"accepted": list(accepted), "ended": _ended(decided.changes, running)}

    receipt = call(
        engine, METHOD, tenant=tenant, request={"key": key}, build=deletion(key), wait_ms=wait_ms, also=end_what_runs
    )
    return Deleted(receipt=receipt, teardown=found[0] if found else None, accepted=accepted if found else ())


def _ended(changes: Changes, running: Iterable[Reservation]) -> list[dict[str, str]]:
    """Everything that ends with the tenant, for those who ask what became of it."""
    ended = {item.id: item.label for item in changes.put}
    ended |= {stone.id: stone.label for stone in changes.drop if stone.kind != "tenant"}
    ended |= {item.id: object_name("reservation", item.id) for item in running}
    return [{"object": label, "id": id} for id, label in sorted(ended.items())]


def survey_deletion(engine: Engine, key: str, *, tenant: str) -> Teardown | None:
    """What deleting the tenant `key` would take down now; None when it was deleted before. Writes nothing.

    Raises EngineRefused with everything that stands in the way, SafetyRefused.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        decided = decided_call(engine, reader, tenant, deletion(key))
        return None if isinstance(decided, Nothing) else _teardown(reader, decided, _running(reader, key))


def _running(reader: Reader, tenant: str) -> list[Reservation]:
    return [item for item in reader.reservations() if item.tenant == tenant and is_running(item)]


def _teardown(reader: Reader, decided: Decided, running: Iterable[Reservation]) -> Teardown:
    return teardown_of(decided.operation, decided.changes, decided.snapshot, running, reader.nodes())


def _not_accepted(danger: Danger, given: Iterable[str]) -> Diagnostic:
    """`given` are accepted ids that no danger has: slips of the hand, most likely."""
    strange = ", ".join(f"`{id}`" for id in sorted(given))
    slip = f" ({strange} is no danger of this command)" if strange else ""
    return UNACCEPTED_DANGER.at(
        f"{danger.id}: {danger.detail}. Refused because {NOBODY}{slip}; look at all of it with `--dry-run`, and accept it "
        f"with `--accept {danger.id}`",
        subject=danger.subject,
    )
