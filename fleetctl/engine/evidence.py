"""What ended claims of a class have cost, over all windows of the ledger (pool/1 §2.6).

A rotation ends claims that go on running: what they are charged there, and what their last part is charged in a later window, are
parts of runs and no evidence of what a run costs [ours].
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetctl.engine.context import Engine
from fleetctl.engine.streams import LEDGER_TAMPERED, Usages, beginning, opened_by, rotations
from fleetctl.errors import NotVerified, Tampered
from fleetctl.ledger.checkpoint import open_checkpoint
from fleetctl.ledger.entries import Rotated
from fleetctl.ledger.identifiers import stream_of
from fleetctl.ledger.usage import ClassEvidence
from fleetctl.ledger.verify import examine_from
from fleetctl.ports import Reader

NO_EVIDENCE = ClassEvidence(0, 0, 0, 0)


def class_evidence(
    engine: Engine, reader: Reader, usages: Usages, entitlement: str, workload_class: str
) -> ClassEvidence:
    """What releases of a class under an entitlement have shown, in this window and all before it. Raises Tampered."""
    found = [usages.fold.evidence.get((entitlement, workload_class), NO_EVIDENCE)]
    found += [_in_window(engine, reader, event, entitlement, workload_class) for event in rotations(engine, reader)]
    return merged(found)


def merged(found: Iterable[ClassEvidence]) -> ClassEvidence:
    """Evidence from several places as one: counts add, and the spread is that of all."""
    parts = list(found)
    observed = [item for item in parts if item.evidence]
    return ClassEvidence(
        seen=sum(item.seen for item in parts),
        evidence=sum(item.evidence for item in parts),
        min_uj=min((item.min_uj for item in observed), default=0),
        max_uj=max((item.max_uj for item in observed), default=0),
    )


def _in_window(engine: Engine, reader: Reader, event: Rotated, entitlement: str, workload_class: str) -> ClassEvidence:
    """What a closed window had shown before its rotation moved the open claims: from its checkpoint, else from its entries."""
    stream, key = stream_of(event.from_ledger), (entitlement, workload_class)
    sealed = reader.checkpoint(stream)
    if sealed is not None:
        try:
            point = open_checkpoint(sealed, ledger=event.from_ledger, key=engine.steward_key)
        except NotVerified:  # a cache: without it this takes longer
            point = None
        if point is not None and (point.length, point.head) == (event.ledger_length, event.ledger_head):
            return next(
                (seen for name, class_, seen in point.evidence if (name, class_) == key),
                NO_EVIDENCE,
            )
    start = beginning(event.from_ledger, opened_by(engine, reader, stream))
    data = b"".join(reader.entries(stream, 0, event.ledger_length))
    try:
        walked = examine_from(start, data, key=engine.steward_key).require()
    except NotVerified as error:
        raise Tampered(LEDGER_TAMPERED.at(item.detail) for item in error.diagnostics) from None
    if (walked.length, walked.head) != (event.ledger_length, event.ledger_head) or walked.fold is None:
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"{event.from_ledger} is not the one that its rotation pins at {event.ledger_length} entries; restore a backup"
            )
        )
    return walked.fold.evidence.get(key, NO_EVIDENCE)
