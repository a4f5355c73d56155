"""Text that anybody may have written does nothing to a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fleetctl.render.inert import inert, padded, width


@given(st.text())
def test_what_comes_out_is_printable(text: str) -> None:
    assert inert(text).isprintable()


@given(st.text())
def test_printable_text_stays_and_twice_is_once(text: str) -> None:
    once = inert(text)
    assert inert(once) == once
    if text.isprintable():
        assert once == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\u{1b}[31mb"),
        ("line\nline\r\ttab", "line\\nline\\r\\ttab"),
        ("abc\u202edef", "abc\\u{202e}def"),
        ("zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"),
        ("\x9b31m", "\\u{9b}31m"),
        ("\ud800", "\\u{d800}"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_rows(text: str, shown: str) -> None:
    assert inert(text) == shown


@given(st.text("aZ é→…–—˿東\u0301"))
def test_the_width_is_what_rich_says(text: str) -> None:
    assert width(text) == cell_len(text)


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("\u2764\ufe0f", 2), ("", 0)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(padded(text, 6)) == width(padded(text, 6, right=True)) == 6
