"""How far heads are witnessed, for every result that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.render.document import Block, Items, Paragraph


class ReceiptView(Protocol):
    """The newest receipt of one witness for one stream."""

    @property
    def witness(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def length(self) -> int: ...
    @property
    def verdict(self) -> str: ...


class WitnessedView(Protocol):
    """What the engine answers about its witnesses."""

    @property
    def grade(self) -> str: ...
    @property
    def receipts(self) -> Sequence[ReceiptView]: ...
    @property
    def co_located(self) -> bool: ...
    @property
    def covering(self) -> int: ...
    @property
    def required(self) -> int: ...
    @property
    def missing(self) -> Sequence[str]: ...
    @property
    def known(self) -> int: ...
    @property
    def notes(self) -> Sequence[str]: ...


def attestation_json(found: WitnessedView) -> dict[str, Any]:
    """`grade`, `co_located`, `receipts`; `witnesses` where several are known or some are required; `notes` when there are any."""
    out: dict[str, Any] = {
        "grade": found.grade,
        "co_located": found.co_located,
        "receipts": [
            {"witness": item.witness, "stream": item.stream, "length": item.length, "verdict": item.verdict}
            for item in found.receipts
        ],
    }
    if found.required or found.known > 1:
        out["witnesses"] = {
            "required": found.required,
            "covering": found.covering,
            "missing": list(found.missing),
        }
    if found.notes:
        out["notes"] = list(dict.fromkeys(found.notes))
    return out


def attestation_facts(found: WitnessedView) -> list[tuple[str, str]]:
    """Names and values for a list of facts."""
    facts = [("grade", f"{found.grade}{' (the witness is co-located)' if found.co_located else ''}")]
    if found.required or found.known > 1:
        asked = f" of {found.required} required" if found.required else f" of {found.known}"
        missing = f"; not {', '.join(found.missing)}" if found.missing else ""
        facts.append(("witnesses", f"{found.covering}{asked}{missing}"))
    facts += [(f"  {item.stream}", f"{item.verdict} at {item.length} by {item.witness}") for item in found.receipts]
    return facts


def attestation_notes(found: WitnessedView) -> list[Block]:
    """What is missing, said plainly."""
    blocks: list[Block] = []
    if found.notes:
        blocks.append(Items([(note, "warn") for note in dict.fromkeys(found.notes)]))
    if found.covering < found.required:
        blocks.append(
            Paragraph(
                f"{found.covering} of {found.required} required witnesses have countersigned: "
                "`fleetctl ledger witness` asks again, and exits 0 once all have.",
                "bad",
            )
        )
    if found.grade != "witnessed":
        said = f"The ledgers are {found.grade}: nobody but the steward vouches for their newest entries."
        again = "" if found.notes else " `fleetctl ledger witness` asks the witnesses again."
        blocks.append(Paragraph(said + again, "warn"))
    return blocks
