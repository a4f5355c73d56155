"""Exceptions to a check carry their reason, on the same line: `# type: ignore[code]  # why`, `# noqa: X1  # why`."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_EXCEPTION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma|fmt:\s*(off|skip))", re.IGNORECASE)
_WITH_REASON = re.compile(
    r"#\s*(type:\s*ignore\[[\w, -]+\]|noqa:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|pragma: no cover|fmt: (off|skip))\s+(#|-|—)\s*\w+"
)


def unexplained(source: str) -> list[int]:
    """Lines with an exception and no reason."""
    return [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and _EXCEPTION.search(token.string) and not _WITH_REASON.search(token.string)
    ]


def test_every_exception_says_why() -> None:
    sources = (
        path for folder in ("fleetctl", "tests", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    )
    found = [
        f"{path.relative_to(ROOT)}:{line}" for path in sources for line in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("comment", "explained"),
    [
        ("# type: ignore[arg-type]", False),
        ("# type: ignore", False),
        ("# noqa", False),
        ("# noqa: BLE001", False),
        ("# type: ignore[arg-type]  # the stub lacks bytes", True),
        ("# noqa: BLE001 - any exception in a verifier is a refusal", True),
        ("# nothing to see", True),
    ],
)
def test_the_check_sees(comment: str, explained: bool) -> None:
    assert unexplained(f"x = 1  {comment}\n") == ([] if explained else [1])
