"""Live objects: one in full, many in a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fleetctl.model.ids import Kind
from fleetctl.model.live import LiveObject
from fleetctl.render.document import Column, Document, Facts, Paragraph, Table, Verdict
from fleetctl.render.words import Names, counted, field_and_value, in_order, leaves, shown_value

_COLUMNS: dict[Kind, tuple[tuple[str, str], ...]] = {
    "tenant": (("parent", "parent"),),
    "site": (("kind", "kind"), ("region", "region"), ("tenant", "tenant")),
    "pool": (("site", "site"), ("class", "class"), ("gpu", "gpuModel"), ("sharing", "sharing")),
    "offer": (("pool", "pool"), ("to", "to"), ("quota", "quota")),
    "entitlement": (("tenant", "tenant"), ("guarantee", "guarantee.energyUj"), ("devices", "guarantee.devices")),
}


def object_json(item: LiveObject) -> dict[str, Any]:
    """An object as machines get it: identity, flags, and its body in canonical form."""
    out: dict[str, Any] = {
        "kind": item.kind,
        "id": item.id,
        "key": item.key,
        "name": item.name,
        "tenant": item.tenant,
        "version": item.version,
        "archived": item.archived,
        "protect": item.protect,
    }
    if item.fleet is not None:
        out["fleet"] = item.fleet
    if item.kind == "market-pool":
        out["explicitOnly"] = item.explicit_only
    return out | {"body": json.loads(item.body_json)}


def object_facts(item: LiveObject, names: Names) -> list[tuple[str, str]]:
    """An object's fields for people."""
    facts = [("id", str(item.id)), ("key", item.key), ("name", item.name)]
    facts.append(("fleet", item.fleet or "none: no fleet declares it"))
    facts.append(("version", str(item.version)))
    for flag, on in (("archived", item.archived), ("protect", item.protect), ("explicitOnly", item.explicit_only)):
        if on:
            facts.append((flag, "true"))
    body = leaves(in_order(item.kind, json.loads(item.body_json)))
    return facts + [field_and_value(path, value, names) for path, value in body if value not in ({}, [])]


def object_document(item: LiveObject, names: Names) -> Document:
    return [Verdict(item.label), Facts(object_facts(item, names))]


def list_json(items: Iterable[LiveObject], **more: Any) -> dict[str, Any]:
    """`{"result": "ok", "items": […]}`."""
    return {"result": "ok", **more, "items": [object_json(item) for item in items]}


def list_document(kind: Kind, items: Sequence[LiveObject], names: Names) -> Document:
    """A table of one kind."""
    if not items:
        return [Paragraph(f"There is no {kind}.")]
    columns = _COLUMNS[kind]
    rows = []
    for item in items:
        fields = dict(leaves(json.loads(item.body_json))) | json.loads(item.body_json)
        cells = [_cell(path, fields.get(path), names) for _, path in columns]
        state = "archived" if item.archived else "protected" if item.protect else ""
        rows.append((item.key, item.name, *cells, item.fleet or "-", state))
    titles = (Column("key"), Column("name"), *(Column(title) for title, _ in columns), Column("fleet"), Column(""))
    return [Table(titles, rows), Paragraph(counted(len(rows), kind), "dim")]


def _cell(path: str, value: Any, names: Names) -> str:
    return "-" if value is None else shown_value(path, value, names)


def names_of(items: Iterable[LiveObject]) -> dict[str, str]:
    """Ids with the `kind/key` that people know them by."""
    return {str(item.id): item.label for item in items if item.kind != "tenant"}
