"""Hostile input to commands that need no engine: always an answer or a diagnostic, never an internal error."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleetctl.canonical import digest_of
from fleetctl.cli.userconfig import EngineEntry, WitnessEntry, add_engine, read_config, set_state
from fleetctl.pool1.wire import COMMANDS
from tests.support.cli import Home
from tests.support.worlds import World, fleet

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
FEW = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def home() -> Home:
    return Home(path=Path(tempfile.mkdtemp()))


def orderly(home: Home, *arguments: str, stdin: bytes | None = None) -> None:
    done = home.run("--format", "json", *arguments, stdin=stdin)
    assert done.error is None and done.exit in (0, 1, 3), done
    if done.exit:
        assert "internal-error" not in done.out, done.out


@FEW
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_show_of_anything(home: Home, data: bytes) -> None:
    (home.work / "any.json").write_bytes(data)
    orderly(home, "show", "any.json")


def a_plan() -> dict[str, Any]:
    world = World()
    wanted = fleet({"site/fra1": {}, "tenant/acme": {}, "pool/p1": {}, "offer/p1/acme": {}})
    return world.file(world.plan(wanted), wanted).to_json()


PLAN = a_plan()
PATHS = [
    "body",
    "body.operations",
    "body.acceptances",
    "body.origin",
    "body.fleet",
    "context",
    "context.dangers",
    "context.names",
]
PATHS += ["context.fields", "context.warnings", "context.impact", "signatures", "formatVersion"]


@FEW
@given(st.sampled_from(PATHS), JSON, st.sampled_from(["text", "json"]))
def test_show_of_a_plan_with_any_part_replaced_and_digested_anew(home: Home, path: str, value: Any, form: str) -> None:
    plan = json.loads(json.dumps(PLAN))
    holder, _, name = path.rpartition(".")
    (plan[holder] if holder else plan)[name] = value
    for part, digest in (("body", "digest"), ("context", "contextDigest")):
        try:
            plan[digest] = digest_of(plan[part])
        except (TypeError, ValueError):
            pass  # no canonical JSON: refused as such
    home.write("plan.json", json.dumps(plan))
    orderly(home, "show", "plan.json")
    done = home.run("show", "plan.json", "--format", form)
    assert done.error is None and "internal-error" not in done.err + done.out
    assert form == "json" or all(line.isprintable() for line in done.out.splitlines())


@FEW
@given(st.sampled_from(sorted(COMMANDS)), st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
def test_pool1_of_anything(home: Home, command: str, data: bytes) -> None:
    orderly(home, "pool1", command, stdin=data)
    lines = home.run("pool1", command, "--lines", stdin=data + b"\n{}\n")
    answers = [json.loads(line) for line in lines.out.splitlines()]
    assert len(answers) == data.count(b"\n") + 2
    assert lines.exit == (1 if any("error" in answer for answer in answers) else 0)


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@FEW
@given(TEXT, TEXT, TEXT)
@example("sqlite:a\x85b\u2028", "root", "http://w")
def test_what_init_writes_into_the_configuration_comes_back(state: str, steward: str, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        entries = [
            EngineEntry(id=f"eng_{n}", state=state, steward=steward, witnesses=(WitnessEntry(id="w", url=url),))
            for n in range(2)
        ]
        for entry in entries:
            add_engine(path, entry)
        assert list(read_config(path).values()) == entries
        assert set_state(path, "eng_1", "sqlite:/elsewhere")
        found = read_config(path)
        assert (found["eng_0"], found["eng_1"].state) == (entries[0], "sqlite:/elsewhere")
