"""Every row of the table of attacks gets its verdict (cases/ledger/attacks; one file a row)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetctl.errors import BadInput
from fleetctl.ledger.audit import audit
from fleetctl.ledger.keys import PublicKey, public_key
from fleetctl.ledger.receipts import WitnessKey
from fleetctl.ledger.report import Bounds, Report, Resume
from tests.support.ledgers import AT_MS, ENTITLEMENTS, STEWARD, WITNESS
from tests.vectors.build_attacks import OUT, build

FILES = sorted(OUT.glob("*.json"))
CASES = [
    pytest.param(case, id=f"{file.stem}-{case['name']}")
    for file in FILES
    for case in json.loads(file.read_text())["cases"]
]


def bytes_of(parts: list[Any]) -> bytes:
    return b"".join(
        bytes.fromhex(part) if isinstance(part, str) else bytes.fromhex(part["repeat"]) * part["times"]
        for part in parts
    )


def run(given: dict[str, Any]) -> Report:
    bounds = dict(given.get("bounds", {}))
    if "resume" in bounds:
        length, head = bounds["resume"]
        bounds["resume"] = Resume(ledger=ENTITLEMENTS, length=length, head=bytes.fromhex(head))
    roster = [
        WitnessKey(witness=item["witness"], key=PublicKey(bytes.fromhex(item["key"])))
        for item in given.get("roster", [])
    ]
    return audit(
        bytes_of(given["file"]),
        ledger=ENTITLEMENTS,
        key=STEWARD.public_key,
        now_ms=AT_MS,
        receipts=[bytes.fromhex(item) for item in given.get("receipts", [])],
        roster=roster or [WitnessKey(witness=WITNESS.kid, key=WITNESS.public_key)],
        other_steward_keys=[PublicKey(bytes.fromhex(item)) for item in given.get("other_steward_keys", [])],
        bounds=Bounds(**bounds),
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.clause(
    "pool/1 §7.12",
    "pool/1 §7.13",
    "pool/1 §7.14",
    "pool/1 §7.15",
    "pool/1 §7.17",
    "pool/1 §6.4 (1)",
    "pool/1 §6.4 (2)",
    "pool/1 §6.5",
    "pool/1 §6.6",
    "pool/1 §6.7",
    "pool/1 §6.8 (2)",
)
def test_attack_gets_its_verdict(case: dict[str, Any]) -> None:
    expected = dict(case["expected"])
    if expected["result"] == "error":
        with pytest.raises(BadInput) as refused:
            public_key(bytes.fromhex(case["input"]["key"]))
        assert refused.value.code == expected["code"]
        return
    report = run(case["input"])
    answer = report.to_json()
    seen = report.verification
    listed = [f"{fault.axis}@{fault.index} {fault.code}" for fault in seen.faults]
    assert sorted(listed) == sorted(expected.pop("faults"))
    firsts: dict[str, tuple[int, str]] = {}
    for fault in seen.faults:
        firsts.setdefault(fault.axis, (fault.index, fault.code))
    for axis, verdict in answer["axes"].items():  # type: ignore[attr-defined]  # the JSON is typed as plain objects
        want = firsts.get(axis)
        assert verdict == ({"ok": False, "index": want[0], "code": want[1]} if want else {"ok": True})
    assert ("usage" in answer) == (answer["result"] == "ok")
    if "verdicts" in expected:
        assert [item["verdict"] for item in answer["receipts"]] == expected.pop("verdicts")  # type: ignore[attr-defined]  # as above
    if "first_fault" in expected:
        axis, index, code = expected.pop("first_fault")
        assert answer["first_fault"] == {"axis": axis, "index": index, "code": code}
    if "sound_length" in expected:
        assert seen.sound_length == expected.pop("sound_length")
    if "note" in expected:
        note = expected.pop("note")
        assert any(note in text for text in answer["notes"])  # type: ignore[attr-defined]  # as above
    assert {key: answer.get(key) for key in expected} == expected


def test_case_files_are_what_their_builder_makes() -> None:
    written = {file.name: file.read_text() for file in FILES}
    assert written == build()


def test_every_row_of_the_table_has_a_file() -> None:
    """The rows of readings/ledger-attacks.md; 119 is `test_a_million_receipts`."""
    rows = {
        *(1, 2, 4, 5, 7, 8, 10, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41, 43, 44),
        *(46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79, 80, 85, 86, 88),
        *(89, 91, 92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109, 110, 112, 113, 115, 116, 121, 122, 125, 127),
    }
    assert rows <= {json.loads(file.read_text())["row"] for file in FILES}
    assert Path(OUT).is_dir()
