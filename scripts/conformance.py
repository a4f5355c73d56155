"""The table of conformance: each clause of pool/1, the functions that meet it, and what shows that they do.

Clauses are rows of `tests/cases/pool1/conformance.json`. What shows them are tests with the mark `clause` and rows of case
files. Tests are read, not imported.
"""

from __future__ import annotations

import ast
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
CLAUSES = TESTS / "cases" / "pool1" / "conformance.json"
ATTACKS = TESTS / "cases" / "ledger" / "attacks"
POINTS = "pool/1 §7."
READINGS = [f"A{number:02}" for number in range(1, 80)]
"""Rows of the readings of pool/1's gaps, each of which is a test."""
_READ_IN = ("cases/pool1", "cases/ledger", "cases/decide", "unit/pool1", "unit/ledger", "unit/engine", "crash")
"""Where an `A30` is a reading; elsewhere it may be a GPU."""
_READING = re.compile(r"\bA[0-9]{2}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One MUST of the standard. `met_by` are dotted names; `cases` are `<file> <id>` of tests/cases."""

    name: str
    must: str
    met_by: Sequence[str]
    cases: Sequence[str]


def clauses() -> list[Clause]:
    """In the order of the file."""
    rows = json.loads(CLAUSES.read_text(encoding="utf-8"))["clauses"]
    return [Clause(name=row["clause"], must=row["must"], met_by=row["met_by"], cases=row["cases"]) for row in rows]


def marked(folder: Path = TESTS) -> Iterator[tuple[str, str]]:
    """(clause, `path::test`) of every `@pytest.mark.clause(…)` below the folder, by path. Raises ValueError for a mark that is no text."""
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.clause(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for name in _named(node):
                    yield name, f"{path.relative_to(ROOT).as_posix()}::{node.name}"


def _named(test: ast.FunctionDef) -> Iterator[str]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.clause":
            for argument in mark.args:
                if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                    raise ValueError(f"{test.name}: a clause is named by a text")
                yield argument.value


def tests_by_clause() -> Mapping[str, list[str]]:
    """Tests of each clause that a mark names, whether or not it is one of the file."""
    found: dict[str, list[str]] = {}
    for name, test in marked():
        found.setdefault(name, []).append(test)
    return found


def readings() -> Mapping[str, list[str]]:
    """What shows each reading: case files and test modules below tests/ that name it, by path."""
    found: dict[str, list[str]] = {name: [] for name in READINGS}
    for folder in _READ_IN:
        for path in sorted((TESTS / folder).rglob("*")):
            if path.suffix in (".json", ".py") and path.name not in ("conformance.json", "__init__.py"):
                for name in {*_READING.findall(path.read_text(encoding="utf-8"))} & found.keys():
                    found[name].append(path.relative_to(TESTS).as_posix())
    return found


def case_exists(reference: str) -> bool:
    """Whether `attacks 101` is a file of the ledger's attacks, or `readings A21` has rows in that file of pool1's cases."""
    kind, _, id = reference.partition(" ")
    if kind == "attacks":
        return any(ATTACKS.glob(f"{id}-*.json"))
    file = TESTS / "cases" / "pool1" / f"{kind}.json"
    return file.exists() and any(case.get("id") == id for case in json.loads(file.read_text(encoding="utf-8"))["cases"])


def resolves(dotted: str) -> bool:
    """Whether a dotted name is something of the package."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def page(generated: str) -> str:
    """docs/reference/conformance.md."""
    tests = tests_by_clause()
    found = clauses()
    points = [item for item in found if item.name.startswith(POINTS)]
    lines = [
        generated,
        "",
        "# Conformance to pool/1",
        "",
        "What the standard demands, the functions that meet it, and what shows that they do: tests, and rows of case files, which",
        "tests run one by one. A clause without a test fails the suite. Readings of the standard's gaps are `A01` to `A79`.",
        "",
        "## The conformance list, §7",
        "",
        *_table(points, tests),
        "",
        "## Every other MUST",
        "",
        *_table([item for item in found if item not in points], tests),
        "",
        "## Readings of the standard's gaps",
        "",
        "| reading | shown by |",
        "|---|---|",
        *(f"| {name} | {'; '.join(map(_coded, shown))} |" for name, shown in readings().items()),
    ]
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Clause], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "| clause | the standard says | met by | shown by |"
    yield "|---|---|---|---|"
    for item in found:
        met = ", ".join(f"`{name.removeprefix('fleetctl.')}`" for name in item.met_by)
        shown = [f"`{_short(test)}`" for test in tests.get(item.name, ())]
        shown += _rows(item.cases)
        yield f"| {item.name.removeprefix('pool/1 ')} | {item.must} | {met} | {'; '.join(shown)} |"


def _rows(cases: Sequence[str]) -> Iterator[str]:
    """`readings A21, A22` for each file."""
    files: dict[str, list[str]] = {}
    for case in cases:
        file, _, id = case.partition(" ")
        files.setdefault(file, []).append(id)
    for file, ids in files.items():
        yield f"{file} {', '.join(ids)}"


def _coded(path: str) -> str:
    return f"`{path.removeprefix('unit/')}`"


def _short(test: str) -> str:
    """`pool1/test_properties.py::test_x` for a unit test, the path below tests/ for others."""
    return test.removeprefix("tests/").removeprefix("unit/")
