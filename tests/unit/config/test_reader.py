"""The reader's tree and places, and the parser that it will not do without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.config import reader as reader_module
from fleetctl.config.load import load_fleet
from fleetctl.config.nodes import Mapping, Node, Scalar, Sequence
from fleetctl.config.problems import Problems
from fleetctl.config.reader import Reader
from fleetctl.config.scan import scan
from fleetctl.config.sources import Sources
from tests.support.fleets import FLEET, as_yaml

KEYS = st.text("abcdef01 é#:-", min_size=1, max_size=6)
SCALARS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co")), max_size=10
)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=5,
)


def read(text: str) -> tuple[list[Mapping], Problems]:
    problems = Problems(Sources())
    source = problems.sources.add("a.yaml", text.encode("utf-8"))
    return Reader(problems).read(source, scan(source, problems)), problems


def plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Mapping):
        return {key: plain(item) for key, item in node.entries.items()}
    return [plain(item) for item in node.items]


@settings(max_examples=200, deadline=None)
@given(TREES, st.booleans())
def test_what_yaml_wrote_is_what_is_read(tree: dict[str, Any], flow: bool) -> None:
    """Against PyYAML's own writer: text as it was, in the order that it was."""
    text = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False, default_flow_style=flow, width=40)
    documents, problems = read(text)
    if any(item.code.name in ("merge-key", "invisible-character") for item in problems.sorted()):
        return
    assert [plain(document) for document in documents] == [tree] or (tree == {} and plain(documents[0]) == {})
    assert problems.sorted() == ()


def test_places_are_those_of_the_text() -> None:
    text = "é: {kéy: value}\r\n\r\nlist:\r\n  - one\r\n  - {two: 2}\r\n"
    (document,), problems = read(text)

    def at(place: int) -> tuple[int, int]:
        span = problems.sources.span(place)
        return span.line, span.column

    inner, items = document.entries["é"], document.entries["list"]
    assert isinstance(inner, Mapping) and isinstance(items, Sequence)
    assert at(inner.key_at("kéy")) == (1, 5)
    assert at(inner.entries["kéy"].at) == (1, 10)
    assert at(document.key_at("list")) == (3, 1)
    assert [at(item.at) for item in items.items] == [(4, 5), (5, 5)]
    assert at(inner.key_at("kéy")) == (1, 5), "places may be asked for in any order"


def test_places_of_many_files_do_not_meet() -> None:
    sources = Sources()
    first, second, third = (
        sources.add(name, data) for name, data in (("a", b"x: 1\n"), ("b", b""), ("c", "é: 2".encode()))
    )
    assert str(sources.span(first.base + 5)) == "a:2:1"
    assert str(sources.span(second.base)) == "b:1:1"
    assert str(sources.span(third.base + 4)) == "c:1:5"


def test_an_alias_is_the_node_of_its_anchor() -> None:
    (document,), problems = read("a: &x {b: 1}\nc: *x\nd: &y text\ne: [*y, *x]\n")
    assert problems.sorted() == ()
    assert document.entries["c"] is document.entries["a"]
    assert plain(document) == {"a": {"b": "1"}, "c": {"b": "1"}, "d": "text", "e": ["text", {"b": "1"}]}


def test_an_anchor_may_be_given_anew() -> None:
    (document,), problems = read("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")
    assert problems.sorted() == ()
    assert plain(document) == {"a": "1", "b": "1", "c": "2", "d": "2"}


def test_refused_keys_leave_the_rest_of_the_mapping() -> None:
    (document,), problems = read("a: 1\n[b]: 2\n? {c: d}\n: 3\n<<: {e: f}\na: 4\n!t g: 5\nh: 6\n")
    assert plain(document) == {"a": "1", "g": "5", "h": "6"}
    assert [item.code.name for item in problems.sorted()] == [
        "key-not-scalar",
        "key-not-scalar",
        "merge-key",
        "duplicate-key",
        "yaml-tag",
    ]
    assert [problems.sources.span(at).line for _, at, _ in document.items_at()] == [1, 7, 8]


def test_plain_scalars_are_told_from_the_others() -> None:
    (document,), _ = read("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\ne: >-\n  1\n")
    assert [node.plain for node in document.entries.values() if isinstance(node, Scalar)] == [True, *[False] * 4]


def test_the_pure_python_parser_is_never_used_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """architecture.md: never the pure-Python parser without saying so."""
    (tmp_path / "a.yaml").write_text(as_yaml(FLEET), encoding="utf-8")
    monkeypatch.setattr(reader_module, "CParser", None)
    result = load_fleet(tmp_path)
    assert result.fleet is None
    assert [item.code.name for item in result.diagnostics] == ["yaml-parser-missing"]
