"""Names to ids: every declared object with its id and its references as the live side holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from fleetctl.diagnostics import Diagnostic, code
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import BODY_TYPES, Body, OfferBody
from fleetctl.model.codec import attribute_of
from fleetctl.model.declared import Declared, Fleet
from fleetctl.model.ids import Kind, ObjectId, derive_id, fleet_caller
from fleetctl.model.live import LiveObject, Snapshot

UNKNOWN_REFERENCE = code(
    "external-not-found",
    "A reference to another fleet's object finds nothing",
    trigger="`other-fleet/key` names an object that no such fleet owns at plan time",
    engine_code="NOT_FOUND",
)
ADOPT_NOT_FOUND = code(
    "adopt-not-found",
    "The object to adopt does not exist",
    trigger="`adopt` names an id that is not live, or is archived",
    engine_code="NOT_FOUND",
)
SAME_OBJECT = code(
    "same-object",
    "Two declared objects stand for one live object",
    trigger="`adopt` names an object that another entry of the files stands for already",
    engine_code="CONFLICT",
)
SHARED_DIFFERS = code(
    "shared-differs",
    "Two fleets declare the same tenant or site differently",
    trigger="a tenant or site that another fleet owns is declared with other values than its live ones",
    engine_code="CONFLICT",
)


SHAREABLE: Final[frozenset[Kind]] = frozenset({"tenant", "site"})
"""Kinds that several fleets may declare, if they agree."""
UNASKED: Final[frozenset[Kind]] = SHAREABLE | {"offer"}
"""Kinds that are taken over without `adopt` while no fleet owns them: what they are does not depend on who declares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A declared object with its id, the ids of what it refers to by field, and the live object it is bound to, if any.

    `shared` says that another fleet owns the (equal) live object: nothing is done to it. `requires` are the ids of
    other fleets' objects that it names.
    """

    declared: Declared
    id: ObjectId
    references: Mapping[str, ObjectId]
    live: LiveObject | None
    shared: bool = False
    requires: tuple[ObjectId, ...] = ()

    def body(self) -> Body:
        """The typed body with ids for references."""
        kind = self.declared.kind
        ids: dict[str, Any] = {attribute_of(kind, field): id for field, id in self.references.items()}
        return replace(self.declared.body, **ids) if ids else self.declared.body

    def body_json(self) -> str:
        """The canonical JSON of `body()`, which need not be made for it."""
        return self.declared.text.filled(self.references)


class Bindings:
    """(fleet, kind, key) to live object, and tenants and sites by key, over one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._bound: dict[tuple[str, Kind, str], LiveObject] = {}
        self._shared: dict[tuple[Kind, str, str], LiveObject] = {}
        self._offers: dict[tuple[str, str], LiveObject] | None = None
        for item in snapshot.objects.values():
            if item.fleet is not None:
                self._bound[item.fleet, item.kind, item.key] = item
            if item.kind == "site":
                place = (item.kind, item.tenant, item.key)
                first = self._shared.setdefault(place, item)
                self._shared[place] = min(first, item, key=lambda site: site.id)  # arbitrary, and the same everywhere

    def of(self, fleet: str, kind: Kind, key: str) -> LiveObject | None:
        """What a fleet's key is bound to."""
        return self._bound.get((fleet, kind, key))

    def shareable(self, kind: Kind, tenant: str, key: str) -> LiveObject | None:
        """A live tenant or site that any fleet may declare too."""
        if kind == "tenant":
            return self.snapshot.objects.get((kind, ObjectId(key)))
        return self._shared.get((kind, tenant, key))

    def offer(self, pool: str, to: str) -> LiveObject | None:
        """The live offer of a pool (by id) to a tenant: what an offer is, whatever its key (readings B06)."""
        if self._offers is None:
            self._offers = {}
            for item in self.snapshot.objects.values():
                if item.kind == "offer":
                    other = cast(OfferBody, item.body())
                    self._offers[other.pool, other.to] = item
        return self._offers.get((pool, to))


def resolve(fleet: Fleet, snapshot: Snapshot) -> tuple[list[Resolved], list[Diagnostic]]:
    """Resolve every declared object, in the fleet's order. What cannot be resolved is left out and reported."""
    bindings = Bindings(snapshot)
    problems: list[Diagnostic] = []
    caller = fleet_caller(fleet.name)
    found: list[tuple[Declared, ObjectId, LiveObject | None]] = []
    ids: dict[tuple[Kind, str], ObjectId] = {}
    for item in fleet.objects:
        live = _live_of(fleet, item, caller, bindings, problems)
        id = live.id if live is not None else derive_id(item.kind, fleet.tenant, caller, item.key)
        ids[item.kind, item.key] = id
        found.append((item, id, live))
    resolved = []
    for item, id, live in found:
        references, requires = _ids_of(item, ids, bindings, problems)
        if references is None:
            continue
        if live is None and item.kind == "offer":
            live = bindings.offer(references["pool"], cast(OfferBody, item.body).to)
            id = id if live is None else live.id
        shared = item.kind in SHAREABLE and live is not None and live.fleet not in (None, fleet.name)
        resolved.append(
            Resolved(declared=item, id=id, references=references, live=live, shared=shared, requires=requires)
        )
    return _distinct(resolved, problems), problems


def _distinct(resolved: Iterable[Resolved], problems: list[Diagnostic]) -> list[Resolved]:
    """The first of those that stand for one live object, each other one reported."""
    first: dict[tuple[Kind, ObjectId], Resolved] = {}
    for item in resolved:
        other = first.setdefault((item.declared.kind, item.id), item)
        if other is not item:
            problems.append(
                SAME_OBJECT.at(
                    f"{item.declared.label} and {other.declared.label} both stand for {item.id}; remove one of them, or give it another key",
                    span=item.declared.span,
                    subject=item.declared.label,
                )
            )
    return list(first.values())


def _live_of(
    fleet: Fleet, item: Declared, caller: str, bindings: Bindings, problems: list[Diagnostic]
) -> LiveObject | None:
    bound = bindings.of(fleet.name, item.kind, item.key)
    if item.adopt is not None:
        wanted = bindings.snapshot.objects.get((item.kind, item.adopt))
        if wanted is None or wanted.archived:
            problems.append(
                ADOPT_NOT_FOUND.at(
                    f"{item.label} would adopt {item.adopt}, which is not live; check the id, or remove `adopt` to make a new one",
                    span=item.span,
                    subject=item.label,
                )
            )
            return bound
        return wanted
    if bound is None and item.kind in SHAREABLE:
        return bindings.shareable(item.kind, fleet.tenant, item.key)
    if bound is not None:
        return bound
    return bindings.snapshot.objects.get((item.kind, derive_id(item.kind, fleet.tenant, caller, item.key)))


def _ids_of(
    item: Declared, ids: Mapping[tuple[Kind, str], ObjectId], bindings: Bindings, problems: list[Diagnostic]
) -> tuple[Mapping[str, ObjectId] | None, tuple[ObjectId, ...]]:
    """The ids that an object names, by field, and those of other fleets' objects among them; None for one that is not found."""
    found_ids: dict[str, ObjectId] = {}
    requires: list[ObjectId] = []
    known = BODY_TYPES[item.kind].REFERENCES
    for field, name in item.text.references.items():
        kind = known[field]
        other, slash, key = name.partition("/")
        if not slash:
            found_ids[field] = ids[kind, name]
            continue
        found = bindings.of(other, kind, key)
        if found is None or found.archived:
            problems.append(
                UNKNOWN_REFERENCE.at(
                    f"`{field}` of {item.label} names {kind} `{name}`, but fleet {other} owns no live {kind} with the key "
                    f"`{key}`; apply that fleet first, or correct the reference",
                    span=item.span,
                    subject=item.label,
                )
            )
            return None, ()
        found_ids[field] = found.id
        requires.append(found.id)
    return found_ids, tuple(sorted(requires))
