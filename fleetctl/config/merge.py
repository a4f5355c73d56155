"""All documents of a fleet as one tree: sections merged, names declared twice refused, the header agreed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fleetctl.config.codes import UNKNOWN_FIELD, WRONG_TYPE, did_you_mean, shown
from fleetctl.config.nodes import Mapping, Node, Scalar, is_absent
from fleetctl.config.nodes import Sequence as SequenceNode
from fleetctl.config.problems import Problems
from fleetctl.diagnostics import code
from fleetctl.model.ids import Kind

HEADER: Final = ("apiVersion", "fleet", "tenant")
SECTIONS: Final[dict[str, Kind | None]] = {
    "tenants": "tenant",
    "sites": "site",
    "policies": None,
    "pools": "pool",
    "offers": "offer",
    "entitlements": "entitlement",
    "marketPools": "market-pool",
    "orders": "order",
    "transfers": "transfer",
}
"""Sections of named objects and their kind; policies are no live objects."""
LISTS: Final = ("accept", "ignoreDrift", "release")
DEFAULTS: Final = "defaults"

DUPLICATE_NAME = code(
    "duplicate-name", "A name is declared twice", trigger="one name in one section of two documents or files"
)
HEADER_DISAGREES = code(
    "header-disagrees", "Two files of a fleet disagree about its header", trigger="another apiVersion, fleet or tenant"
)
EMPTY_OBJECT = code(
    "empty-object",
    "An object is declared with nothing below it",
    trigger="`name:` and no value: it could mean an object without fields, or none at all",
)


def merge(documents: Sequence[Mapping], problems: Problems) -> Mapping:
    """One mapping with the header, each section, `defaults` and each list at most once."""
    merged = _Merge(problems, documents[0].at if documents else 0, several=_several_fleets(documents, problems))
    for document in documents:
        if problems.hopeless:
            break
        for field, at, node in document.items_at():
            merged.take(field, at, node)
    return merged.root


def _several_fleets(documents: Sequence[Mapping], problems: Problems) -> bool:
    """Whether a folder above several fleets was named: files in different folders say different fleets."""
    folders: dict[str, str] = {}
    for document in documents:
        node = document.entries.get("fleet")
        if isinstance(node, Scalar):
            folder = problems.sources.source_at(node.at).name.rpartition("/")[0]
            folders.setdefault(folder, node.text)
    return len(set(folders.values())) > 1


class _Merge:
    """`several`: what is declared twice is then no mistake in itself, and only the header is spoken of."""

    def __init__(self, problems: Problems, at: int, *, several: bool = False) -> None:
        self.problems = problems
        self.several = several
        self.root = Mapping(at)
        self._known: dict[str, Callable[[str, int, Node], None]] = {
            **dict.fromkeys(HEADER, self._header),
            **dict.fromkeys(SECTIONS, self._section),
            DEFAULTS: self._defaults,
            **dict.fromkeys(LISTS, self._list),
        }

    def take(self, field: str, at: int, node: Node) -> None:
        handle = self._known.get(field)
        if handle is None:
            self.problems.add(
                UNKNOWN_FIELD,
                lambda: f"{shown(field)} is no section of a fleet file{_instead(field, self._known)}",
                at,
            )
        elif not is_absent(node):
            handle(field, at, node)

    def _header(self, field: str, at: int, node: Node) -> None:
        first = self.root.entries.get(field)
        if first is None:
            _put(self.root, field, at, node)
        elif isinstance(first, Scalar) and isinstance(node, Scalar) and first.text != node.text:
            where = self.problems.sources.span(first.at)
            detail = f"`{field}` is {shown(first.text)} at {where}; write the same here, or leave it out"
            if field == "fleet" and self.several:
                detail = (
                    f"`{field}` is {shown(first.text)} at {where}; these are several fleets: name the folder of one"
                )
            self.problems.add(HEADER_DISAGREES, detail, node.at)

    def _section(self, field: str, at: int, node: Node) -> None:
        given = self._as_mapping(field, node)
        if given is None:
            return
        section = self._mapping(self.root, field, at)
        for name, name_at, item in given.items_at():
            if is_absent(item):
                detail = f"{shown(name)} has nothing below it; write its fields, `{{}}` for none, or remove the line"
                self.problems.add(EMPTY_OBJECT, detail, name_at)
            elif name in section.entries:
                where = self.problems.sources.span(section.key_at(name))
                detail = f"{shown(name)} of `{field}` is already declared at {where}; rename or remove one"
                self._twice(detail, name_at)
            else:
                _put(section, name, name_at, item)

    def _defaults(self, field: str, at: int, node: Node) -> None:
        given = self._as_mapping(field, node)
        if given is None:
            return
        defaults = self._mapping(self.root, field, at)
        for kind, kind_at, fields in given.items_at():
            if is_absent(fields):
                if kind not in SECTIONS:
                    detail = f"{shown(kind)} is no section of a fleet file{_instead(kind, SECTIONS)}"
                    self.problems.add(UNKNOWN_FIELD, detail, kind_at)
                continue
            fields_of_kind = self._as_mapping(f"{field}.{kind}", fields)
            if fields_of_kind is None:
                continue
            of_kind = self._mapping(defaults, kind, kind_at)
            for name, name_at, item in fields_of_kind.items_at():
                if name in of_kind.entries:
                    where = self.problems.sources.span(of_kind.key_at(name))
                    detail = f"the default of {shown(name)} is already given at {where}; remove one"
                    self._twice(detail, name_at)
                else:
                    _put(of_kind, name, name_at, item)

    def _twice(self, detail: str, at: int) -> None:
        if not self.several:
            self.problems.add(DUPLICATE_NAME, detail, at)

    def _list(self, field: str, at: int, node: Node) -> None:
        if not isinstance(node, SequenceNode):
            self.problems.add(WRONG_TYPE, f"`{field}` is a list; write it as `[…]` or with `- `", node.at)
            return
        merged = self.root.entries.get(field)
        if not isinstance(merged, SequenceNode):
            merged = SequenceNode(node.at)
            _put(self.root, field, at, merged)
        merged.items.extend(node.items)

    def _as_mapping(self, field: str, node: Node) -> Mapping | None:
        if isinstance(node, Mapping):
            return node
        self.problems.add(WRONG_TYPE, f"{shown(field)} is a mapping of names; write `name: {{…}}` below it", node.at)
        return None

    @staticmethod
    def _mapping(parent: Mapping, field: str, at: int) -> Mapping:
        found = parent.entries.get(field)
        if not isinstance(found, Mapping):
            found = Mapping(at)
            _put(parent, field, at, found)
        return found


def _put(mapping: Mapping, key: str, at: int, node: Node) -> None:
    mapping.entries[key] = node
    mapping.key_places.append(at)


def _instead(word: str, known: Iterable[str]) -> str:
    return did_you_mean(word, known) or f"; known here: {', '.join(sorted(known))}"
