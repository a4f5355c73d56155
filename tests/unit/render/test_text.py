"""Documents as text: width, tables, colour."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from fleetctl.render.document import (
    Block,
    Change,
    Column,
    Facts,
    Heading,
    Items,
    Lines,
    Paragraph,
    Table,
    Verbatim,
    Verdict,
)
from fleetctl.render.inert import width
from fleetctl.render.text import MIN_WIDTH, to_text, wrapped

WORDS = st.text(alphabet="abcdefgh é東\u0301", max_size=60)
SHORT = st.lists(st.text(alphabet="abc é", min_size=1, max_size=8), min_size=1, max_size=8).map(" ".join)
_SGR = re.compile(r"\x1b\[[0-9]+m")


@given(WORDS, st.integers(min_value=1, max_value=100))
@example("\u0301 a", 1)
def test_wrapping_loses_nothing_and_breaks_no_word(text: str, columns: int) -> None:
    lines = wrapped(text, columns)
    assert " ".join(lines) == text
    assert all(width(line) <= columns or " " not in line.strip(" ") for line in lines)


@given(st.lists(SHORT, min_size=1, max_size=6), st.integers(min_value=40, max_value=120))
def test_running_text_keeps_to_the_width(texts: list[str], columns: int) -> None:
    blocks: list[Block] = [
        Verdict(texts[0]),
        *(Paragraph(text) for text in texts),
        Items([(text, None) for text in texts]),
    ]
    assert all(width(line) <= columns for line in to_text(blocks, columns=columns).splitlines())


@given(st.text(), st.booleans())
def test_only_colour_adds_what_is_not_printable(text: str, colour: bool) -> None:
    blocks: list[Block] = [
        Verdict(text, "bad"),
        Heading(text),
        Paragraph(text, "dim"),
        Items([(text, "warn")]),
        Lines([(text, "warn")]),
        Table((Column(text), Column("b", wraps=True)), [(text, text)], ["bad"]),
        Facts([(text, text)]),
        Change("+", text, text, [("~", text)]),
        Verbatim([text]),
    ]
    shown = to_text(blocks, colour=colour)
    plain = _SGR.sub("", shown)
    assert all(line.isprintable() for line in plain.split("\n"))
    assert colour or plain == shown
    if colour:
        assert plain.split() == to_text(blocks).split()


def test_no_blocks_are_no_text() -> None:
    assert to_text([]) == ""


def test_a_page() -> None:
    document: list[Block] = [
        Verdict("Plan: 1 to create", "good"),
        Heading("Impact"),
        Table(
            (Column("tenant"), Column("gpu", right=True), Column("effect", wraps=True)),
            [("acme", "8", "loses; what runs keeps running"), ("researchers", "16", "gains")],
        ),
        Heading("Operations"),
        Change("+", "create pool/p", "a.yaml:1:1", [("+", "site: site/fra1")]),
        Change("-", "archive pool/q"),
        Facts([("digest", "0" * 64), ("by", "x")]),
        Verbatim(["fleetctl apply plan.json"]),
    ]
    assert to_text(document, columns=44) == (
        "Plan: 1 to create\n\n"
        "Impact\n\n"
        "tenant       gpu  effect\n"
        "acme           8  loses; what runs keeps\n"
        "                  running\n"
        "researchers   16  gains\n\n"
        "Operations\n"
        "  + create pool/p  (a.yaml:1:1)\n"
        "      + site: site/fra1\n"
        "  - archive pool/q\n\n"
        f"digest  {'0' * 64}\n"
        "by      x\n\n"
        "  fleetctl apply plan.json\n"
    )


def test_a_page_is_never_narrower_than_can_be_read() -> None:
    assert to_text([Paragraph("a b")], columns=1) == to_text([Paragraph("a b")], columns=MIN_WIDTH)


def test_what_stands_in_backticks_stays_whole_where_it_fits() -> None:
    text = "nobody answers; start it with `fleetctl witness serve --id a`, then go on"
    assert wrapped(text, 40) == ["nobody answers; start it with", "`fleetctl witness serve --id a`, then go", "on"]
    assert wrapped("a `text that is wider than a line` b", 20) == ["a `text that is", "wider than a line` b"]
    assert wrapped("a `fleetctl ledger witness --now` b", 20) == ["a", "`fleetctl ledger witness --now`", "b"]
    assert wrapped("one ` only, and more", 10) == ["one `", "only, and", "more"]


@given(st.text(alphabet="ab` ", max_size=60), st.integers(min_value=1, max_value=40))
def test_backticks_lose_nothing(text: str, columns: int) -> None:
    assert " ".join(wrapped(text, columns)) == text


def test_a_last_column_without_room_goes_below_its_row() -> None:
    columns = (Column("id"), Column("state"), Column("why", wraps=True))
    rows = [("r" * 30, "pending", "the pool has too few free GPUs"), ("s" * 30, "active", "")]
    page = to_text([Table(columns, rows)], columns=50)
    assert page.splitlines() == [
        f"id{' ' * 28}  state",
        f"{'r' * 30}  pending",
        "  why: the pool has too few free GPUs",
        f"{'s' * 30}  active",
    ]
    assert "why" in to_text([Table(columns, rows)], columns=80).splitlines()[0]


def test_a_table_that_is_wider_than_a_terminal_folds_its_rows() -> None:
    columns = (Column("tenant"), Column("object"), Column("before → after", right=True), Column("effect"))
    table = Table(columns, [("acme", "offer/" + "p" * 20, "32 → 4", "loses"), ("b", "offer/p", "0 → 8", "gains")])
    assert to_text([table], columns=40, fold=True).splitlines() == [
        "tenant  object",
        "    before → after  effect",
        f"acme    offer/{'p' * 20}",
        "            32 → 4  loses",
        "b       offer/p",
        "             0 → 8  gains",
    ]
    assert len(to_text([table], columns=40).splitlines()) == 3
    assert to_text([table], columns=80, fold=True) == to_text([table], columns=80)


@given(
    st.lists(
        st.tuples(st.text("abc", max_size=12), st.text("xyz ", max_size=30), st.text("0", max_size=9)), min_size=1
    ),
    st.integers(MIN_WIDTH, 60),
)
def test_a_folded_table_loses_no_cell_and_keeps_to_the_width(rows: list[tuple[str, str, str]], columns: int) -> None:
    table = Table((Column("a"), Column("b"), Column("c", right=True)), rows)
    page = to_text([table], columns=columns, fold=True)
    assert all(width(line) <= max(columns, 34) for line in page.splitlines())
    for row in rows:
        assert all(cell.strip(" ") in page for cell in row)
