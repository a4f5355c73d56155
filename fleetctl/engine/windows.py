"""The windows of the entitlement ledger: which there are, when the next rotation is due, and whether they follow from each other.

A window lasts as long as the `period` of the root entitlements says. There is one ledger for all of them, so one rotation ends
the window of each: it is due once the first period is over, and early for every root whose own is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from fleetctl.diagnostics import Diagnostic, code
from fleetctl.engine.context import ENTITLEMENTS, Engine, usage_stream
from fleetctl.engine.initial import initial_statement
from fleetctl.engine.journals import journal_history
from fleetctl.engine.streams import address_at, head_of, openings, rotations, verify_stream
from fleetctl.errors import BadInput, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Recovered, Rotated
from fleetctl.ledger.identifiers import LedgerId, stream_of
from fleetctl.ledger.verify import Verification
from fleetctl.ledger.windows import FIRST_WINDOW, ROTATION_BROKEN, Window, faults_of_windows, name_of, succession
from fleetctl.model.bodies import EntitlementBody
from fleetctl.model.live import LiveObject
from fleetctl.plan.dangers import Danger
from fleetctl.ports import Reader
from fleetctl.units import format_duration, format_ms

ROTATION_DUE = code(
    "rotation-due",
    "The period of the entitlement ledger is over",
    trigger="`drift` and `status` once the `period` of a root entitlement has passed since the ledger's window began",
    severity="warning",
)
NO_WINDOW = code(
    "no-such-window",
    "The entitlement ledger has no such window",
    trigger="`--window` names no window of the engine",
)

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One window, from Unix milliseconds to Unix milliseconds; `ended_ms` is None for the one in force."""

    stream: str
    ledger: LedgerId
    began_ms: int
    ended_ms: int | None
    given_up: bool = False
    """Whether a recovery closed it, with entries missing."""

    @property
    def name(self) -> str:
        """What people call it: `2026w50`; `entitlements` for the first."""
        return name_of(self.ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The `period` of one root entitlement, and when it is over (Unix milliseconds)."""

    label: str
    period_ms: int
    over_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowState:
    """The windows, oldest first, the last in force; and the periods that the roots of the tree give it, the first to end in front."""

    spans: tuple[Span, ...]
    periods: tuple[Period, ...]

    @property
    def in_force(self) -> Span:
        return self.spans[-1]

    @property
    def due_ms(self) -> int | None:
        """When the first period is over. None while no root has one."""
        return self.periods[0].over_ms if self.periods else None

    def over(self, now_ms: int) -> tuple[Period, ...]:
        return tuple(item for item in self.periods if item.over_ms <= now_ms)

    def running(self, now_ms: int) -> tuple[Period, ...]:
        return tuple(item for item in self.periods if item.over_ms > now_ms)


def window_state(engine: Engine, reader: Reader, objects: Iterable[LiveObject]) -> WindowState:
    """The windows of one reading, under the live entitlements among `objects`. Raises Tampered."""
    spans = spans_of(engine, reader)
    roots = [(item, cast(EntitlementBody, item.body())) for item in objects if item.kind == "entitlement"]
    periods = [
        Period(
            label=item.label, period_ms=body.period_ms, over_ms=_period_began(spans, body.period_ms) + body.period_ms
        )
        for item, body in roots
        if body.parent is None and body.period_ms is not None
    ]
    return WindowState(spans=spans, periods=tuple(sorted(periods, key=lambda item: (item.over_ms, item.label))))


def spans_of(engine: Engine, reader: Reader) -> tuple[Span, ...]:
    """Every window, oldest first. Raises Tampered."""
    began, ledger = initial_statement(engine, reader).at_ms, engine.ledger(ENTITLEMENTS)
    spans: list[Span] = []
    for _, _, event in openings(engine, reader):
        after = event.to_ledger if isinstance(event, Rotated) else event.ledger
        if after != ledger:  # a recovery that gave up entries of the journal alone opens no window
            lost = isinstance(event, Recovered)
            spans.append(
                Span(stream=stream_of(ledger), ledger=ledger, began_ms=began, ended_ms=event.at_ms, given_up=lost)
            )
            began, ledger = event.at_ms, after
    return (*spans, Span(stream=stream_of(ledger), ledger=ledger, began_ms=began, ended_ms=None))


def _period_began(spans: Sequence[Span], period_ms: int) -> int:
    """Since when the period in force counts. A rotation that comes late does not put off the next: it counts from when it was due."""
    began = spans[0].began_ms
    for span in spans[1:]:
        passed = (span.began_ms - began) // period_ms
        began = began + passed * period_ms if passed > 0 else span.began_ms
    return began


def find_window(engine: Engine, reader: Reader, named: str) -> Span:
    """A window by its name, its stream or its ledger's id. Raises BadInput."""
    spans = spans_of(engine, reader)
    for span in spans:
        if named in (span.name, span.stream, span.ledger):
            return span
    known = ", ".join(span.name for span in spans)
    raise BadInput(NO_WINDOW.at(f"there is no window `{named[:80]}`; there are {known}"))


def rotation_due(state: WindowState, now_ms: int) -> Diagnostic | None:
    """That a rotation is due, as a warning; None while it is not."""
    over = state.over(now_ms)
    if not over:
        return None
    early = early_rotation(state, now_ms)
    mend = (
        "rotate it with `fleetctl ledger rotate`"
        if early is None
        else f"{_listed(state.running(now_ms))}: `fleetctl ledger rotate --accept {early.id}` ends it for all of them"
    )
    return ROTATION_DUE.at(
        f"the window of {state.in_force.ledger} began {format_ms(state.in_force.began_ms)}, and {_listed(over, 'ended')}; {mend}"
    )


def early_rotation(state: WindowState, now_ms: int, spent_uj: int = 0) -> Danger | None:
    """The danger of a rotation now; None when the period of every root that has one is over. `spent_uj` would count afresh."""
    running = state.running(now_ms)
    if state.periods and not running:
        return None
    why = _listed(running) if running else "no root entitlement has a `period`, so no rotation is due"
    return Danger(
        kind="reset-usage",
        subject="ledger",
        figures={"spentUj": spent_uj},
        detail=f"ends the window of {state.in_force.ledger} early: {why}. What is spent in it would not count any more",
    )


def _listed(periods: Sequence[Period], verb: str = "ends") -> str:
    shown = [
        f"the period of {item.label} ({format_duration(item.period_ms)}) {verb} {format_ms(item.over_ms)}"
        for item in periods[:_SHOWN]
    ]
    more = len(periods) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def check_closed(engine: Engine, reader: Reader) -> None:
    """Every closed window still ends where its rotation says: the cheap part of `check_succession`. Raises Tampered."""
    for event in rotations(engine, reader):
        stream = stream_of(event.from_ledger)
        head, found = head_of(engine, reader, stream), reader.stream(stream)
        wrong = None
        if (head.length, head.address) != (event.from_length, event.from_head) or found is None or not found.closed:
            wrong = "the state has it otherwise"
        elif next(iter(reader.entries(stream, event.from_length)), None) is not None:
            wrong = "entries follow"
        elif address_at(reader, head, event.from_length) != event.from_head:
            wrong = "its last entry is another"
        if wrong:
            raise Tampered(
                ROTATION_BROKEN.at(
                    f"{event.from_ledger} was closed at {event.from_length} entries: {wrong}; restore a backup"
                )
            )


def check_succession(engine: Engine, reader: Reader) -> list[Verification]:
    """Verify every window from genesis, and that each goes on from the one before, oldest first. Raises Tampered.

    Verify the journal first: its entries are only read here.
    """
    check_closed(engine, reader)
    journal = list(journal_history(engine, reader))
    known = dict.fromkeys((engine.ledger(FIRST_WINDOW), *succession(journal)))
    streams = {item.stream for item in reader.streams()}
    windows = {
        ledger: Window(
            verification=verify_stream(engine, reader, stream_of(ledger)),
            data=b"".join(reader.entries(stream_of(ledger))),
        )
        for ledger in known
        if stream_of(ledger) in streams
    }
    faults = list(faults_of_windows(journal, windows, current=engine.ledger(usage_stream(reader))))
    if faults:
        raise Tampered(ROTATION_BROKEN.at(f"{fault}; restore a backup") for fault in faults)
    return [window.verification for window in windows.values()]
