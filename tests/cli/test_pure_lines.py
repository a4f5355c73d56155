"""cli.md, "The pure commands": JSON Lines give one answer a line, in order, and an error line for a malformed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import ROOT, Home

CASES = json.loads((ROOT / "tests" / "cases" / "pool1" / "pure-commands.json").read_text("utf-8"))["cases"]
COMMANDS = ("decide", "preempt", "attribute", "derive", "idle")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_case_as_a_line(tmp_path: Path, command: str) -> None:
    cases = [case for case in CASES if case["command"] == command]
    lines = "".join(f"{json.dumps(case['input'])}\n" for case in cases)
    home = Home(path=tmp_path)
    done = home.run("pool1", command, "--lines", stdin=lines)
    assert (done.exit, done.error, done.err) == (1, None, "")  # every command has malformed cases
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len(cases)
    for case, answer in zip(cases, answers, strict=True):
        if "error" in case:
            assert set(answer) == {"error"} and set(answer["error"]) == {"code", "message"}
            assert answer["error"]["code"] == case["error"] and answer["error"]["message"]
        else:
            assert answer == case["output"]


@pytest.mark.parametrize("command", COMMANDS)
def test_one_document_from_a_file_answers_as_its_line_does(tmp_path: Path, command: str) -> None:
    home = Home(path=tmp_path)
    good = next((case["input"] for case in CASES if case["command"] == command and "output" in case), _DECIDE)
    bad = next(case for case in CASES if case["command"] == command and "error" in case)
    home.write("good.json", json.dumps(good))
    home.write("good.jsonl", f"{json.dumps(good)}\n{json.dumps(good)}")  # the last line needs no end
    one = home.ok("pool1", command, "good.json").json
    lines = home.ok("pool1", command, "--lines", "good.jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [one, one]
    refused = home.run("pool1", command, "--format", "json", stdin=json.dumps(bad["input"]))
    assert (refused.exit, refused.json["diagnostics"][0]["code"]) == (1, bad["error"])


def test_a_line_that_is_no_json_does_not_stop_the_others(tmp_path: Path) -> None:
    done = Home(path=tmp_path).run(
        "pool1", "preempt", "--lines", stdin='{"workloads": []}\n\nnot json\n{"workloads": []}\n'
    )
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert done.exit == 1
    assert [answer.get("error", {}).get("code") for answer in answers] == [
        None,
        "json-unreadable",
        "json-unreadable",
        None,
    ]


_DECIDE = {
    "tree": [{"id": "A", "guarantee_uj": "100", "guarantee_devices": 1, "over_quota_weight": 0}],
    "claim": {"entitlement": "A", "gang_size": 1, "devices_per_member": 1, "estimate_uj": "100", "grade": "Estimator"},
}
