"""issue 2: the digest is invariant under file split, key order, line ends, equivalent units, quoting; other fleets differ."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.config.load import load_fleet
from tests.support.fleets import FLEET, as_yaml, write

ROOT = Path(__file__).resolve().parents[3]
EQUIVALENT: Mapping[str, tuple[str, ...]] = {
    "40 MJ": ("40MJ", "40000 kJ", "0.04 GJ", "40000000 J"),
    "60 MJ": ("60000000 J", "60.0 MJ"),
    "0 J": ("0 GWh", "0J"),
    "30d": ("720h", "43200m"),
    "2h": ("120m", "7200s"),
    "6h": ("360m", "21600000ms"),
    "12h": ("720m",),
    "2026-12-07T00:00Z": ("2026-12-07T01:00+01:00", "2026-12-06T16:00:00-08:00", "2026-12-07T00:00:00.000Z"),
}


def digest_of(files: Mapping[str, str | bytes]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        result = load_fleet(write(Path(folder), files))
    assert [item.code.name for item in result.diagnostics if item.severity == "error"] == []
    assert result.fleet is not None
    return result.fleet.digest()


WANTED = digest_of({"fleet.yaml": as_yaml(FLEET)})


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_one_fleet_has_one_digest_however_it_is_written(seed: int) -> None:
    rng = random.Random(seed)
    parts = _split(_rewritten(FLEET, rng), rng)
    files: dict[str, str | bytes] = {}
    for index, part in enumerate(parts):
        text = as_yaml(part, quoted=frozenset(rng.sample(["root", "6h", "H100", "acme", "40 MJ"], 2)))
        if rng.random() < 0.3:
            text = f"# a comment\n---\n{text}---\n"
        data = text.replace("\n", rng.choice(["\n", "\r\n"])).encode("utf-8")
        files[f"{rng.choice(['', 'sub/', 'z/deep/'])}{index:02d}{rng.choice(['.yaml', '.yml'])}"] = (
            b"\xef\xbb\xbf" + data if rng.random() < 0.2 else data
        )
    assert digest_of(files) == WANTED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("40 MJ", "41 MJ"),
        ("gpu: 32", "gpu: 33"),
        ("fleet: eu-prod", "fleet: eu-test"),
        ("maxPending: 12h", "maxPending: 13h"),
        ("protect: true", "protect: false"),
        ("team: ml", "team: nlp"),
        ("agreed", "agreed upon"),
        ("pool/pool-old", "pool/pool-older"),
        ("  fra1-h100:", "  fra1-h100x:"),
    ],
)
def test_another_fleet_has_another_digest(old: str, new: str) -> None:
    text = as_yaml(FLEET)
    changed = text.replace(old, new).replace('["fra1-h100"', '["fra1-h100x"' if "h100x" in new else '["fra1-h100"')
    assert changed != text
    assert digest_of({"fleet.yaml": changed}) != WANTED


def test_the_digest_is_one_in_every_locale_time_zone_and_hash_seed(tmp_path: Path) -> None:
    write(tmp_path, {"fleet.yaml": as_yaml(FLEET)})
    program = "import sys; from fleetctl.config.load import load_fleet; print(load_fleet(sys.argv[1]).loaded().fleet.digest())"
    for seed, zone, language in (
        ("0", "UTC", "C"),
        ("1", "Asia/Kolkata", "tr_TR.UTF-8"),
        ("77", "America/Caracas", "C.UTF-8"),
    ):
        env = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": language, "LANG": language}
        command = [sys.executable, "-c", program, str(tmp_path)]
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == WANTED


def _rewritten(value: Any, rng: random.Random) -> Any:
    """The same fleet with mappings in another order and quantities in other units."""
    if isinstance(value, Mapping):
        items = [(key, _rewritten(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, str) and value in EQUIVALENT:
        return rng.choice([value, *EQUIVALENT[value]])
    return value


def _split(fleet: Mapping[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    """The fleet in up to four files; sections of objects may be divided between them."""
    parts: list[dict[str, Any]] = [{} for _ in range(rng.randint(1, 4))]
    for field, value in fleet.items():
        if isinstance(value, Mapping) and field != "defaults":
            for name, item in value.items():
                rng.choice(parts).setdefault(field, {})[name] = item
        else:
            rng.choice(parts)[field] = value
    return parts
