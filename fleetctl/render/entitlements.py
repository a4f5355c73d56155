"""The entitlement tree and what is in use of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

from fleetctl.model.bodies import EntitlementBody
from fleetctl.model.ids import object_name
from fleetctl.model.live import LiveObject, Snapshot
from fleetctl.model.usage import EntitlementUse
from fleetctl.render.document import Block, Column, Document, Paragraph, Table, Tone, Verdict
from fleetctl.units import format_energy, format_ms


class RoomView(Protocol):
    """What an entitlement of the tree may still be admitted for, in microjoules."""

    @property
    def share_uj(self) -> int: ...
    @property
    def left_uj(self) -> int: ...
    @property
    def headroom_uj(self) -> int: ...
    @property
    def deficit_uj(self) -> int: ...


class StandingView(Protocol):
    """How one entitlement stands."""

    @property
    def use(self) -> EntitlementUse: ...
    @property
    def borrowed_uj(self) -> int: ...
    @property
    def grade(self) -> str | None: ...
    @property
    def room(self) -> RoomView | None: ...


class SpanView(Protocol):
    """A window of the ledger; `ended_ms` is None for the one in force."""

    @property
    def name(self) -> str: ...
    @property
    def began_ms(self) -> int: ...
    @property
    def ended_ms(self) -> int | None: ...


class StandingsView(Protocol):
    """Every entitlement of the tree, and every other that the ledger names, by id."""

    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def span(self) -> SpanView: ...
    @property
    def by_id(self) -> Mapping[str, StandingView]: ...


def tree_json(found: StandingsView) -> dict[str, Any]:
    """Every entitlement with its figures, parents before children, as `pool1 decide` takes them; then the usage of those that left."""
    nodes = []
    for item, _ in _walk(found.snapshot):
        body = cast(EntitlementBody, item.body())
        node: dict[str, Any] = {
            "id": item.id,
            "key": item.key,
            "name": item.name,
            "tenant": body.tenant,
            "guarantee_uj": body.guarantee_uj,
            "guarantee_devices": body.guarantee_devices,
            "over_quota_weight": body.over_quota_weight,
            "priority": body.priority,
        }
        more = {"parent": body.parent, "limit_uj": body.limit_uj, "period_ms": body.period_ms}
        node |= {name: value for name, value in more.items() if value is not None}
        nodes.append(node | _figures(found.by_id[item.id]))
    keys = {str(item.id): item.key for item in found.snapshot.tombstones.values() if item.kind == "entitlement"}
    gone = [
        {"id": id} | ({"key": keys[id]} if id in keys else {}) | _figures(item)
        for id, item in found.by_id.items()
        if item.room is None
    ]
    return {"result": "ok", "window": _span_json(found.span), "tree": nodes, "orphans": gone}


def tree_document(found: StandingsView) -> Document:
    rows, tones = [], list[Tone | None]()
    for item, depth in _walk(found.snapshot):
        body, stands = cast(EntitlementBody, item.body()), found.by_id[item.id]
        rows.append(
            (
                f"{_indent(depth)}{item.key}",
                format_energy(body.guarantee_uj),
                *_energies(stands),
                f"{stands.use.devices}/{body.guarantee_devices}",
                stands.grade or "-",
            )
        )
        tones.append("warn" if stands.room is not None and stands.room.deficit_uj else None)
    blocks: list[Block] = []
    if rows:
        titles = ("guarantee", "spent", "reserved", "borrowed", "share", "headroom", "devices")
        columns = (Column("entitlement"), *(Column(title, right=True) for title in titles), Column("grade"))
        blocks.append(Table(columns, rows, tones))
    else:
        blocks.append(Paragraph("There are no entitlements."))
    return [*_heading(found.span), *blocks, *_notes(found, found.by_id)]


def usage_json(found: StandingsView, only: str | None) -> dict[str, Any]:
    """Usage by `kind/key`; what left the tree is an `orphan`, under the key that it had."""
    labels = _labels(found.snapshot)
    items = []
    for id, stands in _used(found, only):
        use = stands.use
        item: dict[str, Any] = {
            "entitlement": labels.get(id, id),
            "id": id,
            "spent_uj": use.spent_uj,
            "reserved_uj": use.reserved_uj,
            "borrowed_uj": stands.borrowed_uj,
            "devices": use.devices,
            "open_claims": use.open_claims,
            "orphan": stands.room is None,
        }
        items.append(item if stands.grade is None else item | {"grade": stands.grade})
    return {"result": "ok", "window": _span_json(found.span), "items": items}


def usage_document(found: StandingsView, only: str | None) -> Document:
    labels = _labels(found.snapshot)
    shown = _used(found, only)
    if not shown:
        return [*_heading(found.span), Paragraph("Nothing is in use.")]
    rows = [
        (
            labels.get(id, id),
            format_energy(stands.use.spent_uj),
            format_energy(stands.use.reserved_uj),
            format_energy(stands.borrowed_uj),
            str(stands.use.devices),
            str(stands.use.open_claims),
            stands.grade or "-",
        )
        for id, stands in shown
    ]
    titles = ("spent", "reserved", "borrowed", "devices", "open claims")
    columns = (Column("entitlement"), *(Column(title, right=True) for title in titles), Column("grade"))
    return [*_heading(found.span), Table(columns, rows), *_notes(found, [id for id, _ in shown])]


def _span_json(span: SpanView) -> dict[str, Any]:
    """The window that the figures are of; `ended` where it is closed."""
    out = {"name": span.name, "began": format_ms(span.began_ms)}
    return out if span.ended_ms is None else out | {"ended": format_ms(span.ended_ms)}


def _heading(span: SpanView) -> list[Block]:
    """Which closed window it is."""
    if span.ended_ms is None:
        return []
    return [Verdict(f"Window {span.name}, {format_ms(span.began_ms)} to {format_ms(span.ended_ms)}, closed")]


def _used(found: StandingsView, only: str | None) -> list[tuple[str, StandingView]]:
    """What the ledger names, by id; or the one that was asked for, when it does."""
    return [
        (id, item) for id, item in found.by_id.items() if only in (None, id) and id in found.snapshot.usage.entitlements
    ]


def _notes(found: StandingsView, shown: Iterable[str]) -> Iterator[Block]:
    """Deficits, and what the ledger holds of entitlements that left the tree."""
    labels = _labels(found.snapshot)
    for id in shown:
        item = found.by_id[id]
        if item.room is None:
            yield Paragraph(
                f"{labels.get(id, id)} is no longer in the tree: {format_energy(item.use.total_uj)} stay on record, lend nothing and weigh "
                "nothing.",
                "dim",
            )
        elif item.room.deficit_uj:
            yield Paragraph(
                f"{labels[id]} uses {format_energy(item.room.deficit_uj)} above its guarantee that no open claim was admitted "
                "to borrow. Nothing is taken back.",
                "warn",
            )


def _figures(stands: StandingView) -> dict[str, Any]:
    use, place = stands.use, stands.room
    out: dict[str, Any] = {
        "spent_uj": use.spent_uj,
        "reserved_uj": use.reserved_uj,
        "borrowed_uj": stands.borrowed_uj,
        "devices": use.devices,
    }
    if stands.grade is not None:
        out["grade"] = stands.grade
    if place is None:
        return out
    return out | {
        "share_uj": place.share_uj,
        "left_uj": place.left_uj,
        "headroom_uj": place.headroom_uj,
        "deficit_uj": place.deficit_uj,
    }


def _energies(stands: StandingView) -> tuple[str, ...]:
    place = stands.room
    figures = (stands.use.spent_uj, stands.use.reserved_uj, stands.borrowed_uj)
    rest = (0, 0) if place is None else (place.share_uj, place.headroom_uj)
    return tuple(format_energy(figure) for figure in (*figures, *rest))


def _walk(snapshot: Snapshot) -> Iterator[tuple[LiveObject, int]]:
    """Entitlements with their depth, parents first, siblings by key; ties by id, which is arbitrary."""
    children: dict[str | None, list[LiveObject]] = {}
    known = {item.id for item in snapshot.objects.values() if item.kind == "entitlement"}
    for item in snapshot.objects.values():
        if item.kind == "entitlement":
            parent = cast(EntitlementBody, item.body()).parent
            children.setdefault(parent if parent in known else None, []).append(item)
    waiting = [(item, 0) for item in sorted(children.get(None, ()), key=_by_key, reverse=True)]
    while waiting:
        item, depth = waiting.pop()
        yield item, depth
        waiting += [(child, depth + 1) for child in sorted(children.get(item.id, ()), key=_by_key, reverse=True)]


_DEEPEST = 8
"""Levels that are drawn; deeper ones are counted, so that a deep tree leaves room for its figures."""


def _indent(depth: int) -> str:
    return ". " * depth if depth <= _DEEPEST else f"{'. ' * _DEEPEST}[{depth}] "


def _by_key(item: LiveObject) -> tuple[str, str]:
    return (item.key, item.id)


def _labels(snapshot: Snapshot) -> dict[str, str]:
    """Ids of entitlements with their `kind/key`, those too that left."""
    gone = {
        str(stone.id): object_name(stone.kind, stone.key)
        for stone in snapshot.tombstones.values()
        if stone.kind == "entitlement"
    }
    return gone | {str(item.id): item.label for item in snapshot.objects.values() if item.kind == "entitlement"}
