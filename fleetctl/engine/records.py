"""Journal entries with the documents they name: from an engine's store or from an exported bundle alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from fleetctl.errors import Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.documents import DOCUMENT_MISSING, Documents, named_documents
from fleetctl.ledger.entries import Applied, Called, JournalEvent, Recovered
from fleetctl.model.operation import Operation, OperationError, operation_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One journal entry with the operations it ran. `tenant` is who acted on them, `accepted` are ids of dangers,
    `ended` (`kind/key`, id) of what ended with the object of the operation, `lost` (for people) what a recovery gave up.
    """

    entry: int
    event: JournalEvent
    tenant: str | None
    fleet: str | None
    operations: tuple[Operation, ...]
    origin: tuple[str, str] | None = None
    accepted: tuple[str, ...] = ()
    ended: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()


def records(events: Iterable[tuple[int, JournalEvent]], documents: Documents) -> Iterator[Record]:
    """Entries with their operations, in order. Raises Tampered for a document that is missing or no document of ours."""
    for entry, event in events:
        tenant: str | None = None
        fleet: str | None = None
        origin: tuple[str, str] | None = None
        operations: list[Any] = []
        accepted: tuple[str, ...] = ()
        ended: tuple[tuple[str, str], ...] = ()
        lost: tuple[str, ...] = ()
        if isinstance(event, Applied):
            body = load_document(documents, event.plan.hex(), entry)
            tenant, fleet, operations = body.get("tenant"), event.fleet, body.get("operations", [])
            origin, accepted = origin_of(body), event.accepted or ()
        elif isinstance(event, Called):
            body = load_document(documents, event.request.hex(), entry)
            tenant, operations = body.get("tenant"), [body["operation"]] if "operation" in body else []
            accepted = tuple(body.get("accepted", ()))
            ended = tuple((item["object"], item["id"]) for item in body.get("ended", ()))
        elif isinstance(event, Recovered) and event.evidence:
            account = load_document(documents, event.evidence[0].hex(), entry)
            accepted = tuple(account.get("accepted", ()))
            lost = tuple(map(_lost, account.get("lost", ())))
        try:
            typed = tuple(operation_from_json(item) for item in operations)
        except OperationError as error:
            raise Tampered(
                DOCUMENT_MISSING.at(f"entry {entry} names a document that cannot be read: {error}")
            ) from None
        yield Record(
            entry=entry,
            event=event,
            tenant=tenant,
            fleet=fleet,
            operations=typed,
            origin=origin,
            accepted=accepted,
            ended=ended,
            lost=lost,
        )


def _lost(item: Mapping[str, Any]) -> str:
    where = f"{item.get('ledger')} at {item.get('length')} by {item.get('who')}"
    return f"{where}, {item.get('kept')} kept: {item.get('why')}"


def check_kept(events: Iterable[tuple[int, JournalEvent]], documents: Documents) -> None:
    """Every document that an entry names is there, those too that nothing folds. Raises Tampered."""
    for entry, event in events:
        for digest in named_documents(event):
            load_document(documents, digest.hex(), entry)


def origin_of(plan: Mapping[str, Any]) -> tuple[str, str] | None:
    """(root commit hash, path in the repository) that the body of an applied plan names."""
    return (plan["origin"]["root"], plan["origin"]["path"]) if "origin" in plan else None


def load_document(documents: Documents, digest: str, entry: int) -> dict[str, Any]:
    """A kept JSON document. The store has checked its digest; raises Tampered when there is none."""
    data = documents(digest)
    if data is None:
        raise Tampered(DOCUMENT_MISSING.at(f"journal entry {entry} names document {digest}, which is not kept here"))
    return cast("dict[str, Any]", json.loads(data))
