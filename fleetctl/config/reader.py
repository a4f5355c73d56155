"""The strict YAML reader: libyaml's events to a node tree, in one pass, with every rule of safety checked on the way.

Refused: duplicate keys, tags, merge keys, keys that are not scalars, unknown and recursive aliases, aliases that expand
past the node budget, deep nesting, documents that are no mappings (fleet-files: "Refused").
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from yaml.error import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from fleetctl.config.codes import shown
from fleetctl.config.nodes import Mapping, Node, Scalar, Sequence, is_absent
from fleetctl.config.problems import Detail, Problems
from fleetctl.config.scan import TAB_INDENT, Scanned, indenting_tabs, report_character
from fleetctl.config.sources import Source
from fleetctl.config.syntax import MAX_DEPTH, TOO_DEEP, explain_syntax_error
from fleetctl.diagnostics import Code, code
from fleetctl.model.texts import FORBIDDEN

try:
    from yaml._yaml import CParser
except ImportError:  # a PyYAML built without libyaml; `Reader.read` says so
    CParser = None  # type: ignore[assignment,misc]  # the stubs know only the complete build

MAX_NODES = 1_000_000

PARSER_MISSING = code(
    "yaml-parser-missing",
    "PyYAML was built without its C parser",
    trigger="a PyYAML without libyaml; the slow pure-Python parser is never used in its place",
)
DUPLICATE_KEY = code("duplicate-key", "A mapping names the same key twice", trigger="two equal keys in one mapping")
TAG = code("yaml-tag", "A YAML tag is used", trigger="`!tag` or `!!type` before a key or a value")
MERGE_KEY = code("merge-key", "A YAML merge key is used", trigger="the key `<<`")
KEY_NOT_SCALAR = code("key-not-scalar", "A key is not a scalar", trigger="a mapping, a list or an alias as a key")
UNKNOWN_ALIAS = code("unknown-alias", "An alias has no anchor", trigger="`*name` without an earlier `&name`")
RECURSIVE_ALIAS = code("recursive-alias", "A value contains itself", trigger="`*name` inside the value of `&name`")
TOO_MANY_NODES = code(
    "too-many-nodes",
    "The fleet has too many values",
    trigger="more than 1,000,000 YAML nodes in a fleet, aliases counted as what they stand for",
)
NOT_A_MAPPING = code("document-not-mapping", "A document is not a mapping", trigger="a document that is text or a list")


class Reader:
    """Reads files one after the other; the node budget is the fleet's. `problems` takes everything that is refused."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.nodes = 0
        self.incomplete = False
        """Whether some part of the fleet could not be read, so that a name that is not found may well exist."""

    def read(self, source: Source, scanned: Scanned) -> list[Mapping]:
        """The documents of a file, each a mapping; after a syntax error those before it."""
        if CParser is None:
            self.problems.add(PARSER_MISSING, "install a PyYAML wheel that has libyaml, then run again", source.base)
        if CParser is None or not scanned.parse or self.nodes > MAX_NODES:
            self.incomplete = True
            return []
        build = _Build(self, source, scanned)
        with collector_paused():
            build.run()
        self.incomplete |= build.stopped
        return build.documents


@contextmanager
def collector_paused() -> Iterator[None]:
    """Trees of nodes hold no cycles, and the cyclic collector would walk them again and again as they grow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _short(tag: str) -> str:
    """A tag as files write it: `!!str`."""
    return tag.replace("tag:yaml.org,2002:", "!!", 1)


class _Stop(Exception):
    """No more can be read of this file; the reason is reported."""


class _Frame:
    """A container that is still open: what it stands in, and what is counted for its anchor."""

    __slots__ = ("anchor", "height", "key_after", "nodes_before", "parent")

    def __init__(
        self, parent: Mapping | Sequence | None, anchor: str | None, nodes_before: int, key_after: str | None
    ) -> None:
        self.parent = parent
        self.anchor = anchor
        self.nodes_before = nodes_before
        self.height = 1
        self.key_after = key_after
        """The key that waits once this container ends: set when the container itself stood where a key belongs."""


class _Anchored(NamedTuple):
    """What an alias stands for: a node, how many nodes that is, and how deep."""

    node: Node
    nodes: int
    height: int


class _Build:
    """One file's pass over its events."""

    def __init__(self, reader: Reader, source: Source, scanned: Scanned) -> None:
        self.reader = reader
        self.problems = reader.problems
        self.source = source
        self.scanned = scanned
        self.documents: list[Mapping] = []
        self.stopped = False
        self._root: Node | None = None
        self._anchors: dict[str, Scalar | _Anchored | None] = {}  # None while the anchored container is open
        self._refused: dict[int, Mapping] = {}  # by id(): mappings that hold refused keys
        self._blocks: list[tuple[int, int]] = []  # block scalars, where tabs are text

    def run(self) -> None:
        try:
            self._events()
        except YAMLError as error:
            failed, what, detail = explain_syntax_error(error, self.source, self.problems)
            if not self._report_tabs(failed):
                self.problems.add(what, detail, failed)
            self.stopped = True
            return
        except _Stop:
            self.stopped = True
        self._report_tabs(None)

    # One loop and not a method for each kind of event: the calls would cost as much as the parsing itself.
    def _events(self) -> None:
        # Any: the stubs leave marks optional, the C parser always sets them.
        get: Any = CParser(self.source.content).get_event
        base = self.source.base
        watch = self.scanned.escapes or self.scanned.tabs
        nodes = self.reader.nodes
        stack: list[_Frame] = []
        parent: Any = None  # the open Mapping or Sequence
        entries: dict[str, Node] | None = None  # those of an open mapping, None in a sequence
        key: str | None = None  # the key that waits for its value
        try:
            while (event := get()) is not None:
                kind = type(event)
                if kind is ScalarEvent:
                    nodes += 1
                    at = base + event.start_mark.index
                    if watch:
                        self._watch(event, at)
                    odd = event.tag is not None or event.anchor is not None
                    if entries is not None and key is None:
                        key = event.value
                        if key in entries or key == "<<" or odd:
                            key = self._odd_key(event, parent, at)
                        parent.key_places.append(at)
                        continue
                    scalar = Scalar(at, not event.style, event.value)
                    if odd:
                        self._odd_scalar(event, scalar)
                    node: Node = scalar
                elif kind is MappingStartEvent or kind is SequenceStartEvent:
                    nodes += 1
                    at = base + event.start_mark.index
                    node = Mapping(at) if kind is MappingStartEvent else Sequence(at)
                elif kind is MappingEndEvent or kind is SequenceEndEvent:
                    frame = stack.pop()
                    if frame.anchor is not None:
                        self._anchors[frame.anchor] = _Anchored(parent, nodes - frame.nodes_before, frame.height)
                    if stack and stack[-1].height <= frame.height:
                        stack[-1].height = frame.height + 1
                    parent = frame.parent
                    entries = parent.entries if type(parent) is Mapping else None
                    key = frame.key_after
                    if key is not None:
                        parent.key_places.append(parent.key_places[-1])
                    continue
                elif kind is AliasEvent:
                    at = base + event.start_mark.index
                    if entries is not None and key is None:
                        key = self._key_not_scalar(parent, at, "an alias")
                        continue
                    target = self._alias(event.anchor, at, stack)
                    nodes += target.nodes
                    node = target.node
                else:
                    if kind is DocumentStartEvent:
                        self._begin_document()
                    elif kind is DocumentEndEvent:
                        self._end_document()
                    continue
                if nodes > MAX_NODES:
                    self._too_many_nodes(at)
                key_after = None
                if entries is not None:
                    if key is None:
                        key = self._key_not_scalar(parent, at, "a mapping or a list")
                        key_after = key + "="
                    entries[key] = node
                    key = None
                elif parent is not None:
                    parent.items.append(node)
                else:
                    self._root = node
                if kind is not ScalarEvent and kind is not AliasEvent:
                    self._check_container(event, at, len(stack))
                    stack.append(_Frame(parent, event.anchor, nodes - 1, key_after))
                    parent = node
                    entries = node.entries if type(node) is Mapping else None
        finally:
            self.reader.nodes = nodes

    def _report(self, code: Code, detail: Detail, at: int) -> None:
        self.problems.add(code, detail, at)
        if self.problems.hopeless:
            raise _Stop

    def _begin_document(self) -> None:
        self._root = None
        self._anchors = {}

    def _end_document(self) -> None:
        for mapping in self._refused.values():
            _drop_refused_keys(mapping)
        self._refused = {}
        root = self._root
        if isinstance(root, Mapping):
            self.documents.append(root)
        elif root is not None and not is_absent(root):
            what = "a list" if isinstance(root, Sequence) else "text"
            detail = f"the document is {what}; a fleet file is a mapping such as `pools: {{…}}`"
            self._report(NOT_A_MAPPING, detail, root.at)
            self.stopped = True

    def _watch(self, event: Any, at: int) -> None:
        """Block scalars make tabs into text; escapes make characters that the scan of the bytes could not see."""
        if event.style in ("|", ">"):
            self._blocks.append((at, self.source.base + event.end_mark.index))
        elif event.style == '"':
            characters = {match[0] for match in FORBIDDEN.finditer(event.value)}
            for character in sorted(characters):
                report_character(character, at, self.problems, escaped=True)
            if characters:
                self.problems.settle(at)

    def _odd_key(self, event: Any, mapping: Mapping, at: int) -> str:
        """A key that is tagged, anchored, a merge key or a duplicate. Returns what to file its value under."""
        key: str = event.value
        if event.tag is not None:
            self._refuse_tag(event.tag, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = Scalar(at, not event.style, key)
        if key == "<<":
            detail = "`<<` is not read; write the fields out, or use `defaults` or a policy with `from`"
            self._report(MERGE_KEY, detail, at)
        elif key in mapping.entries:
            self._duplicate(key, mapping, at)
        else:
            return key
        return self._refused_key(mapping, at)

    def _duplicate(self, key: str, mapping: Mapping, at: int) -> None:
        def detail() -> str:
            return f"{shown(key)} is already given at {self.problems.sources.span(mapping.key_at(key))}; remove one"

        self._report(DUPLICATE_KEY, detail, at)

    def _key_not_scalar(self, mapping: Mapping, at: int, what: str) -> str:
        self._report(KEY_NOT_SCALAR, f"{what} stands where a key belongs; write the key as text", at)
        mapping.key_places.append(at)
        return self._refused_key(mapping, at)

    def _refused_key(self, mapping: Mapping, at: int) -> str:
        self._refused[id(mapping)] = mapping
        return f"\0{at}"

    def _odd_scalar(self, event: Any, node: Scalar) -> None:
        if event.tag is not None:
            self._refuse_tag(event.tag, node.at)
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _check_container(self, event: Any, at: int, depth: int) -> None:
        if event.tag is not None:
            self._refuse_tag(event.tag, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if depth >= MAX_DEPTH:
            self._too_deep(at)

    def _alias(self, name: str, at: int, stack: list[_Frame]) -> _Anchored:
        target = self._anchors.get(name)
        if target is None:
            if name in self._anchors:
                detail = f"`*{_cut(name)}` stands inside the value of `&{_cut(name)}`; write out what is meant"
                self._report(RECURSIVE_ALIAS, detail, at)
            else:
                mend = "comes before it in this document; write the value out"
                self._report(UNKNOWN_ALIAS, lambda: f"`*{_cut(name)}`: no `&{_cut(name)}` {mend}", at)
            self.problems.settle(at)
            return _Anchored(Scalar(at, False, ""), 1, 0)
        if isinstance(target, Scalar):
            return _Anchored(target, 1, 0)
        if len(stack) + target.height > MAX_DEPTH:
            self._too_deep(at)
        if stack and stack[-1].height <= target.height:
            stack[-1].height = target.height + 1
        return target

    def _refuse_tag(self, tag: str, at: int) -> None:
        self._report(TAG, f"the tag {shown(_short(tag))} is not read; remove it, the field's own type decides", at)

    def _too_deep(self, at: int) -> None:
        self._report(TOO_DEEP, f"this is level {MAX_DEPTH + 1} or more; nest at most {MAX_DEPTH} levels", at)
        raise _Stop

    def _too_many_nodes(self, at: int) -> None:
        detail = f"with this value the fleet has over {MAX_NODES:,} nodes; split it into several fleets"
        self._report(TOO_MANY_NODES, detail, at)
        raise _Stop

    def _report_tabs(self, failed: int | None) -> bool:
        """Report tabs that indent, up to the line of a syntax error; true when one of them is on that very line."""
        last = self.problems.sources.span(failed).line if failed is not None else None
        for at in indenting_tabs(self.source) if self.scanned.tabs else ():
            index = bisect_right(self._blocks, (at, at)) - 1
            if index >= 0 and at < self._blocks[index][1]:
                continue
            line = self.problems.sources.span(at).line
            if (last is not None and line > last) or not self.problems.has_room(TAB_INDENT, self.source.name):
                return False
            self.problems.add(TAB_INDENT, "indent with spaces; YAML gives tabs no width", at)
            if line == last:
                return True
        return False


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def _drop_refused_keys(mapping: Mapping) -> None:
    kept = [(key, at, node) for key, at, node in mapping.items_at() if not key.startswith("\0")]
    mapping.entries = {key: node for key, _, node in kept}
    mapping.key_places = [at for _, at, _ in kept]
