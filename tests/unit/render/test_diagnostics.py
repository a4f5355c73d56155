"""Diagnostics in their three forms."""

from __future__ import annotations

import pytest

from fleetctl.diagnostics import REGISTRY, Code, Span
from fleetctl.render.diagnostics import error_json, error_text, explanation, explanation_json, github_annotations
from fleetctl.render.text import to_text

EXAMPLE = Code(  # not declared: the reference lists what the program can say
    name="example-of-tests",
    summary="An example",
    trigger="in tests",
    severity="error",
    exit_code=3,
    engine_code="CONFLICT",
)


def test_text_is_one_line_each_whatever_they_hold() -> None:
    found = [
        EXAMPLE.at("bad\nvalue \x1b[31m", span=Span("a\n.yaml", 3, 5)),
        EXAMPLE.at("no place", subject="pool/p", severity="warning"),
    ]
    assert error_text(found) == (
        "a\\n.yaml:3:5: error: example-of-tests: bad\\nvalue \\u{1b}[31m\n"
        "warning: example-of-tests: no place [pool/p]\n"
    )


def test_json() -> None:
    assert error_json([EXAMPLE.at("why", span=Span("a.yaml", 1, 2), subject="pool/p")]) == {
        "result": "error",
        "diagnostics": [
            {
                "code": "example-of-tests",
                "severity": "error",
                "summary": "An example",
                "detail": "why",
                "file": "a.yaml",
                "line": 1,
                "column": 2,
                "object": "pool/p",
                "engineCode": "CONFLICT",
            }
        ],
    }


@pytest.mark.parametrize(
    ("file", "detail", "path", "line"),
    [
        ("a.yaml", "why", "", "::error file=a.yaml,line=3,col=5,title=example-of-tests::An example: why\n"),
        (
            "a.yaml",
            "why",
            "fleets/eu",
            "::error file=fleets/eu/a.yaml,line=3,col=5,title=example-of-tests::An example: why\n",
        ),
        ("a.yaml", "why", ".", "::error file=a.yaml,line=3,col=5,title=example-of-tests::An example: why\n"),
        (
            "a:b,c%.yaml",
            "100%\n::error::forged\r\n",
            "",
            "::error file=a%3Ab%2Cc%25.yaml,line=3,col=5,title=example-of-tests::An example: 100%25\\n::error::forged\\r\\n\n",
        ),
    ],
)
def test_annotations_cannot_be_forged(file: str, detail: str, path: str, line: str) -> None:
    assert github_annotations([EXAMPLE.at(detail, span=Span(file, 3, 5))], path) == line


def test_annotations_without_a_place() -> None:
    assert github_annotations([EXAMPLE.at("why", severity="warning")]) == (
        "::warning title=example-of-tests::An example: why\n"
    )


def test_every_code_can_be_explained() -> None:
    for found in REGISTRY.values():
        assert found.trigger in to_text(explanation(found), columns=10_000)
        assert explanation_json(found)["code"] == found.name
