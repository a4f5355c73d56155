"""What a recovery brought back, and what it gave up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.render.attestation import WitnessedView, attestation_facts, attestation_json, attestation_notes
from fleetctl.render.document import Block, Document, Facts, Items, Paragraph, Verdict
from fleetctl.render.words import counted


class RegainedView(Protocol):
    """Entries that one ledger got back."""

    @property
    def ledger(self) -> str: ...
    @property
    def length(self) -> int: ...
    @property
    def whole(self) -> int: ...
    @property
    def sources(self) -> Sequence[str]: ...


class LossView(Protocol):
    """Something that was given up."""

    @property
    def id(self) -> str: ...
    @property
    def detail(self) -> str: ...


class RecoveryView(Protocol):
    """What the engine answers to a recovery."""

    @property
    def result(self) -> str: ...
    @property
    def regained(self) -> Sequence[RegainedView]: ...
    @property
    def documents(self) -> int: ...
    @property
    def given_up(self) -> Sequence[LossView]: ...
    @property
    def opened(self) -> Sequence[str]: ...
    @property
    def place(self) -> int | None: ...
    @property
    def ended(self) -> Sequence[str]: ...
    @property
    def unheld(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def witnessed(self) -> WitnessedView: ...


def recovery_json(found: RecoveryView) -> dict[str, Any]:
    """The answer of `ledger recover`."""
    out: dict[str, Any] = {
        "result": found.result,
        "regained": [
            {"ledger": item.ledger, "length": item.length, "whole": item.whole, "sources": list(item.sources)}
            for item in found.regained
        ],
        "documents": found.documents,
        "given_up": [{"danger": item.id, "detail": item.detail} for item in found.given_up],
        "opened": list(found.opened),
        "entry": found.place,
        "ended": list(found.ended),
        "unheld": list(found.unheld),
    }
    if found.result == "nothing-to-do":
        return out | ({"notes": list(found.notes)} if found.notes else {})
    told = attestation_json(found.witnessed)
    notes = [*found.notes, *told.pop("notes", [])]
    return out | told | ({"notes": notes} if notes else {})


def recovery_document(found: RecoveryView) -> Document:
    notes: list[Block] = [Items([(note, "warn") for note in found.notes])] if found.notes else []
    if found.result == "nothing-to-do":
        return [Verdict("Nothing to recover: this state has all that was asked for", "good"), *notes]
    words = (
        "Recovered: the ledgers are whole again"
        if not found.given_up
        else "Went on in new ledgers: entries that were signed are given up"
    )
    blocks: list[Block] = [Verdict(words, "good" if not found.given_up else "bad"), Facts(_facts(found))]
    if found.given_up:
        blocks.append(Items([(f"{item.id}: {item.detail}", "bad") for item in found.given_up]))
    if found.unheld:
        blocks.append(
            Paragraph(
                f"{counted(len(found.unheld), 'claim')} of reservations that this state does not know stay open until "
                f"`fleetctl claims release --claim ID` ends them: {', '.join(found.unheld)}",
                "warn",
            )
        )
    return [*blocks, *notes, *attestation_notes(found.witnessed)]


def _facts(found: RecoveryView) -> list[tuple[str, str]]:
    facts = []
    for item in found.regained:
        whence = f", from {', '.join(item.sources)}" if item.sources else ""
        facts.append((item.ledger, f"{item.length} → {counted(item.whole, 'entry', 'entries')}{whence}"))
    if found.documents:
        facts.append(("documents", str(found.documents)))
    facts += [("opened", ledger) for ledger in found.opened]
    if found.place is not None:
        facts.append(("entry", f"{found.place} of the journal"))
    if found.ended:
        facts.append(("ended", ", ".join(found.ended)))
    return [*facts, *attestation_facts(found.witnessed)]
