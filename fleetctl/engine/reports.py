"""What running work has spent and completed so far, and what follows: who yields first, and who is idle (pool/1 §5, §2.7).

Reports are operational state, kept beside the ledger: what a claim is charged is the figure of its release alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from fleetctl.diagnostics import Code, code
from fleetctl.engine.claims import ENTITLEMENT_NOT_FOUND, entitlement_id, tree_state
from fleetctl.engine.context import Engine, check_identity, check_open
from fleetctl.engine.continuing import RunningClaim, added_up, began_ms, running_claim, units_of, whole_report
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.engine.streams import Usages, read_usages
from fleetctl.errors import BadInput, EngineRefused
from fleetctl.frozen import dataclass
from fleetctl.ledger.identifiers import check_identifier
from fleetctl.ledger.usage import OpenClaim
from fleetctl.model.live import LiveObject
from fleetctl.model.operational import Observation, WorkReport
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.idle import IdlePolicy, IdleVerdict, Observed, judge, reclamation_order
from fleetctl.pool1.preemption import Workload, candidates, rank, realised_cost
from fleetctl.pool1.tree import TreeState
from fleetctl.ports import Reader

REPORT_FALLS = code(
    "report-falls",
    "What a claim has spent or completed never falls",
    trigger="`claims report` with less energy or fewer units than the claim's last report",
    engine_code="INVALID_STATE",
)
BAD_REPORT = code(
    "bad-report",
    "A figure of the report is out of range",
    trigger="a report whose units, energy or time is negative, no integer, or beyond 2^63-1",
    engine_code="INVALID_INPUT",
)

WAIT_MS = 60_000
NO_READING = "no-reading"
"""Why there is no verdict on a claim that nobody reported on, or whose report says nothing of a stretch of time."""
STALE = "stale"
"""Why there is none on a claim whose observation ended longer ago than the window, or later than now: it says nothing of the last
window [ours]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What is now known of a running claim, since it began. `changed`: the last report said something else, or there was none.

    `report.claim` is its id in the ledger in force; the sums are those of the id that was named.
    """

    entitlement: str
    report: WorkReport
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A running claim in the order of §5.2. `parent`: that of its entitlement, None for a root.

    `report` has the sums since the work began, over all windows. It is absent when nobody reported; then, and when `undefined`, the
    claim has no known cost. `freed_uj` is what ending it gives back in this window (readings A47), None while nobody knows.
    """

    claim: str
    entitlement: str
    parent: str | None
    devices: int
    reserved_uj: int
    priority: int
    report: WorkReport | None
    freed_uj: int | None
    undefined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """In the order in which they yield. `raw`: every running claim; else only those of entitlements past their guarantee.

    `beneficiary` is the entitlement that the order was asked for: then only claims under its parent are in it.
    """

    raw: bool
    beneficiary: str | None
    order: tuple[Victim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleClaim:
    """The verdict on one running claim, and the test that settled it."""

    claim: str
    entitlement: str
    devices: int
    verdict: IdleVerdict
    why: str
    report: WorkReport | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """Verdicts on every running claim in order of admission, and the idle ones in the order of reclamation."""

    policy: IdlePolicy
    claims: tuple[IdleClaim, ...]
    reclamation_order: tuple[str, ...]


def report(
    engine: Engine,
    *,
    claim: str,
    completed_units: int,
    spent_uj: int,
    grade: Grade,
    observed_ms: int | None = None,
    observed_uj: int | None = None,
    weight_zero: bool = False,
    wait_ms: int = WAIT_MS,
) -> Reported:
    """Keep what a running claim has completed and spent since it began, in the place of its last report.

    `claim` is its id, or one that it had in an earlier window; the sums are since the claim of that id began, and what closed windows
    have of them is taken off. `observed_uj` were spent in the `observed_ms` that end now; both are absent when nobody
    watched. The same report again changes nothing but its time. Raises BadInput for figures out of range, EngineRefused for a claim
    that is not open and for figures that fall.
    """
    check_identifier(claim, "claim")
    try:
        said = WorkReport(
            stream="",
            claim=claim,
            completed_units=completed_units,
            spent_uj=spent_uj,
            grade=grade.value,
            at_ms=engine.clock.now_ms(),
            observation=_observation(spent_uj, observed_ms, observed_uj, weight_zero),
        )
    except ValueError as error:
        raise BadInput(BAD_REPORT.at(str(error), subject=f"claim/{claim}")) from None
    with engine.store.write(wait_ms) as tx:
        check_identity(engine, tx)
        check_open(tx)
        usages = read_usages(engine, tx)
        running = running_claim(engine, tx, usages, claim)
        found = _in_window(tx, usages.stream, running, said)
        last = tx.report(usages.stream, running.claim)
        if last is not None:
            _check_rises(added_up(last, running.counted, tx), replace(said, claim=claim))
        tx.put_report(found)
        return Reported(
            entitlement=running.opened.entitlement,
            report=replace(said, stream=usages.stream, claim=running.claim),
            changed=_said(last) != _said(found),
        )


def _in_window(reader: Reader, stream: str, running: RunningClaim, said: WorkReport) -> WorkReport:
    """The part of a report that falls in the window in force. Raises EngineRefused, BadInput for sums beyond 2^63-1."""
    here = running.here(Figure(energy_uj=said.spent_uj, grade=Grade(said.grade))).energy_uj
    units = said.completed_units - sum(units_of(reader, part) for part in running.counted)
    if units < 0:
        before = said.completed_units - units
        _refuse(
            REPORT_FALLS,
            f"claim {said.claim} had completed {before} units when the window before this one ended, not {said.completed_units}; "
            "give the sum since it began",
            said.claim,
        )
    found = replace(said, stream=stream, claim=running.claim, completed_units=units, spent_uj=here)
    try:
        added_up(found, running.parts, reader)
    except ValueError as error:
        raise BadInput(BAD_REPORT.at(f"with its earlier windows, {error}", subject=f"claim/{said.claim}")) from None
    return found


def victims(engine: Engine, *, raw: bool = False, beneficiary: str | None = None) -> Victims:
    """Running claims in the order of §5.2, from what was reported of them. A claim nobody reported on has no known cost.

    The standard ranks every claim it is given: that is `raw`. Else (ours, readings A41) only claims of entitlements past
    their guarantee are ranked, and for a `beneficiary` (id or key) only those under its parent, which alone make room for it.
    Raises EngineRefused for a beneficiary that is not there, Tampered.
    """
    with engine.store.read() as reader:
        objects, usages, reports = _read(engine, reader)
        whole = {name: whole_report(engine, reader, usages, said) for name, said in reports.items()}
    state = tree_state(objects, usages)
    wanted = None if beneficiary is None else _known(objects, state, beneficiary)
    work = [_workload(name, item, state, whole.get(name)) for name, item in usages.fold.open_claims.items()]
    if not raw:
        work = [item for item in work if _may_yield(state, wanted, item)]
    return Victims(
        raw=raw,
        beneficiary=wanted,
        order=tuple(
            Victim(
                claim=item.id,
                entitlement=item.entitlement,
                parent=state.nodes[item.entitlement].entitlement.parent if item.entitlement in state.nodes else None,
                devices=item.devices,
                reserved_uj=item.reserved_uj,
                priority=item.priority,
                report=whole.get(item.id),
                freed_uj=max(0, item.reserved_uj - reports[item.id].spent_uj) if item.id in reports else None,
                undefined=realised_cost(item) is None,
            )
            for item in rank(work).order
        ),
    )


def idle(engine: Engine, policy: IdlePolicy) -> Idleness:
    """Which running claims are idle, from what was reported of them (§2.7). Never from a missing reading.

    An observation must have ended within the policy's window before now; any other gives no verdict. Of one that is longer than
    the claim has run, no more counts than that: what was watched before says nothing of it, and startup is not idleness [ours].
    """
    with engine.store.read() as reader:
        _, usages, reports = _read(engine, reader)
        began = {name: began_ms(engine, reader, usages, name) for name in reports}
    now = engine.clock.now_ms()
    found, observed = [], []
    for name, opened in sorted(usages.fold.open_claims.items(), key=lambda item: item[1].seq):
        said = reports.get(name)
        reading = None if said is None else _observed(said, opened, began[name])
        if reading is None or said is None:
            verdict, why = IdleVerdict.NO_VERDICT, NO_READING
        elif policy.window_ms and not 0 <= now - said.at_ms <= policy.window_ms:
            verdict, why = IdleVerdict.NO_VERDICT, STALE
        else:
            verdict, test = judge(policy, reading)
            why = test.value
            observed.append(reading)
        found.append(
            IdleClaim(
                claim=name,
                entitlement=opened.entitlement,
                devices=opened.devices,
                verdict=verdict,
                why=why,
                report=said,
            )
        )
    order = tuple(item.id for item in reclamation_order(policy, observed))
    return Idleness(policy=policy, claims=tuple(found), reclamation_order=order)


def _read(engine: Engine, reader: Reader) -> tuple[list[LiveObject], Usages, Mapping[str, WorkReport]]:
    """The sealed objects, verified usage, and reports by claim."""
    check_identity(engine, reader)
    usages = read_usages(engine, reader)
    objects = load_objects(reader)
    check_state(engine, reader, digests_of(objects))
    opened = usages.fold.open_claims
    reports = {item.claim: item for item in reader.reports(usages.stream) if item.claim in opened}
    return list(objects.values()), usages, reports


def _workload(name: str, opened: OpenClaim, state: TreeState, said: WorkReport | None) -> Workload:
    """Without a report nobody measured anything: the grade says so, and the figures of 0 are never a cost."""
    node = state.nodes.get(opened.entitlement)
    return Workload(
        id=name,
        entitlement=opened.entitlement,
        # An entitlement with open claims cannot leave the tree, so the default priority stands for none.
        priority=node.entitlement.priority if node is not None else 0,
        spent_uj=said.spent_uj if said is not None else 0,
        grade=Grade(said.grade) if said is not None else Grade.ESTIMATOR,
        completed_units=said.completed_units if said is not None else 0,
        devices=opened.devices,
        reserved_uj=opened.reserved_uj,
    )


def _observed(said: WorkReport, opened: OpenClaim, began: int) -> Observed | None:
    seen = said.observation
    if seen is None:
        return None
    return Observed(
        id=said.claim,
        devices=opened.devices,
        observed_ms=min(seen.observed_ms, max(0, said.at_ms - began)),
        energy_uj=seen.energy_uj,
        grade=Grade(said.grade),
        weight_zero=seen.weight_zero,
    )


def _observation(
    spent_uj: int, observed_ms: int | None, observed_uj: int | None, weight_zero: bool
) -> Observation | None:
    """Raises ValueError for figures out of range or that contradict each other."""
    if observed_ms is None and observed_uj is None and not weight_zero:
        return None
    if observed_ms is None or observed_uj is None:
        raise ValueError("the time that was observed and the energy spent in it go together")
    seen = Observation(observed_ms=observed_ms, energy_uj=observed_uj, weight_zero=weight_zero)
    if observed_uj > spent_uj:
        raise ValueError(f"{observed_uj} uJ while it was observed are more than the {spent_uj} uJ since it began")
    return seen


def _may_yield(state: TreeState, beneficiary: str | None, work: Workload) -> bool:
    """Whether the claim's entitlement is past its guarantee, and under the beneficiary's parent when there is one (A41)."""
    return work.entitlement in state.nodes and bool(candidates(state, beneficiary or work.entitlement, [work]))


def _known(objects: list[LiveObject], state: TreeState, id_or_key: str) -> str:
    found = entitlement_id(objects, id_or_key)
    if found not in state.nodes:
        detail = f"there is no entitlement with the id or key {id_or_key}; `fleetctl entitlements tree` shows them"
        raise EngineRefused(ENTITLEMENT_NOT_FOUND.at(detail, subject=f"entitlement/{id_or_key}"))
    return found


def _check_rises(last: WorkReport, found: WorkReport) -> None:
    for what, before, after in (
        ("spent", last.spent_uj, found.spent_uj),
        ("completed", last.completed_units, found.completed_units),
    ):
        if after < before:
            unit = "uJ" if what == "spent" else "units"
            _refuse(
                REPORT_FALLS,
                f"claim {found.claim} had {what} {before} {unit} when it was last reported on, not {after}; give the sum "
                "since it began",
                found.claim,
            )


def _said(item: WorkReport | None) -> object:
    """What a report says, without when."""
    return item and (item.completed_units, item.spent_uj, item.grade, item.observation)


def _refuse(kind: Code, detail: str, claim: str) -> NoReturn:
    raise EngineRefused(kind.at(detail, subject=f"claim/{claim}"))
