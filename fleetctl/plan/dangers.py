"""What in a plan deserves a second look. Computed by the planner for readers and again under the write lock for real.

Each danger has an id `kind:object` and figures: integers that say how bad it is. An acceptance holds up to the
figures that were planned; a danger that got worse is not the one that was accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, cast

from fleetctl.diagnostics import code
from fleetctl.errors import SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.ledger.fields import MAX_LIST
from fleetctl.model.bodies import OfferBody
from fleetctl.model.codec import unwide, wide
from fleetctl.model.declared import Acceptance
from fleetctl.model.ids import ObjectId, object_name
from fleetctl.model.live import DIRTY, FleetRecord, LiveObject, Snapshot
from fleetctl.model.operation import Operation
from fleetctl.plan.provenance import Provenance, reverted
from fleetctl.units import end_of_date_ms, format_energy

DangerKind = Literal[
    "remove", "withdraws", "shrink-below-use", "unprotect", "share", "terminate", "reset-usage", "revert", "origin"
]

TOO_MANY_DANGERS = code(
    "too-many-dangers",
    "The plan has more dangers than one journal entry can name",
    trigger=f"a plan, or a plan file as its dangers now are, has more than {MAX_LIST} dangers",
    exit_code=3,
)

_SHOWN = 5  # objects that one danger names
NOBODY = "nobody accepted it"
PAST = "its acceptance is past its `until`"
"""Why a danger is not accepted that is as it was planned; every other reason wants a new plan."""


def danger_id(kind: DangerKind, subject: str) -> str:
    """`kind:object`."""
    return f"{kind}:{subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """One danger. `figures` are compared one by one with those that were accepted; `subject` is `kind/key`; `detail` is for people."""

    kind: DangerKind
    subject: str
    detail: str
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """What an acceptance names."""
        return danger_id(self.kind, self.subject)

    def to_json(self) -> dict[str, object]:
        figures = {name: wide(value) for name, value in sorted(self.figures.items())}
        return {"id": self.id, "kind": self.kind, "object": self.subject, "detail": self.detail, "figures": figures}


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    operations: Sequence[Operation]
    fleet: str
    snapshot: Snapshot
    provenance: Provenance

    def removed(self, kind: str) -> Iterator[tuple[Operation, LiveObject]]:
        for item in self.operations:
            if item.verb == "remove" and item.kind == kind:
                live = self.snapshot.objects.get((item.kind, item.id))
                if live is not None:
                    yield item, live


def find_dangers(
    operations: Sequence[Operation], fleet: str, snapshot: Snapshot, provenance: Provenance
) -> tuple[Danger, ...]:
    """All dangers of a list of operations over the snapshot they start from, by id."""
    view = _View(operations=operations, fleet=fleet, snapshot=snapshot, provenance=provenance)
    found = [danger for rule in _RULES for danger in rule(view)]
    return tuple(sorted(found, key=lambda item: item.id))


def check_sealable(dangers: Sequence[Danger]) -> None:
    """One entry names every danger that was accepted, so a plan with more of them can never be applied. Raises SafetyRefused."""
    if len(dangers) > MAX_LIST:
        kinds = Counter(danger.kind for danger in dangers)
        shown = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        raise SafetyRefused(
            TOO_MANY_DANGERS.at(
                f"it has {len(dangers)} dangers ({shown}), and an apply seals at most {MAX_LIST} accepted ones; make the change "
                "in parts: leave some of these objects in the files as they are live, apply, and change those next"
            )
        )


def unaccepted(
    dangers: Iterable[Danger], acceptances: Iterable[Acceptance], planned: Mapping[str, Mapping[str, int]], now_ms: int
) -> list[tuple[Danger, str]]:
    """The dangers that nobody accepted as they now are, each with why.

    `planned` maps danger ids to the figures that the plan showed; a danger that was not planned has none.
    """
    valid: dict[str, bool] = {}
    for item in acceptances:
        current = item.until is None or now_ms < end_of_date_ms(item.until)
        valid[item.danger] = valid.get(item.danger, False) or current
    out = []
    for danger in dangers:
        if danger.id not in valid:
            out.append((danger, NOBODY))
        elif not valid[danger.id]:
            out.append((danger, PAST))
        elif danger.id not in planned:
            out.append((danger, "it arose after the plan was made"))
        elif worse := _worse(danger.figures, planned[danger.id]):
            out.append((danger, f"it is worse than what was accepted ({worse})"))
    return out


def figures_from_json(data: Mapping[str, Any]) -> dict[str, int]:
    """The figures of a danger as a plan's context holds them. Raises ValueError."""
    return {name: unwide(value) for name, value in data.items()}


def _worse(now: Mapping[str, int], planned: Mapping[str, int]) -> str:
    grown = [f"{name} {planned.get(name, 0)} → {value}" for name, value in now.items() if value > planned.get(name, 0)]
    return ", ".join(sorted(grown))


def _remove(view: _View) -> Iterator[Danger]:
    for item, live in view.removed("pool"):
        use = view.snapshot.usage.in_pool(live.id)
        if use.reservations:
            yield Danger(
                kind="remove",
                subject=item.label,
                figures={"reservations": use.reservations, **use.resources},
                detail=f"archives a pool with {_held(use.reservations, use.resources)}; they run to their end, nothing new starts",
            )
    gone = {live.id for _, live in view.removed("pool")}
    for item, live in view.removed("offer"):
        body = cast(OfferBody, live.body())
        use = view.snapshot.usage.by_tenant(body.pool, body.to)
        if use.reservations and body.pool not in gone:
            yield Danger(
                kind="remove",
                subject=item.label,
                figures={"reservations": use.reservations, **use.resources},
                detail=f"withdraws a pool from {body.to}, who has {_held(use.reservations, use.resources)} in it; "
                "they run to their end, nothing new starts",
            )


def _withdraws(view: _View) -> Iterator[Danger]:
    pools = {live.id: item for item, live in view.removed("pool")}
    if not pools:
        return
    lost: dict[ObjectId, list[LiveObject]] = {}
    for live in view.snapshot.objects.values():
        if live.kind == "offer" and live.fleet not in (None, view.fleet):
            pool = ObjectId(cast(OfferBody, live.body()).pool)
            if pool in pools:
                lost.setdefault(pool, []).append(live)
    for pool, offers in lost.items():
        fleets = ", ".join(sorted({str(offer.fleet) for offer in offers}))
        yield Danger(
            kind="withdraws",
            subject=pools[pool].label,
            figures={"offers": len(offers)},
            detail=f"takes {counted(len(offers), 'offer')} from fleet {fleets}: {some(sorted(offer.label for offer in offers))}",
        )


def _shrink(view: _View) -> Iterator[Danger]:
    usage = view.snapshot.usage
    for item in view.operations:
        if item.verb not in ("update", "adopt") or item.before is None or item.after is None:
            continue
        if item.kind == "offer":
            used = usage.by_tenant(str(item.before.get("pool")), str(item.before.get("to"))).resources
            yield from _quota_shrink(item, "quota", used)
        elif item.kind == "pool":
            live = view.snapshot.objects.get((item.kind, item.id))
            used = usage.by_tenant(item.id, live.tenant if live else "").resources
            yield from _quota_shrink(item, "ownerQuota", used)
        elif item.kind == "entitlement":
            yield from _entitlement_shrink(item, view.snapshot)


def _quota_shrink(item: Operation, name: str, used: Mapping[str, int]) -> Iterator[Danger]:
    was, now = _counts(item.before, name), _counts(item.after, name)
    short = {
        resource: amount - now.get(resource, 0)
        for resource, amount in used.items()
        if now.get(resource, 0) < amount and now.get(resource, 0) < was.get(resource, 0)
    }
    if short:
        parts = (
            f"{resource} {was.get(resource, 0)} → {now.get(resource, 0)} with {used[resource]} in use"
            for resource in sorted(short)
        )
        yield Danger(
            kind="shrink-below-use",
            subject=item.label,
            figures=short,
            detail=f"{', '.join(parts)}; what runs keeps running, nothing new fits until use falls",
        )


def _entitlement_shrink(item: Operation, snapshot: Snapshot) -> Iterator[Danger]:
    use = snapshot.usage.of_entitlement(item.id)
    figures, parts = {}, []
    for group, name, used, show in (
        ("guarantee", "energyUj", use.total_uj, format_energy),
        ("guarantee", "devices", use.devices, str),
        ("limit", "energyUj", use.total_uj, format_energy),
    ):
        was, now = _figure(item.before, group, name), _figure(item.after, group, name)
        if now is not None and now < used and (was is None or now < was):
            figures[f"{group}.{name}"] = used - now
            shown = "no limit" if was is None else show(was)
            parts.append(f"{group} {shown} → {show(now)} with {show(used)} in use")
    if figures:
        yield Danger(
            kind="shrink-below-use",
            subject=item.label,
            figures=figures,
            detail=f"{', '.join(parts)}; open claims stay, new ones queue until use falls",
        )


def _unprotect(view: _View) -> Iterator[Danger]:
    for item in view.operations:
        if item.before is not None and item.after is not None:
            if item.before.get("protect") is True and item.after.get("protect") is not True:
                yield Danger(
                    kind="unprotect", subject=item.label, detail="takes protection off: a later plan may remove it"
                )


def _share(view: _View) -> Iterator[Danger]:
    owned = [live for live in view.snapshot.objects.values() if live.fleet == view.fleet and not live.archived]
    pools = {live.id for _, live in view.removed("pool")}
    removed = [item for item in view.operations if item.verb == "remove" and not _under(item, pools, view.snapshot)]
    inventory = view.snapshot.usage.inventory_gpus
    gpus = sum(inventory.get(live.id, 0) for live in owned if live.kind == "pool")
    lost = sum(inventory.get(pool, 0) for pool in pools)
    percent = view.snapshot.settings().share_threshold_percent
    if len(removed) * 100 > len(owned) * percent or lost * 100 > gpus * percent:
        yield Danger(
            kind="share",
            subject=object_name("fleet", view.fleet),
            figures={"objects": len(removed), "gpus": lost},
            detail=f"removes {len(removed)} of the fleet's {len(owned)} objects and {lost} of its {gpus} GPUs in "
            f"inventory: more than {percent} %",
        )


def _under(item: Operation, pools: set[ObjectId], snapshot: Snapshot) -> bool:
    live = snapshot.objects.get((item.kind, item.id)) if item.kind == "offer" else None
    return live is not None and cast(OfferBody, live.body()).pool in pools


def _reset_usage(view: _View) -> Iterator[Danger]:
    """An entitlement that leaves (removed or released) while a new one takes its name, or else its place in the tree."""
    created = [item for item in view.operations if item.verb == "create" and item.kind == "entitlement"]
    lost: dict[str, dict[str, int]] = {}
    for gone in view.operations:
        if gone.verb not in ("remove", "release") or gone.kind != "entitlement" or gone.before is None:
            continue
        used = view.snapshot.usage.of_entitlement(gone.id).total_uj
        heir = _heir(gone.before, created) if used else None
        if heir is not None:
            lost.setdefault(heir.label, {})[gone.label] = used
    for label, gone_use in lost.items():
        total = sum(gone_use.values())
        yield Danger(
            kind="reset-usage",
            subject=label,
            figures={"spentUj": total},
            detail=f"takes the place of {', '.join(sorted(gone_use))}, whose {format_energy(total)} spent would not count "
            "any more",
        )


def _heir(gone: Mapping[str, Any], created: Sequence[Operation]) -> Operation | None:
    def by(*names: str) -> Operation | None:
        return next((item for item in created if all((item.after or {}).get(n) == gone.get(n) for n in names)), None)

    return by("name") or by("parent", "tenant")


def _revert(view: _View) -> Iterator[Danger]:
    record = view.snapshot.fleets.get(view.fleet)
    touched = reverted(view.operations, view.fleet, view.snapshot, view.provenance)
    if record is not None and record.commit is not None and touched:
        dirty = record.commit.endswith(DIRTY)
        why = "uncommitted files" if dirty else "a commit that is not an ancestor of this one"
        yield Danger(
            kind="revert",
            subject=object_name("fleet", view.fleet),
            figures={"objects": len(touched)},
            detail=f"what is live was applied from {why} ({record.commit[:12]}); this plan may undo parts of it on "
            f"{some(touched)}",
        )


def _origin(view: _View) -> Iterator[Danger]:
    record: FleetRecord | None = view.snapshot.fleets.get(view.fleet)
    here = view.provenance.origin
    if record is None or record.origin is None or here is None or record.origin == here or not view.operations:
        return
    yield Danger(
        kind="origin",
        subject=object_name("fleet", view.fleet),
        detail=f"the fleet was last applied from {record.origin[1]} of repository {record.origin[0][:12]}, "
        f"this plan comes from {here[1]} of {here[0][:12]}",
    )


_RULES: Sequence[Callable[[_View], Iterator[Danger]]] = (
    _remove,
    _withdraws,
    _shrink,
    _unprotect,
    _share,
    _reset_usage,
    _revert,
    _origin,
)


def _held(reservations: int, resources: Mapping[str, int]) -> str:
    held = ", ".join(f"{amount} {resource}" for resource, amount in sorted(resources.items()))
    return f"{counted(reservations, 'live reservation')} holding {held}"


def counted(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def some(labels: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(labels) - _SHOWN
    return ", ".join(labels[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _counts(state: Mapping[str, Any] | None, name: str) -> dict[str, int]:
    holder = (state or {}).get(name)
    found = {str(key): _amount(value) for key, value in holder.items()} if isinstance(holder, Mapping) else {}
    return {key: amount for key, amount in found.items() if amount is not None}


def _figure(state: Mapping[str, Any] | None, group: str, name: str) -> int | None:
    holder = (state or {}).get(group)
    return _amount(holder.get(name)) if isinstance(holder, Mapping) else None


def _amount(value: object) -> int | None:
    """A figure of a state; None for what is none. Operations come from plan files, and `decide` refuses such a state later."""
    try:
        return unwide(value)
    except ValueError:
        return None
