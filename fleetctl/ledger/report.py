"""What an audit of a ledger found, as data: its reasons by code, its JSON, and where a later audit goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, NotVerified
from fleetctl.frozen import dataclass
from fleetctl.ledger.documents import DOCUMENT_MISSING
from fleetctl.ledger.identifiers import LedgerId
from fleetctl.ledger.receipts import (
    Grading,
    Judged,
)
from fleetctl.ledger.verify import AXES, LEDGER_FAULT, Verification
from fleetctl.ledger.windows import ROTATION_BROKEN

BELOW_MIN_LENGTH = code(
    "below-min-length",
    "A ledger is shorter than asked for",
    trigger="`ledger verify --min-length N` on a ledger of fewer entries",
    exit_code=3,
)
RESUME_MISMATCH = code(
    "resume-mismatch",
    "A ledger does not continue the one verified last time",
    trigger="`ledger verify --resume FILE` when entries are missing or history has changed since",
    exit_code=3,
)
RECEIPT_FAILED = code(
    "receipt-failed",
    "A witness receipt contradicts the ledger, or is not what it claims to be",
    trigger="a receipt with verdict fork, ahead, bad-signature, malformed, not-independent or witness-equivocation",
    exit_code=3,
)
JOURNAL_DISAGREES = code(
    "journal-disagrees",
    "The journal pins an entitlement ledger that is not this one",
    trigger="a journal entry whose ledger length and head differ from the entitlement stream beside it",
    exit_code=3,
)
CROSS_CHECK_FAILED = code(
    "cross-check-failed",
    "The second opinion refuses an entry that verified",
    trigger="`ledger verify --cross-check` when pycose does not verify an entry",
    exit_code=3,
)
BAD_RESUME = code(
    "bad-resume-file",
    "A `--resume` file is not the JSON of a verification of this ledger",
    trigger="`ledger verify --resume FILE` with another file, a failed verification, or another ledger's",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """How far a stream went when it was last verified."""

    ledger: LedgerId
    length: int
    head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the auditor knows from outside the files."""

    min_length: int | None = None
    max_receipt_age_ms: int | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A failure that belongs to no axis."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit of one stream found; `journal` is the report of the journal beside it, `windows` those of the closed windows
    before it, oldest first.
    """

    verification: Verification
    receipts: tuple[Judged, ...]
    grading: Grading
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    resumed_from: int | None = None
    journal: Report | None = field(default=None)
    windows: tuple[Report, ...] = ()

    @property
    def others(self) -> tuple[Report, ...]:
        """The reports beside this one."""
        return (*self.windows, *((self.journal,) if self.journal is not None else ()))

    @property
    def ok(self) -> bool:
        """Whether this stream and those beside it hold, receipts and bounds included."""
        return self.verification.ok and not self.reasons and all(item.ok for item in self.others)

    def require(self) -> Report:
        """Itself, when everything holds. Raises NotVerified."""
        if self.ok:
            return self
        found = [
            LEDGER_FAULT.at(f"{self.verification.ledger}: entry {fault.index} fails {fault.axis} with {fault.code}")
            for fault in self.verification.first.values()
        ]
        found += [_REASONS[reason.code].at(reason.detail) for reason in self.reasons]
        for item in self.others:
            try:
                item.require()
            except NotVerified as error:
                found += error.diagnostics
        raise NotVerified(found)

    def to_json(self) -> dict[str, object]:
        """The JSON of `fleetctl ledger verify`; `reasons` and `notes` are there when there are any."""
        seen = self.verification
        first = seen.first_fault
        out: dict[str, object] = {
            "result": "ok" if self.ok else "failed",
            "ledger": seen.ledger,
            "length": seen.length,
            "head": seen.head.hex(),
            "grade": self.grading.grade,
            "co_located": self.grading.co_located,
        }
        if self.grading.witnessed_length is not None:
            out["witnessed_length"] = self.grading.witnessed_length
        if self.resumed_from is not None:
            out["resumed_from"] = self.resumed_from
        out["first_fault"] = {"index": first.index, "axis": first.axis, "code": first.code} if first else None
        out["axes"] = {axis: _axis_json(seen, axis) for axis in AXES}
        out["receipts"] = [item.to_json() for item in self.receipts]
        if self.reasons:
            out["reasons"] = list(dict.fromkeys(reason.code for reason in self.reasons))
        if self.reasons or self.notes:
            out["notes"] = [*(reason.detail for reason in self.reasons), *self.notes]
        usage = seen.usage if self.ok else None
        if usage is not None:
            out["usage"] = {
                name: {
                    "spent_uj": item.spent_uj,
                    "reserved_uj": item.reserved_uj,
                    "devices": item.devices,
                    "grade": item.grade,
                }
                for name, item in usage.items()
            }
        if self.journal is not None:
            out["journal"] = self.journal.to_json()
        if self.windows:
            out["windows"] = [item.to_json() for item in self.windows]
        return out


_REASONS = {
    item.name: item
    for item in (
        BELOW_MIN_LENGTH,
        RESUME_MISMATCH,
        RECEIPT_FAILED,
        JOURNAL_DISAGREES,
        CROSS_CHECK_FAILED,
        DOCUMENT_MISSING,
        ROTATION_BROKEN,
    )
}


def parse_resume(document: object, ledger: LedgerId) -> Resume:
    """What the JSON of an earlier successful verification says about `ledger`: itself, its journal or its windows. Raises BadInput."""
    nested = [document.get("journal"), *_list(document.get("windows"))] if isinstance(document, Mapping) else []
    for item in (document, *nested):
        if isinstance(item, Mapping) and item.get("ledger") == ledger and item.get("result") == "ok":
            length, head = item.get("length"), item.get("head")
            if type(length) is int and length >= 0 and isinstance(head, str) and len(head) == 64:
                try:
                    return Resume(ledger=ledger, length=length, head=bytes.fromhex(head))
                except ValueError:
                    break
    raise BadInput(
        BAD_RESUME.at(
            f"it holds no successful verification of {ledger}; give the output of `ledger verify --format json`"
        )
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _axis_json(seen: Verification, axis: str) -> dict[str, object]:
    fault = next((item for name, item in seen.first.items() if name == axis), None)
    return {"ok": False, "index": fault.index, "code": fault.code} if fault else {"ok": True}
