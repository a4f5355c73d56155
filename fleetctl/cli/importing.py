"""`import`: live objects as YAML, and files brought back to what is live. Nothing live is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetctl.cli.files import write_whole
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.model.ids import ObjectId, object_name
from fleetctl.model.live import LiveObject, Snapshot

if TYPE_CHECKING:
    from fleetctl.model.declared import Declared, Fleet
    from fleetctl.model.ids import Kind

NOT_IMPORTABLE = code(
    "not-importable",
    "No fleet file declares such an object",
    trigger="`import` of a kind that files do not declare by itself, or of an archived object",
)
NOT_DECLARED = code(
    "not-declared",
    "The fleet does not declare this object, or does not own a live one",
    trigger="`import --refresh` of an object that is not in the files, or that is not live under this fleet",
)
REFRESH_FAILED = code(
    "refresh-failed",
    "The file could not be brought to what is live",
    trigger="`import --refresh` of an object whose entry stands for several, was renamed live, or takes its value from elsewhere",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """YAML of live objects, their `kind/key`, and what it refers to without holding it."""

    yaml: str
    labels: tuple[str, ...]
    missing: tuple[str, ...]


def import_objects(
    snapshot: Snapshot, chosen: Sequence[LiveObject], *, fleet: str | None, tenant: str, header: bool = True
) -> Imported:
    """A file of these objects. `fleet` is the one that it is for: its own objects are named by name, others by fleet and key.

    `header`: the file may stand alone; else it is for a folder that has one.
    """
    from fleetctl.config.filing import ADOPTED, SECTION_OF, file_entry, grouped
    from fleetctl.config.yamlfiles import written

    inside = {(item.kind, item.id) for item in chosen}
    missing: set[str] = set()

    def resolve(kind: Kind, id: str) -> str:
        return _reference(snapshot, kind, id, fleet, inside, missing)

    entries = []
    for item in chosen:
        if item.kind not in SECTION_OF or item.archived:
            raise BadInput(NOT_IMPORTABLE.at(f"{item.label} is archived, or no file declares a {item.kind} by itself"))
        adopt = item.kind in ADOPTED and (fleet is None or item.fleet != fleet)
        entries.append(file_entry(item, resolve, adopt=adopt, procurements=_procurements(snapshot, item)))
    top = {} if fleet is None or not header else {"apiVersion": "fleetctl/v1", "fleet": fleet, "tenant": tenant}
    return Imported(
        yaml=written(grouped(entries), top),
        labels=tuple(item.label for item in chosen),
        missing=tuple(sorted(missing)),
    )


def importable(snapshot: Snapshot, fleet: str | None) -> list[LiveObject]:
    """Every live object that no fleet owns, or that this one does, in the order of sections and keys."""
    from fleetctl.config.filing import SECTION_OF

    order = list(SECTION_OF)
    found = (
        item
        for item in snapshot.objects.values()
        if item.kind in SECTION_OF and not item.archived and item.fleet in (None, fleet)
    )
    return sorted(found, key=lambda item: (order.index(item.kind), item.key, item.id))


def refresh(path: Path, fleet: Fleet, snapshot: Snapshot, label: str) -> tuple[Path, bool]:
    """Bring the entry of `kind/key` to what is live. Returns the file, and whether it was changed.

    The file is read again afterwards; where it does not say what is live then, it is put back. Raises BadInput, Unreachable.
    """
    from fleetctl.config.yamlfiles import with_fields

    item, live = _pair(fleet, snapshot, label)
    if item.name != live.name:
        raise BadInput(REFRESH_FAILED.at(f"{label} is named {live.name} live and {item.name} here; rename it by hand"))
    fields = _differences(fleet, snapshot, item, live)
    assert item.span is not None, "declared in a file"
    file = (path if path.is_dir() else path.parent) / item.span.file
    if not fields:
        return file, False
    before = file.read_bytes()
    text = with_fields(before.decode("utf-8-sig"), item.span.file, _place(fleet, item), fields)
    mode = file.stat().st_mode & 0o777
    write_whole(file, text.encode(), mode=mode)
    if not _is_live(path, fleet, item, live, snapshot):
        write_whole(file, before, mode=mode)
        shared = sum(other.kind == item.kind and other.name == item.name for other in fleet.objects) > 1
        why = (
            f"its entry `{item.name}` is about several pools"
            if shared
            else "it takes values from `defaults` or a policy"
        )
        raise BadInput(
            REFRESH_FAILED.at(
                f"{label} cannot be brought to what is live alone: {why}; give it values of its own by hand ({_said(fields)})"
            )
        )
    return file, True


def _pair(fleet: Fleet, snapshot: Snapshot, label: str) -> tuple[Declared, LiveObject]:
    item = next((item for item in fleet.objects if item.label == label), None)
    live = next(
        (
            found
            for found in snapshot.objects.values()
            if found.label == label and found.fleet == fleet.name and not found.archived
        ),
        None,
    )
    if item is None or live is None:
        where = "the files" if item is None else f"the objects that fleet {fleet.name} owns"
        raise BadInput(NOT_DECLARED.at(f"{label} is not among {where}; write kind/key, as plan and drift do"))
    return item, live


def _differences(fleet: Fleet, snapshot: Snapshot, item: Declared, live: LiveObject) -> dict[str, Any]:
    """Fields of the entry that are not as live; None for those to leave out."""
    from fleetctl.canonical import canonical_json
    from fleetctl.config.filing import SECTION_OF, file_entry
    from fleetctl.model.codec import encode

    if item.kind not in SECTION_OF:
        raise BadInput(NOT_IMPORTABLE.at(f"{item.label}: refresh its market pool's entry by hand"))
    names = {(found.kind, found.key): found.name for found in fleet.objects}
    own = {(found.kind, found.id) for found in snapshot.objects.values() if found.fleet == fleet.name}

    def by_name(kind: Kind, key: str) -> str:
        return names.get((kind, key), key)

    def by_id(kind: Kind, id: str) -> str:
        found = snapshot.objects.get((kind, ObjectId(id)))
        if found is not None and (kind, found.id) in own:
            return names.get((kind, found.key), found.name)
        return _reference(snapshot, kind, id, fleet.name, set(), set())

    said = LiveObject(
        kind=item.kind,
        id=live.id,
        tenant=live.tenant,
        key=item.key,
        name=item.name,
        version=0,
        protect=item.protect,
        explicit_only=item.explicit_only,
        body_json=canonical_json(encode(item.kind, item.body)),
    )
    want, have = file_entry(live, by_id, adopt=False).fields, file_entry(said, by_name, adopt=False).fields
    return {field: want.get(field) for field in want.keys() | have.keys() if want.get(field) != have.get(field)}


def _said(fields: Mapping[str, Any]) -> str:
    """What is live of the fields that differ."""
    from fleetctl.render.words import plain

    return ", ".join(
        f"{name}: {plain(value, {}) if value is not None else 'left out'}" for name, value in sorted(fields.items())
    )


def _place(fleet: Fleet, item: Declared) -> tuple[str, ...]:
    from fleetctl.config.filing import SECTION_OF

    return (SECTION_OF[item.kind], item.name)


def _is_live(path: Path, fleet: Fleet, item: Declared, live: LiveObject, snapshot: Snapshot) -> bool:
    """Whether the files, read again, say what is live of this object and of every other one what they said before."""
    from fleetctl.config.load import load_fleet

    again = load_fleet(path).fleet
    if again is None:
        return False
    found = {other.label: other for other in again.objects}
    others = ((other, found.get(other.label)) for other in fleet.objects if other.label != item.label)
    if any(now is None or now.body != was.body or now.name != was.name for was, now in others):
        return False
    return item.label in found and not _differences(again, snapshot, found[item.label], live)


def _procurements(snapshot: Snapshot, pool: LiveObject) -> list[LiveObject]:
    if pool.kind != "market-pool":
        return []
    prefix = f"{pool.key}/"
    found = (item for item in snapshot.objects.values() if item.kind == "procurement" and item.key.startswith(prefix))
    return sorted(found, key=lambda item: item.key)


def _reference(
    snapshot: Snapshot,
    kind: Kind,
    id: str,
    fleet: str | None,
    inside: set[tuple[Kind, ObjectId]],
    missing: set[str],
) -> str:
    from fleetctl.config.filing import name_of

    found = snapshot.objects.get((kind, ObjectId(id)))
    if found is None:
        missing.add(object_name(kind, id))
        return id
    if (kind, found.id) in inside or (fleet is not None and found.fleet == fleet):
        return name_of(found)
    if found.fleet is None:
        missing.add(found.label)
        return name_of(found)
    return f"{found.fleet}/{found.key}"


def as_json(found: Imported, file: Path | None) -> Mapping[str, Any]:
    """The answer of `import`."""
    out: dict[str, Any] = {"result": "ok", "yaml": found.yaml, "objects": list(found.labels)}
    return out if file is None else out | {"file": str(file)}
