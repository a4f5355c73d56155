"""The plan file (plan-apply: "The plan file"): what is digested, what is refused, and how much a hostile one may cost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_bytes, digest_of, sha256_hex
from fleetctl.errors import BadInput, FleetctlError, SafetyRefused
from fleetctl.plan.planfile import MAX_BYTES, MAX_DEPTH, PlanFile, body_bytes, read_plan, write_plan
from fleetctl.plan.provenance import Provenance
from tests.support.worlds import World, fleet

OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "tenant/acme": {},
    "site/fra1": {},
    "pool/p1": {
        "ownerQuota": {"gpu": "9007199254740993"},
        "policy": {"maxPendingMs": 21_600_000, "x": {"$decimal": "1.5"}},
    },
    "offer/p1/acme": {"quota": {"gpu": 32}},
    "entitlement/e": {"guarantee": {"energyUj": "9223372036854775807", "devices": 8}},
}


def _rich() -> PlanFile:
    """A plan with every part: dangers, acceptances, provenance, warnings, ignored fields."""
    world = World()
    world.converge(fleet(OBJECTS), commit="c" * 40)
    world.use(booked={("pool/p1", "acme"): {"reservations": 3, "gpu": 24}})
    wanted = fleet(
        {**OBJECTS, "offer/p1/acme": {"quota": {"gpu": 16}}, "market-pool/m": {"description": "Grüße 🚀"}},
        accept=[
            {"danger": "shrink-below-use:offer/p1/acme", "reason": "agreed", "until": "2026-12-31"},
            "share:fleet/eu",
        ],
        ignore=[{"object": "pool/p1", "field": "policy.x", "until": "2026-01-01"}],
        release=["pool/ghost"],
    )
    where = Provenance(last_commit="c" * 40, ancestor=True, origin=("0" * 40, "fleet"))
    return world.file(world.plan(wanted, provenance=where), wanted, commit="d" * 40 + "+dirty")


FILE = _rich()
CONTENT: dict[str, Any] = FILE.to_json()


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path


def _copy() -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(CONTENT))
    return copied


def _at(content: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        content = content[step]
    return content


def _read(content: Mapping[str, Any]) -> PlanFile:
    return read_plan(json.dumps(content).encode())


def _sealed(content: dict[str, Any]) -> dict[str, Any]:
    """With digests that hold, as a forger would write it."""
    return {**content, "digest": digest_of(content["body"]), "contextDigest": digest_of(content["context"])}


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value + "x"


def test_a_plan_comes_back_from_its_bytes() -> None:
    again = read_plan(write_plan(FILE))
    assert again == FILE
    assert again.digest == sha256_hex(body_bytes(again)) == sha256_hex(canonical_bytes(CONTENT["body"]))
    assert write_plan(again) == write_plan(FILE)


def test_the_body_holds_what_is_done_and_nothing_of_the_moment() -> None:
    assert set(CONTENT["body"]) == {
        "format",
        "engine",
        "fleet",
        "tenant",
        "operations",
        "acceptances",
        "lastApplied",
        "origin",
    }
    assert {item["verb"] for item in CONTENT["body"]["operations"]} == {"create", "update"}
    assert [item["danger"] for item in CONTENT["body"]["acceptances"]] == [
        "share:fleet/eu",
        "shrink-below-use:offer/p1/acme",
    ]


@pytest.mark.parametrize("part", ["body", "context"])
def test_every_edit_of_a_value_is_seen(part: str) -> None:
    paths = list(_leaves(CONTENT[part], (part,)))
    assert len(paths) > 25
    for path in paths:
        content = _copy()
        holder = _at(content, path[:-1])
        holder[path[-1]] = _other(holder[path[-1]])
        with pytest.raises(SafetyRefused) as refused:
            _read(content)
        assert refused.value.code == "plan-edited", path
        assert refused.value.exit_code == 3


@pytest.mark.parametrize("part", ["body", "context"])
def test_every_part_that_is_taken_away_or_put_twice_is_seen(part: str) -> None:
    parts = {leaf[:depth] for leaf in _leaves(CONTENT[part], (part,)) for depth in range(2, len(leaf) + 1)}
    for path in parts:
        gone, twice = _copy(), _copy()
        del _at(gone, path[:-1])[path[-1]]
        with pytest.raises(SafetyRefused, match="plan-edited"):
            _read(gone)
        holder = _at(twice, path[:-1])
        if isinstance(holder, list):
            holder.insert(path[-1], holder[path[-1]])
            with pytest.raises(SafetyRefused, match="plan-edited"):
                _read(twice)


@pytest.mark.parametrize("name", ["digest", "contextDigest"])
@pytest.mark.parametrize("value", ["0" * 64, CONTENT["digest"].upper(), "", None, 5, [], "sha256:" + CONTENT["digest"]])
def test_a_digest_that_does_not_fit(name: str, value: Any) -> None:
    with pytest.raises(SafetyRefused, match="plan-edited"):
        _read({**CONTENT, name: value})


def test_the_digest_is_of_the_value_and_not_of_its_text() -> None:
    """Order of keys, spaces and escapes are no part of a plan."""
    reversed_keys = json.loads(json.dumps(CONTENT), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    for text in (
        json.dumps(CONTENT, indent=7),
        json.dumps(reversed_keys, ensure_ascii=False),
        json.dumps(CONTENT).replace("/", "\\/"),
        json.dumps(CONTENT, ensure_ascii=True).replace("\n", "\r\n"),
    ):
        assert read_plan(text.encode()) == FILE


def _unreadable(data: bytes, *, code: str = "plan-unreadable") -> None:
    with pytest.raises(BadInput) as refused:
        read_plan(data)
    assert refused.value.code == code
    assert refused.value.exit_code == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"plan"',
        b"\xff\xfe{}",
        b'{"formatVersion": "1.0"}',
        b'{"formatVersion": "1.0", "body": [], "context": {}}',
        b'{"formatVersion": "1.0", "body": {}, "context": 3}',
        b'\xef\xbb\xbf{"formatVersion": "1.0"}',
    ],
)
def test_what_is_no_plan_file(data: bytes) -> None:
    _unreadable(data)


@pytest.mark.parametrize(
    "number", ["1.0", "1e3", "-0.0", "NaN", "Infinity", "-Infinity", "9007199254740992", "1" * 5000]
)
def test_numbers_that_readers_would_round(number: str) -> None:
    text = json.dumps(CONTENT).replace('"gpu": 16', f'"gpu": {number}')
    assert text != json.dumps(CONTENT)
    _unreadable(text.encode())


def test_nulls_have_no_place() -> None:
    content = _copy()
    content["body"]["operations"][0]["before"] = None
    _unreadable(json.dumps(content).encode())


@pytest.mark.parametrize(
    "text",
    ['{"digest": "", ', '{"body": {}, ', '{"formatVersion": "1.0", '],
)
def test_keys_that_come_twice(text: str) -> None:
    _unreadable((text + json.dumps(CONTENT)[1:]).encode())


def test_a_key_that_comes_twice_deep_inside() -> None:
    _unreadable(json.dumps(CONTENT).replace('"gpu": 16', '"gpu": 32, "gpu": 16').encode())


def test_a_lone_surrogate_is_no_text() -> None:
    _unreadable(json.dumps(CONTENT).replace("Gr\\u00fc\\u00dfe", "\\ud800").encode())


@pytest.mark.parametrize(
    "version", ["2.0", "0.9", "", "10.0", "one", "1", "1.", "1.x", "1.0 ", "1.01", "1.0.0", None, 1, 1.0, ["1.0"]]
)
def test_an_unknown_major(version: Any) -> None:
    code = "plan-unreadable" if isinstance(version, float) else "plan-version"
    _unreadable(json.dumps({**CONTENT, "formatVersion": version}).encode(), code=code)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.99"])
def test_what_a_minor_adds_is_ignored(version: str) -> None:
    """At the top level and in the context; the body is what people approved."""
    content = _copy()
    content["context"]["news"] = {"deep": [1, True]}
    read = _read({**_sealed(content), "formatVersion": version, "result": "planned", "news": {"x": [1]}})
    assert read.body == FILE.body


def _drop(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body.pop(name)


BODY_EDITS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "unknown field": lambda body: body.update(news=1),
    "unknown field of an operation": lambda body: body["operations"][0].update(news=1),
    "unknown field of a precondition": lambda body: body["operations"][0]["precondition"].update(news=1),
    "unknown field of an acceptance": lambda body: body["acceptances"][0].update(news="x"),
    "unknown field of lastApplied": lambda body: body["lastApplied"].update(news="x"),
    "unknown field of origin": lambda body: body["origin"].update(news="x"),
    "another format": lambda body: body.update(format="fleetctl-plan/2"),
    "no format": _drop("format"),
    "no engine": _drop("engine"),
    "no fleet": _drop("fleet"),
    "no tenant": _drop("tenant"),
    "no operations": _drop("operations"),
    "no acceptances": _drop("acceptances"),
    "operations that are none": lambda body: body.update(operations={}),
    "acceptances that are none": lambda body: body.update(acceptances=5),
    "an acceptance that is none": lambda body: body["acceptances"].append("share:fleet/eu"),
    "an acceptance until no date": lambda body: body["acceptances"][0].update(until="2026-02-30"),
    "acceptances out of order": lambda body: body["acceptances"].reverse(),
    "an acceptance twice": lambda body: body["acceptances"].append(body["acceptances"][-1]),
    "a fleet that is no name": lambda body: body.update(fleet="a/b"),
    "an empty fleet": lambda body: body.update(fleet=""),
    "a tenant that is no name": lambda body: body.update(tenant="A B"),
    "a commit that is none": lambda body: body["lastApplied"].update(commit=5),
    "an ancestor of no commit": lambda body: body["lastApplied"].pop("commit"),
    "an empty lastApplied": lambda body: body.update(lastApplied={}),
    "an ancestor that is no flag": lambda body: body["lastApplied"].update(ancestor="yes"),
    "an origin without path": lambda body: body["origin"].pop("path"),
    "an operation that is none": lambda body: body["operations"].append("create"),
    "an unknown verb": lambda body: body["operations"][0].update(verb="destroy"),
    "an unknown kind": lambda body: body["operations"][0].update(kind="planet"),
    "a key that is none": lambda body: body["operations"][0].update(key="../x"),
    "an id that is none": lambda body: body["operations"][0].update(id="pool_\n"),
    "a reversible that is no flag": lambda body: body["operations"][0].update(reversible=1),
    "no reversible": lambda body: body["operations"][0].pop("reversible"),
    "no reason": lambda body: body["operations"][0].pop("reason"),
    "no precondition": lambda body: body["operations"][0].pop("precondition"),
    "a precondition of both": lambda body: body["operations"][0]["precondition"].update(absent=0, version=1),
    "a precondition of neither": lambda body: body["operations"][0].update(precondition={}),
    "a version below 0": lambda body: body["operations"][0].update(precondition={"version": -1}),
    "a version that is a flag": lambda body: body["operations"][0].update(precondition={"version": True}),
    "an empty requires": lambda body: body["operations"][0]["precondition"].update(requires=[]),
    "a requires that is no id": lambda body: body["operations"][0]["precondition"].update(requires=["a b"]),
    "an absence for an update": lambda body: body["operations"][0].update(precondition={"absent": 0}),
    "a before that is none": lambda body: body["operations"][0].update(before=[]),
    "an object twice": lambda body: body["operations"].append(body["operations"][0]),
}


@pytest.mark.parametrize("name", BODY_EDITS)
def test_a_body_that_is_not_written_like_one(name: str) -> None:
    """The digest holds, and still: a reader takes only what a writer writes."""
    content = _copy()
    BODY_EDITS[name](content["body"])
    assert json.dumps(content) != json.dumps(CONTENT)  # 1 is not true
    _unreadable(json.dumps(_sealed(content)).encode())


@pytest.mark.parametrize("signatures", [5, {}, [5], ["00", None], "00"])
def test_signatures_are_a_list_of_text(signatures: Any) -> None:
    _unreadable(json.dumps({**CONTENT, "signatures": signatures}).encode())


@pytest.mark.parametrize(
    "dangers",
    [5, {"id": "x"}, ["x"], [{}], [{"id": "a"}], [{"id": "a", "figures": []}], [{"id": "a", "figures": {"gpu": "x"}}]],
)
def test_dangers_of_a_context_that_are_none(dangers: Any) -> None:
    content = _copy()
    content["context"]["dangers"] = dangers
    file = _read(_sealed(content))
    with pytest.raises(BadInput, match="plan-unreadable"):
        file.planned_figures()


def test_planned_figures_are_exact() -> None:
    content = _copy()
    content["context"]["dangers"] = [{"id": "shrink-below-use:entitlement/e", "figures": {"x": "9007199254740993"}}]
    assert _read(_sealed(content)).planned_figures() == {"shrink-below-use:entitlement/e": {"x": 9007199254740993}}


def test_nesting_has_a_bound() -> None:
    def nested(depth: int) -> bytes:
        return json.dumps({**CONTENT, "news": None}).replace("null", "[" * depth + "]" * depth).encode()

    assert read_plan(nested(MAX_DEPTH - 1)) == FILE
    _unreadable(nested(MAX_DEPTH))
    _unreadable(nested(100_000))
    _unreadable(b"[" * 1_000_000)
    text = '{"x": "' + "[{" * 500 + '\\"[", "news": "]"}'
    with pytest.raises(BadInput, match="plan-version"):
        read_plan(text.encode())  # brackets in text are no nesting


def test_a_file_of_64_mib_is_read_and_one_byte_more_is_not() -> None:
    data = write_plan(FILE)
    assert read_plan(data + b" " * (MAX_BYTES - len(data))) == FILE
    _unreadable(data + b" " * (MAX_BYTES - len(data) + 1))


HOSTILE: Mapping[str, str] = {
    "keys that come twice, at the end": "b'{' + b','.join(b'\"%d\":1' % i for i in range(400_000)) + b',\"399999\":1}'",
    "a text without end": "b'{\"x\": \"' + b'\\\\\\\"' * 5_000_000",
    "quotes alone": "b'\"' * 5_000_000",
    "brackets in turns": "b'[1,' * 5_000_000",
    "brackets that close": "b']' * 5_000_000",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_cost_little(name: str) -> None:
    """CPU and memory are bounded by the kernel, not by a clock of ours."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
from fleetctl.errors import FleetctlError
from fleetctl.plan.planfile import read_plan
try:
    read_plan({HOSTILE[name]})
except FleetctlError as error:
    print(error.code)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "plan-unreadable"


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_end_in_a_traceback(data: bytes) -> None:
    with pytest.raises(FleetctlError):
        read_plan(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(value=_JSON, path=st.sampled_from(sorted(_leaves(CONTENT), key=repr)), depth=st.integers(1, 9))
def test_any_value_in_any_place_is_read_or_refused(value: Any, path: tuple[Any, ...], depth: int) -> None:
    """With digests made to fit where they can be: a refusal always says why."""
    content = _copy()
    place = path[:depth]
    _at(content, place[:-1])[place[-1]] = value
    try:
        content = _sealed(content)
    except (TypeError, ValueError, KeyError):
        pass  # nothing canonical: the digests stay as they were
    try:
        file = _read(content)
        file.planned_figures()
    except FleetctlError as error:
        assert error.diagnostics[0].detail
