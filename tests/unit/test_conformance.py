"""The table of conformance claims what is tested, and nothing else."""

from __future__ import annotations

import json

import pytest

from scripts import conformance
from scripts.conformance import Clause

CLAUSES = conformance.clauses()
TESTS = conformance.tests_by_clause()


def test_every_point_of_the_conformance_list_is_there_once_and_in_order() -> None:
    names = [item.name for item in CLAUSES]
    assert names[:28] == [f"pool/1 §7.{number}" for number in range(1, 29)]
    assert len(set(names)) == len(names)
    assert not any(name.startswith(conformance.POINTS) for name in names[28:])


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.name)
def test_a_clause_has_a_function_and_a_test(clause: Clause) -> None:
    assert clause.met_by and [name for name in clause.met_by if not conformance.resolves(name)] == []
    assert TESTS.get(clause.name), f"{clause.name} has no test: mark one with @pytest.mark.clause({clause.name!r})"
    assert [case for case in clause.cases if not conformance.case_exists(case)] == []


def test_every_mark_names_a_clause() -> None:
    assert sorted(set(TESTS) - {item.name for item in CLAUSES}) == []


@pytest.mark.parametrize(("reading", "shown"), conformance.readings().items())
def test_every_reading_has_a_test(reading: str, shown: list[str]) -> None:
    assert shown, f"nothing below tests/ names {reading}"


def test_every_vector_is_there_as_the_readings_have_it() -> None:
    cases = json.loads((conformance.TESTS / "cases" / "pool1" / "vectors.json").read_text(encoding="utf-8"))["cases"]
    assert [case["id"] for case in cases if case["id"].startswith("V")] == [f"V{n:02}" for n in range(1, 40, 2)]


@pytest.mark.parametrize("reference", ["attacks 999", "readings A99", "nothing A01", "readings"])
def test_a_case_that_is_not_there_is_found_out(reference: str) -> None:
    assert not conformance.case_exists(reference)


def test_a_function_that_is_not_there_is_found_out() -> None:
    assert not conformance.resolves("fleetctl.pool1.admission.nothing")
    assert not conformance.resolves("fleetctl.nothing.at_all")
