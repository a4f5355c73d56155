"""Claims that go on over windows: people name the one that they made, the ledger in force has it under another id.

A rotation ends `c9` in the old window and admits what is left of it as `c9:2` in the new one. Figures count from when the claim
began that is named: of those of `c9`, what earlier windows have charged is taken off; `c9:2` began with its window. How one
leads to the other is read from the sealed entries of the rotation, never from names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from fleetctl.diagnostics import Code, code
from fleetctl.engine.context import Engine
from fleetctl.engine.streams import LEDGER_TAMPERED, Usages, entry_at, opened_by
from fleetctl.errors import EngineRefused, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Admitted, Released
from fleetctl.ledger.identifiers import Grade, stream_of
from fleetctl.ledger.usage import OpenClaim
from fleetctl.ledger.windows import carried_count, stem_of, successor, weaker
from fleetctl.model.operational import WorkReport
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade as EnergyGrade
from fleetctl.ports import Reader
from fleetctl.units import format_energy

CLAIM_NOT_OPEN = code(
    "claim-not-open",
    "The claim is not open",
    trigger="a release or a report of a claim that was never admitted or is released already",
    engine_code="INVALID_STATE",
)
BELOW_SETTLED = code(
    "figure-below-settled",
    "Closed windows have charged more of the claim than it is said to have spent",
    trigger="a release or a report with less energy than earlier windows were charged: figures are sums since the claim began",
    engine_code="INVALID_STATE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one closed window was charged of a claim, under the id that it had there."""

    stream: str
    claim: str
    spent_uj: int
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningClaim:
    """An open claim: as the ledger in force has it, with its parts in closed windows, oldest first.

    `named` is the id by which it was asked for; `counted` are the parts from that one on.
    """

    claim: str
    opened: OpenClaim
    named: str
    parts: tuple[Part, ...] = ()

    @property
    def first(self) -> str:
        """The id with which it began."""
        return self.parts[0].claim if self.parts else self.claim

    @property
    def counted(self) -> tuple[Part, ...]:
        ids = [part.claim for part in self.parts]
        return self.parts[ids.index(self.named) :] if self.named in ids else ()

    @property
    def settled_uj(self) -> int:
        """What closed windows have charged since the claim began that is named."""
        return sum(part.spent_uj for part in self.counted)

    def here(self, total: Figure) -> Figure:
        """The part of a sum since the claim began that falls in the window in force, at the weakest grade in it.

        Raises EngineRefused when the closed windows have charged more than that: they are never changed.
        """
        settled = self.settled_uj
        if total.energy_uj < settled:
            _refuse(
                BELOW_SETTLED,
                f"earlier windows were charged {format_energy(settled)} of {self.named}, which is {self.claim} now; give the sum since "
                f"{self.named} began, which is no less, or name {self.claim} and give what it spent in this window",
                self.named,
            )
        grades = [part.grade for part in self.counted if part.spent_uj]
        return Figure(energy_uj=total.energy_uj - settled, grade=EnergyGrade(weaker(total.grade.value, *grades)))


def running_claim(engine: Engine, reader: Reader, usages: Usages, claim: str) -> RunningClaim:
    """An open claim, named by its id in the ledger in force or by one that it had in an earlier window.

    Raises EngineRefused for one that was never admitted or has ended, Tampered.
    """
    opened = usages.fold.open_claims.get(claim)
    if opened is not None:
        parts = tuple(parts_of(engine, reader, usages, claim))[::-1]
        return RunningClaim(claim=claim, opened=opened, named=claim, parts=parts)
    for id, found in _may_continue(usages, claim):
        parts = tuple(parts_of(engine, reader, usages, id))[::-1]
        if claim in (part.claim for part in parts):
            return RunningClaim(claim=id, opened=found, named=claim, parts=parts)
    _refuse(CLAIM_NOT_OPEN, f"claim {claim} {_why(reader, usages, claim)}", claim)


def parts_of(engine: Engine, reader: Reader, usages: Usages, claim: str) -> Iterator[Part]:
    """What closed windows were charged of an open claim, the newest first. Raises Tampered."""
    rotated, index = usages.opened_by, usages.fold.open_claims[claim].seq
    while rotated is not None and index < carried_count(rotated):
        stream = stream_of(rotated.from_ledger)
        released, _ = entry_at(engine, reader, stream, rotated.ledger_length + index)
        if not isinstance(released, Released):
            raise Tampered(LEDGER_TAMPERED.at(f"{rotated.from_ledger} does not end with the claims that were open"))
        yield Part(stream=stream, claim=released.claim, spent_uj=released.spent_uj, grade=released.grade)
        rotated = opened_by(engine, reader, stream)
        if rotated is not None:
            index = _admitted_at(engine, reader, stream, released.claim)


def began_ms(engine: Engine, reader: Reader, usages: Usages, claim: str) -> int:
    """When an open claim was first admitted, in whichever window that was. Raises Tampered."""
    at_ms = usages.fold.open_claims[claim].at_ms
    if usages.fold.is_carried(claim):
        *_, first = parts_of(engine, reader, usages, claim)
        at_ms = entry_at(engine, reader, first.stream, _admitted_at(engine, reader, first.stream, first.claim))[0].at_ms
    return at_ms


def used_before(reader: Reader, stream: str, claim: str) -> str | None:
    """The window other than `stream` that has admitted a claim of this id; None when none has."""
    for item in reader.streams():
        if item.stream != stream and reader.claim(item.stream, claim) is not None:
            return item.stream
    return None


def whole_report(engine: Engine, reader: Reader, usages: Usages, last: WorkReport) -> WorkReport:
    """A report of a running claim's window as sums since the work began, over all windows."""
    if not usages.fold.is_carried(last.claim):
        return last
    return added_up(last, parts_of(engine, reader, usages, last.claim), reader)


def added_up(last: WorkReport, parts: Iterable[Part], reader: Reader) -> WorkReport:
    """A report of a window with what some earlier parts had spent and completed."""
    spent, units, grades = last.spent_uj, last.completed_units, [last.grade]
    for part in parts:
        spent += part.spent_uj
        units += units_of(reader, part)
        grades += [part.grade] if part.spent_uj else []
    return WorkReport(
        stream=last.stream,
        claim=last.claim,
        completed_units=units,
        spent_uj=spent,
        grade=weaker(*grades),
        at_ms=last.at_ms,
        observation=last.observation,
    )


def units_of(reader: Reader, part: Part) -> int:
    """What a claim had completed in a closed window, by the last report there."""
    found = reader.report(part.stream, part.claim)
    return 0 if found is None else found.completed_units


def _may_continue(usages: Usages, claim: str) -> list[tuple[str, OpenClaim]]:
    """Open claims that went on from the window before and whose ids could come from this one."""
    stems = {stem_of(successor(claim, carried=carried, is_taken=lambda _: False)) for carried in (False, True)}
    return [
        (id, found)
        for id, found in usages.fold.open_claims.items()
        if usages.fold.is_carried(id) and stem_of(id) in stems
    ]


def _admitted_at(engine: Engine, reader: Reader, stream: str, claim: str) -> int:
    """The index of a claim's admission, as that entry itself says."""
    row = reader.claim(stream, claim)
    event = None if row is None else entry_at(engine, reader, stream, row.admitted_at)[0]
    if row is None or not isinstance(event, Admitted) or event.claim != claim:
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"the index of claims of {engine.ledger(stream)} does not find {claim}; run `fleetctl state rebuild`"
            )
        )
    return row.admitted_at


def _why(reader: Reader, usages: Usages, claim: str) -> str:
    """Why a claim is not open, and what to do."""
    look = "`fleetctl claims list` shows the open ones"
    if usages.fold.is_used(claim):
        return f"was released already; {look}"
    window = used_before(reader, usages.stream, claim)
    if window is None:
        return f"was never admitted; {look}"
    row, name = reader.claim(window, claim), window.partition(":")[2] or window
    if row is not None and row.released_at is None:  # a recovery closed that window, and admitted what was open in it
        return f"of the window {name} goes on under another id; {look}"
    return f"of the window {name} was released already; {look}"


def _refuse(kind: Code, detail: str, claim: str) -> NoReturn:
    raise EngineRefused(kind.at(detail, subject=f"claim/{claim}"))
