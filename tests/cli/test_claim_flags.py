"""Bad values of `claims …` and `reservations …` options: a diagnostic with a stable code, and nothing anywhere is changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

LARGE = str(2**63)
FIGURES = {
    "negative": "-1",
    "fraction": "1.5",
    "boolean": "true",
    "underscore": "1_0",
    "sign": "+1",
    "space": " 1",
    "another script": "１",
    "exponent": "1e2",
    "hexadecimal": "0x2",
    "empty": "",
    "NaN": "NaN",
    "2^63": LARGE,
    "2^64": str(2**64),
    "10^400": str(10**400),
    "10^5000": "1" + "0" * 5_000,
}
ADMIT = {"--entitlement": "ent-acme", "--claim": "c2", "--devices": "1", "--energy": "1J", "--grade": "HwShunt"}
REPORT = {"--claim": "c1", "--units": "1", "--energy": "1J", "--grade": "HwShunt"}
RELEASE = {"--claim": "c1", "--energy": "1J", "--grade": "HwShunt"}
DERIVE = {"--entitlement": "ent-acme", "--claim": "c2", "--devices": "1", "--class": "x", "--estimate": "derive"}
RESERVE = {"--tenant": "acme", "--pool": "pool-fra1-h100", "--gpus": "1"}
PAID = RESERVE | {"--entitlement": "ent-acme", "--energy": "1J", "--grade": "HwShunt"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(path=tmp_path_factory.mktemp("home")).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok("claims", "admit", *words(ADMIT | {"--claim": "c1"}), "--now", NOW)
    return home


def words(options: dict[str, str]) -> list[str]:
    return [word for pair in options.items() for word in pair]


def rows(home: Home) -> list[str]:
    """Everything that the engine keeps."""
    (state,) = home.path.glob("state/fleetctl/eng_test/state.db")
    with sqlite3.connect(f"file:{state}?mode=ro", uri=True) as database:
        return list(database.iterdump())


def refused(home: Home, *arguments: str) -> tuple[int, str]:
    """Exit and code of a refusal, which has changed nothing."""
    before = rows(home)
    done = home.run(*arguments, "--now", NOW, "--format", "json")
    assert (done.error, done.json["result"]) == (None, "error"), done
    assert rows(home) == before
    (told,) = done.json["diagnostics"]
    assert told["detail"] and len(told["detail"]) < 400
    return done.exit, told["code"]


@pytest.mark.parametrize("value", FIGURES.values(), ids=FIGURES)
@pytest.mark.parametrize(
    ("command", "options", "option"),
    [
        ("claims admit", ADMIT, "--devices"),
        ("claims admit", ADMIT, "--gang"),
        ("claims admit", DERIVE, "--required"),
        ("claims report", REPORT, "--units"),
        ("reservations create", RESERVE, "--gpus"),
        ("events list", {}, "--since"),
        ("ledger show", {}, "--since"),
        ("ledger show", {}, "--limit"),
    ],
)
def test_a_count_is_a_whole_number_in_its_range(
    home: Home, command: str, options: dict[str, str], option: str, value: str
) -> None:
    """readings A29: anything but an integer from 0 to 2^63-1 is invalid, never wrapped, rounded or read as another."""
    assert refused(home, *command.split(), *words(options), f"{option}={value}") == (64, "usage")


@pytest.mark.parametrize("unit", ["", "uJ", "kg"])
@pytest.mark.parametrize("value", FIGURES.values(), ids=FIGURES)
@pytest.mark.parametrize(
    ("command", "options", "option"),
    [
        ("claims admit", ADMIT, "--energy"),
        ("claims release", RELEASE, "--energy"),
        ("claims report", REPORT, "--energy"),
        ("claims report", REPORT | {"--observed": "1h"}, "--observed-energy"),
        ("reservations create", PAID, "--energy"),
    ],
)
def test_an_energy_is_a_whole_number_of_microjoules_in_its_range(
    home: Home, command: str, options: dict[str, str], option: str, value: str, unit: str
) -> None:
    assert refused(home, *command.split(), *words(options), f"{option}={value}{unit}") == (64, "usage")


@pytest.mark.parametrize("grade", ["", "hwshunt", "HW", "measured", "HwShunt "])
@pytest.mark.parametrize(
    ("command", "options"),
    [("admit", ADMIT), ("release", RELEASE), ("report", REPORT)],
    ids=["admit", "release", "report"],
)
def test_an_unknown_grade(home: Home, command: str, options: dict[str, str], grade: str) -> None:
    assert refused(home, "claims", command, *words(options | {"--grade": grade})) == (64, "usage")


@pytest.mark.parametrize("energy", ["1J", "1GJ"])
@pytest.mark.parametrize(
    ("workload_class", "code"),
    [("", "empty-class"), ("  ", "empty-class"), ("a b", "bad-ledger-identifier"), ("ü", "bad-ledger-identifier")]
    + [("x" * 129, "bad-ledger-identifier"), ("a\nb", "bad-ledger-identifier")],
)
def test_a_class_is_refused_whatever_the_verdict_would_be(
    home: Home, workload_class: str, code: str, energy: str
) -> None:
    """readings A59. 1 GJ is past every guarantee: the claim would be denied, the reservation would fail."""
    options = words({"--class": workload_class, "--energy": energy})
    assert refused(home, "claims", "admit", *words(ADMIT), *options) == (1, code)
    assert refused(home, "claims", "admit", *words(DERIVE | {"--class": workload_class})) == (1, code)
    assert refused(home, "reservations", "create", *words(PAID), *options) == (1, code)


@pytest.mark.parametrize(
    "arguments",
    [
        ("admit", *words(ADMIT | {"--claim": "c1"})),
        ("release", "--claim", "never"),
        ("report", *words(REPORT | {"--claim": "never"})),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_claim_that_is_not_what_the_command_needs(home: Home, arguments: tuple[str, ...]) -> None:
    exit, code = refused(home, "claims", *arguments)
    assert exit == 1 and code in ("duplicate-claim", "claim-not-open")


@pytest.mark.parametrize(
    "options",
    [
        ["--energy", "1J"],
        ["--grade", "HwShunt"],
        ["--estimate", "derive", "--class", "x", "--energy", "1J"],
        ["--estimate", "guess", "--class", "x"],
        ["--required", "1", "--energy", "1J", "--grade", "HwShunt"],
        [],
    ],
)
def test_an_estimate_is_given_whole_or_derived(home: Home, options: list[str]) -> None:
    """A missing reading is never 0."""
    base = words({name: ADMIT[name] for name in ("--entitlement", "--claim", "--devices")})
    assert refused(home, "claims", "admit", *base, *options) == (64, "usage")


def test_a_claim_is_remarked_on_where_it_is_decided(tmp_path: Path) -> None:
    """readings/pool1 A26, A78: the verdict stays as it is, with the remark of the pure command beside it."""
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)

    def remarks(**options: str) -> list[str]:
        asked = ADMIT | {f"--{name}": value for name, value in options.items()}
        answer = home.json("claims", "admit", *words(asked), "--now", NOW)
        assert answer["verdict"] == "Admit"
        return [item["lint"] for item in answer["explain"]["lints"]]

    assert remarks(claim="read", grade="HwShunt") == ["estimate-graded-as-reading"]
    assert remarks(claim="guess", grade="Estimator", energy="0J") == ["zero-guess"]
    assert remarks(claim="model", grade="ModelBased") == []
    assert "no counter can have been read" in home.ok("claims", "admit", *words(ADMIT), "--now", NOW).out
