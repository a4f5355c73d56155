"""Claims on entitlements: decided by pool/1 §4 and appended in one compare-and-append on the head decided on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn, cast

from fleetctl.diagnostics import Code, code
from fleetctl.engine.context import Engine, check_identity, check_open
from fleetctl.engine.continuing import RunningClaim, running_claim, used_before
from fleetctl.engine.evidence import class_evidence
from fleetctl.engine.journal import append_sealed
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.engine.streams import Usages, keep_checkpoint, last_usage_at_ms, read_usages
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import EngineRefused
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import Sealed, seal
from fleetctl.ledger.entries import Admitted, Released
from fleetctl.ledger.identifiers import check_identifier
from fleetctl.ledger.windows import stem_of
from fleetctl.model.bodies import EntitlementBody
from fleetctl.model.live import LiveObject
from fleetctl.model.operational import ClaimRow
from fleetctl.pool1 import estimates
from fleetctl.pool1.admission import Verdict, decide
from fleetctl.pool1.claim import Claim, Figure, charged
from fleetctl.pool1.estimates import DEFAULT_REQUIRED, Declined, Estimate, derive_counted
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage
from fleetctl.ports import Reader, Writer

DUPLICATE_CLAIM = code(
    "duplicate-claim",
    "The claim id was used before",
    trigger="a claim is admitted under an id that the ledger has already admitted, released or not",
    engine_code="CONFLICT",
)
CLAIM_HELD = code(
    "claim-held",
    "A running reservation holds the claim",
    trigger="`claims release` of the claim that a reservation made, while it runs",
    engine_code="INVALID_STATE",
)
ENTITLEMENT_NOT_FOUND = code(
    "entitlement-not-found",
    "No live entitlement has this id or key",
    trigger="a claim names an entitlement by a key that several fleets use, or that none has",
    engine_code="NOT_FOUND",
)

WAIT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer to a claim. `entry` is the index of its Admitted entry; absent for Queue and Deny, which write nothing.

    `estimate` is what the claim's figure was derived from, absent when it was given.
    """

    claim: str
    entitlement: str
    verdict: Verdict
    entry: int | None
    stream: str
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unestimated:
    """No answer to a claim whose estimate was to be derived: there are fewer than `required` observed runs of its class."""

    claim: str
    entitlement: str
    workload_class: str
    declined: Declined
    required: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A claim that ended: what is charged in place of its reservation, at the figure's grade.

    `claim` is its id in the ledger in force. `named` is the one that it was asked for by, `settled_uj` what earlier windows were
    charged since the claim of that id began.
    """

    claim: str
    named: str
    settled_uj: int
    entitlement: str
    charged: Figure
    reserved_uj: int
    entry: int
    stream: str


def admit(
    engine: Engine,
    *,
    claim: str,
    entitlement: str,
    gang_size: int,
    devices_per_member: int,
    estimate_uj: int,
    grade: Grade,
    workload_class: str | None = None,
    wait_ms: int = WAIT_MS,
) -> Admission:
    """Decide a claim and, when it is admitted, append it. `entitlement` is an id or a key.

    Raises BadInput for ids and classes outside the ledger's alphabet, EngineRefused for a claim id used before, SafetyRefused
    where a witness knows more than this state, Tampered.
    """
    check_class(workload_class)
    with _deciding(engine, claim, wait_ms) as (tx, usages, objects):
        wanted = Claim(
            entitlement=entitlement_id(objects, entitlement),
            gang_size=gang_size,
            devices_per_member=devices_per_member,
            estimate_uj=estimate_uj,
            grade=grade,
            claim_class=workload_class,
        )
        return admit_in(engine, tx, usages, tree_state(objects, usages), claim, wanted)


def admit_derived(
    engine: Engine,
    *,
    claim: str,
    entitlement: str,
    gang_size: int,
    devices_per_member: int,
    workload_class: str,
    required: int = DEFAULT_REQUIRED,
    wait_ms: int = WAIT_MS,
) -> Admission | Unestimated:
    """As `admit`, with an estimate derived from what the entitlement's own ended claims of the class have cost (§2.6).

    With too little evidence nothing is decided and nothing appended. Also raises BadInput for an empty class.
    """
    check_class(workload_class)
    with _deciding(engine, claim, wait_ms) as (tx, usages, objects):
        _check_unused(tx, usages, claim)
        state, name = tree_state(objects, usages), entitlement_id(objects, entitlement)
        seen = class_evidence(engine, tx, usages, name, workload_class)
        derived = derive_counted(
            workload_class,
            seen=seen.seen,
            evidence=seen.evidence,
            spread_uj=(seen.min_uj, seen.max_uj),
            required=required,
        )
        # An entitlement that is not there is denied before its estimate is looked at (§4.1).
        if isinstance(derived, Declined) and name in state.nodes:
            return Unestimated(
                claim=claim,
                entitlement=name,
                workload_class=workload_class,
                declined=derived,
                required=max(1, required),
            )
        estimate = derived if isinstance(derived, Estimate) else None
        wanted = Claim(
            entitlement=name,
            gang_size=gang_size,
            devices_per_member=devices_per_member,
            estimate_uj=estimate.energy_uj if estimate else 0,
            grade=estimate.grade if estimate else Grade.ESTIMATOR,
            claim_class=workload_class,
        )
        return replace(admit_in(engine, tx, usages, state, claim, wanted), estimate=estimate)


@contextmanager
def _deciding(engine: Engine, claim: str, wait_ms: int) -> Iterator[tuple[Writer, Usages, list[LiveObject]]]:
    """A write transaction on verified ground: usage and the sealed objects as of it."""
    check_identifier(claim, "claim")
    refuse_rollback(engine)
    with engine.store.write(wait_ms) as tx:
        check_identity(engine, tx)
        check_open(tx)
        usages = read_usages(engine, tx)
        objects = load_objects(tx)
        check_state(engine, tx, digests_of(objects))
        yield tx, usages, list(objects.values())


def admit_in(engine: Engine, tx: Writer, usages: Usages, state: TreeState, claim: str, wanted: Claim) -> Admission:
    """Decide and append in an open transaction, on the usage read in it. A Queue or a Deny writes nothing (§6.2)."""
    _check_unused(tx, usages, claim)
    verdict = decide(state, wanted)
    if not verdict.admitted:
        return Admission(claim=claim, entitlement=wanted.entitlement, verdict=verdict, entry=None, stream=usages.stream)
    sealed = seal(
        Admitted(
            at_ms=max(engine.clock.now_ms(), last_usage_at_ms(engine, tx, usages)),
            claim=claim,
            entitlement=wanted.entitlement,
            workload_class=wanted.claim_class,
            reserved_uj=verdict.reserved_uj,
            borrowed_uj=verdict.borrowed_uj,
            devices=verdict.devices,
            grade=wanted.grade.value,
        ),
        usages.head,
        engine.sealing(),
    )
    append_sealed(tx, usages.stream, sealed)
    keep_checkpoint(engine, tx, usages)
    tx.put_claims([ClaimRow(stream=usages.stream, claim=claim, entitlement=wanted.entitlement, admitted_at=sealed.seq)])
    return Admission(
        claim=claim, entitlement=wanted.entitlement, verdict=verdict, entry=sealed.seq, stream=usages.stream
    )


def release(engine: Engine, *, claim: str, reading: Figure | None = None, wait_ms: int = WAIT_MS) -> Release:
    """End a claim, named by its id or by one that it had in an earlier window. Without a reading its reservation is charged, at
    Estimator (readings A38); a reading is the sum since the claim began that is named.

    Raises EngineRefused for a claim that is not open, or that a running reservation holds: both end in one command;
    SafetyRefused where a witness knows more than this state.
    """
    check_identifier(claim, "claim")
    refuse_rollback(engine)
    with engine.store.write(wait_ms) as tx:
        check_identity(engine, tx)
        check_open(tx)
        usages = read_usages(engine, tx)
        found = running_claim(engine, tx, usages, claim)
        holder = _holder(tx, found)
        if holder is not None:
            _refuse(
                CLAIM_HELD,
                f"reservation {holder} runs on it; end that with `fleetctl reservations end {holder}`",
                claim,
            )
        return release_found(engine, tx, usages, found, reading)


def _holder(reader: Reader, found: RunningClaim) -> str | None:
    """The running reservation that holds a claim: it has the id of its first claim, unless a recovery lost what led from that one."""
    first = reader.reservation(found.first)
    if first is not None and first.state == "active":
        return first.id
    if stem_of(found.claim) is None:
        return None
    return next(
        (item.id for item in reader.reservations() if (item.claim, item.state) == (found.claim, "active")), None
    )


def release_in(engine: Engine, tx: Writer, usages: Usages, claim: str, reading: Figure | None) -> Release:
    """End the claim of a reservation, in an open transaction. A reading is the sum since the reservation began."""
    found = running_claim(engine, tx, usages, claim)
    return release_found(engine, tx, usages, replace(found, named=found.first), reading)


def release_found(engine: Engine, tx: Writer, usages: Usages, found: RunningClaim, reading: Figure | None) -> Release:
    """Release an open claim in an open transaction, and forget what was reported of it."""
    figure = charged(found.opened.reserved_uj, None if reading is None else found.here(reading))
    (released,) = _releases(engine, tx, usages, [(found, figure)])
    return released


def release_unread(engine: Engine, tx: Writer, usages: Usages, claims: Iterable[str]) -> tuple[Release, ...]:
    """As `release_in`, for many claims of which nobody has a reading."""
    found = [running_claim(engine, tx, usages, claim) for claim in claims]
    return _releases(engine, tx, usages, [(item, charged(item.opened.reserved_uj, None)) for item in found])


def _releases(
    engine: Engine, tx: Writer, usages: Usages, ending: Sequence[tuple[RunningClaim, Figure]]
) -> tuple[Release, ...]:
    """One entry after the other, on the usage read in the transaction."""
    if not ending:
        return ()
    at_ms, head = max(engine.clock.now_ms(), last_usage_at_ms(engine, tx, usages)), usages.head
    entries: list[Sealed] = []
    for found, figure in ending:
        event = Released(at_ms=at_ms, claim=found.claim, spent_uj=figure.energy_uj, grade=figure.grade.value)
        entries.append(seal(event, head, engine.sealing()))
        head = entries[-1].head
    append_sealed(tx, usages.stream, *entries)
    keep_checkpoint(engine, tx, usages)
    done = list(zip(ending, entries, strict=True))
    tx.put_claims(
        ClaimRow(
            stream=usages.stream,
            claim=found.claim,
            entitlement=found.opened.entitlement,
            admitted_at=found.opened.seq,
            released_at=sealed.seq,
        )
        for (found, _), sealed in done
    )
    for found, _ in ending:
        for stream, id in ((usages.stream, found.claim), *((part.stream, part.claim) for part in found.parts)):
            tx.drop_report(stream, id)
    return tuple(
        Release(
            claim=found.claim,
            named=found.named,
            settled_uj=found.settled_uj,
            entitlement=found.opened.entitlement,
            charged=figure,
            reserved_uj=found.opened.reserved_uj,
            entry=sealed.seq,
            stream=usages.stream,
        )
        for (found, figure), sealed in done
    )


def check_class(workload_class: str | None) -> None:
    """Refuse a class that no entry could hold, whatever the verdict would be. Raises BadInput."""
    if workload_class is not None:
        estimates.check_class(workload_class)
        check_identifier(workload_class, "class")


def _check_unused(tx: Writer, usages: Usages, claim: str) -> None:
    """No window has admitted a claim of this id: people go on naming a claim in later ones."""
    if usages.fold.is_used(claim) or used_before(tx, usages.stream, claim) is not None:
        _refuse(DUPLICATE_CLAIM, f"claim {claim} was admitted before; every claim needs an id of its own", claim)


def tree_state(objects: Iterable[LiveObject], usages: Usages) -> TreeState:
    """The declared entitlement tree with the usage of the stream in force. `objects` are the sealed ones."""
    tree = Tree(entitlement_of(item) for item in objects if item.kind == "entitlement")
    used = {
        name: Usage(spent_uj=use.spent_uj, reserved_uj=use.reserved_uj, devices=use.devices)
        for name, use in usages.entitlements.items()
    }
    return TreeState(tree, used)


def entitlement_id(objects: Iterable[LiveObject], id_or_key: str) -> str:
    """The id of an entitlement given by id or key, alone or as kind/key; the text itself when nothing has it, so that
    §4.1 can deny it.

    Raises EngineRefused when several have the key.
    """
    id_or_key = id_or_key.removeprefix("entitlement/")
    found = [item for item in objects if item.kind == "entitlement" and id_or_key in (item.id, item.key)]
    if len(found) > 1:
        ids = ", ".join(sorted(item.id for item in found))
        _refuse(
            ENTITLEMENT_NOT_FOUND,
            f"{len(found)} entitlements have the key {id_or_key}; name one by id: {ids}",
            id_or_key,
        )
    return found[0].id if found else check_identifier(id_or_key, "entitlement")


def entitlement_of(item: LiveObject) -> Entitlement:
    """An entitlement as pool/1 decides with it."""
    body = cast(EntitlementBody, item.body())
    return Entitlement(
        id=item.id,
        parent=body.parent,
        guarantee_uj=body.guarantee_uj,
        guarantee_devices=body.guarantee_devices,
        over_quota_weight=body.over_quota_weight,
        limit_uj=body.limit_uj,
        priority=body.priority,
    )


def _refuse(kind: Code, detail: str, claim: str) -> NoReturn:
    raise EngineRefused(kind.at(detail, subject=f"claim/{claim}"))
