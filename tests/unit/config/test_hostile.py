"""Whatever is in a file, the answer is diagnostics: never a traceback, never more than 2 seconds and 300 MB."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleetctl.config.load import load_fleet
from fleetctl.config.reader import MAX_NODES
from tests.support.fleets import FLEET, as_yaml

ROOT = Path(__file__).resolve().parents[3]
GOOD = as_yaml(FLEET)
WORDS = [
    *"{}[],:?-&*!|>'\"%@`#\n\t\r \\~<=.0",
    "a",
    "1",
    "null",
    "true",
    ": ",
    "- ",
    "<<: ",
    "&a ",
    "*a",
    "!!str ",
    "--- ",
    "...\n",
    "%YAML 1.1\n",
    "%TAG ! x\n",
    "pools:",
    "policy:",
    "idempotencyKey:",
    "from:",
    "\\u202e",
    "\u202e",
    "\ufeff",
    "é",
    "\x00",
    "\x85",
    "1e999",
    ".inf",
    "# fleetctl: allow x y\n",
    "sites: {a: {kind: shared, region: r}}\n",
]


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.yaml").write_bytes(data)
        result = load_fleet(folder)
    assert (result.fleet is None) == any(item.severity == "error" for item in result.diagnostics)
    for item in result.diagnostics:
        json.dumps(item.to_json()).encode("utf-8")
        assert item.detail.isprintable(), item.detail
        assert item.span is None or (item.span.line >= 1 and item.span.column >= 1)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf")
def test_any_bytes(data: bytes) -> None:
    check(data)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check(text.encode("utf-8", errors="surrogatepass"))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_words_that_mean_something_to_yaml_and_to_us(words: list[str]) -> None:
    check("".join(words).encode("utf-8"))


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(GOOD)), cut=st.integers(0, 12), put=st.lists(st.sampled_from(WORDS), max_size=3))
@example(at=GOOD.index("training:"), cut=0, put=["\u202e"])  # the name that a hint then offers
def test_a_good_fleet_with_one_place_spoilt(at: int, cut: int, put: list[str]) -> None:
    check((GOOD[:at] + "".join(put) + GOOD[at + cut :]).encode("utf-8"))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["acme", "p", "1h", "1 J", "root"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*FLEET, "idempotencyKey", "from", "to", "pool", "a", "policy"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    section=st.sampled_from([*FLEET]),
    name=st.sampled_from(["fra1-h100", "acme", "research", "dev", "o1", "training", "pools", "a"]),
    field=st.sampled_from(["policy", "site", "guarantee", "procurements", "quota", "pools", "from", "parent", "x"]),
    value=JSON_VALUES,
)
def test_a_good_fleet_with_any_value_in_any_field(section: str, name: str, field: str, value: object) -> None:
    """YAML reads JSON, so data of any shape can be put anywhere."""
    fleet = json.loads(json.dumps(FLEET))
    target = fleet[section]
    if isinstance(target, dict):
        if isinstance(target.get(name), dict):
            target[name][field] = value
        else:
            target[name] = value
    else:
        fleet[section] = value
    check(json.dumps(fleet, ensure_ascii=False).encode("utf-8", errors="surrogatepass"))


BOMBS = {
    "billion-laughs": "policies:\n  l0: &l0 [a,a,a,a,a,a,a,a,a,a]\n"
    + "".join(f"  l{i}: &l{i} [{','.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 40)),
    "wide-aliases": "a: &a [" + "x," * 900 + "]\nb: [" + "*a," * 1_000_000 + "]\n",
    "flat-list": "x: [" + "1," * 8_000_000 + "]\n",
    "flat-mapping": "".join(f"k{i}:\n" for i in range(1_300_000)),
    "duplicate-keys": "{" + "a: 1," * 3_000_000 + "}",
    "brackets": "[" * 16_000_000,
    "braces": "{a: " * 4_000_000,
    "dashes": "- " * 8_000_000,
    "question-marks": "? " * 8_000_000,
    "tag-directives": "%TAG !a! tag:x,2000:\n" * 700_000,
    "anchors": "".join(f"- &a{i} 1\n" for i in range(1_000_000)),
    "unknown-aliases": "x: [" + "*a," * 5_000_000 + "]",
    "tabs": "\t\n" * 8_000_000,
    "line-ends": "\n" * 16_000_000 + "[",
    "carriage-returns": "\r" * 16_000_000,
    "controls": "\x01" * 16_000_000,
    "bidi": "# " + "\u202e" * 5_000_000,
    "escapes": 'x: "' + "\\u202e" * 2_000_000 + '"',
    "long-scalar": "x: " + "a" * 16_000_000,
    "quoted": 'x: "' + "a\n" * 8_000_000,
    "comments": "# fleetctl: allow x y\n" * 700_000,
    "comments-broken": "#fleetctl:\n" * 1_400_000,
    "unknown-sections": "".join(f"k{i}: 1\n" for i in range(450_000)),
    "unknown-fields": "sites:\n  a: {" + "".join(f"k{i}: 1," for i in range(450_000)) + "}\n",
    "bad-names": "sites:\n" + "".join(f"  K{i}: {{}}\n" for i in range(300_000)),
    "non-ascii-keys": "policies:\n  p: {" + "".join(f"é{i}: é," for i in range(450_000)) + "}\n",
    "documents": "---\na: 1\n" * 330_000,
    "long-names": "sites: {" + ",".join("a" * 50_000 + str(i) + ": {}" for i in range(300)) + "}",
    "digits": "policies: {p: {x: " + "1" * 16_000_000 + "}}",
    "exponents": "policies: {p: {x: [" + "1e9999999," * 1_000_000 + "]}}",
    "slashes": "offers: {o: {to: " + "a/" * 8_000_000 + "}}",
    "sk": "sk-" * 5_000_000,
    "urls": "aaaaaaaaaaaaaaaaaaaa://" * 700_000,
}

CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (300 * 1024 * 1024,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
from fleetctl.config.load import load_fleet
result = load_fleet(sys.argv[1])
assert any(item.severity == "error" for item in result.diagnostics)
assert len(result.diagnostics) < 1000
"""


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_bounds(name: str, tmp_path: Path) -> None:
    """fleet-files: a bomb is refused within 2 seconds and 300 MB: rlimits of a process, with room for a busy machine."""
    (tmp_path / "a.yaml").write_bytes(BOMBS[name].encode("utf-8")[: 16 * 1024 * 1024])
    done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_largest_legal_fleet_loads(tmp_path: Path) -> None:
    """fleet-files: just under 1,000,000 nodes, in two files."""
    pools = 33_300
    for part in range(2):
        names = range(part * pools // 2, (part + 1) * pools // 2)
        (tmp_path / f"{part}.yaml").write_text(
            "pools:\n" + "".join(POOL.format(name) for name in names), encoding="utf-8"
        )
    (tmp_path / "z.yaml").write_text("apiVersion: fleetctl/v1\nfleet: big\ntenant: root\n" + SITE, encoding="utf-8")
    result = load_fleet(tmp_path)
    assert result.diagnostics == ()
    assert result.fleet is not None and len(result.fleet.objects) == pools + 1
    assert MAX_NODES - 30 * pools in range(900, 1500)


SITE = "sites:\n  fra1: {kind: shared, region: eu-central}\n"
POOL = """\
  p{0}:
    idempotencyKey: pool-{0}
    site: fra1
    class: metal-host
    gpuModel: H100
    ownerQuota: {{gpu: 512, vcpu: 1}}
    labels: {{a: b, c: d}}
    policy: {{maxPending: 6h, disruptionBudget: 0.05, tenantRoot: false}}
"""
