"""cli.md, "The pure commands": JSON Lines give one answer a line, in order, and an error line for a malformed one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl.cli import jsonio
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


WORKLOADS = b'{"workloads": [{"id": "%s", "entitlement": "A", "priority": 0, "spent_uj": 1, "grade": "HwShunt", %s}]}'
REST = b'"completed_units": 1, "devices": 1, "reserved_uj": 1'
BAD = {
    "half a surrogate pair": (WORKLOADS % (b"\\ud800", REST), "surrogate"),
    "the other half": (WORKLOADS % (b"\\uDFFF", REST), "surrogate"),
    "half a pair as a key": (b'{"\\udc00": 1}', "surrogate"),
    "no UTF-8": (WORKLOADS % (b"\xff", REST), "byte 24 is not UTF-8"),
    "a surrogate in UTF-8": (WORKLOADS % (b"\xed\xa0\x80", REST), "not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf" + WORKLOADS % (b"a", REST), "byte order mark"),
    "UTF-16": ('{"workloads": []}'.encode("utf-16"), "not UTF-8"),
    "a control character": (WORKLOADS % (b"\x1b", REST), "control character"),
    "NaN": (WORKLOADS % (b"a", REST.replace(b"1", b"NaN", 1)), "NaN is no JSON number"),
    "Infinity": (WORKLOADS % (b"a", REST.replace(b"1", b"-Infinity", 1)), "-Infinity is no JSON number"),
    "a key twice": (WORKLOADS % (b"a", REST + b', "devices": 2'), "`devices` comes twice"),
    "a key twice that a terminal would act on": (b'{"\\u001b[31m": 1, "\\u001b[31m": 2}', "`\\x1b[31m` comes twice"),
    "more digits than Python reads": (WORKLOADS % (b"a", REST.replace(b"1", b"9" * 5_000, 1)), "more digits"),
    "deep lists": (b"[" * 100_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "two values": (b"{}{}", "Extra data"),
    "nothing": (b"", "Expecting value"),
}


@pytest.mark.parametrize("name", BAD)
def test_no_json_is_a_diagnostic_and_loses_no_other_line(tmp_path: Path, name: str) -> None:
    """cli, the pure commands: an error line for a malformed one, exit 1; without --lines a diagnostic."""
    data, said = BAD[name]
    home = Home(path=tmp_path)
    alone = home.run("pool1", "preempt", "--format", "json", stdin=data)
    assert (alone.exit, alone.error) == (1, None)
    (told,) = alone.json["diagnostics"]
    assert told["code"] == "json-unreadable" and said in told["detail"] and "set_int_max" not in told["detail"]
    good = WORKLOADS % (b"\\ud83d\\ude00", REST)
    lines = home.run("pool1", "preempt", "--lines", stdin=b"\n".join([good, data, good]) + b"\n")
    first, middle, last = [json.loads(line) for line in lines.out.splitlines()]
    assert (lines.exit, lines.error) == (1, None)
    assert first == last == {"order": ["\U0001f600"], "undefined": []}
    assert middle == {"error": {"code": "json-unreadable", "message": told["detail"]}}


@pytest.mark.parametrize("digits", [19, 20, 400])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_figure_past_its_range_is_neither_wrapped_nor_rounded(tmp_path: Path, digits: int, quoted: bool) -> None:
    figure = b"9" * digits
    rest = REST.replace(b"1", b'"%s"' % figure if quoted else figure, 1)
    lines = Home(path=tmp_path).run("pool1", "preempt", "--lines", stdin=WORKLOADS % (b"a", rest))
    assert (lines.exit, lines.json["error"]["code"]) == (1, "pool1-figure")


def test_a_line_longer_than_any_document_is_one_malformed_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonio, "MAX_DOCUMENT", 40)
    monkeypatch.setattr(jsonio, "_LONGEST", 42)
    lines = [b'{"workloads": []}' + b" " * spaces for spaces in (0, 23, 24, 25, 26, 200, 0)]
    done = Home(path=tmp_path).run("pool1", "preempt", "--lines", stdin=b"\n".join(lines))
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert ["error" in answer for answer in answers] == [False, False, True, True, True, True, False]


def test_a_repeated_key_among_very_many_is_found_in_linear_time(tmp_path: Path) -> None:
    """The time is the process's own: a search that compares each key with each would take hours."""
    keys = [b'"k%d":1' % number for number in range(300_000)]
    (tmp_path / "keys.json").write_bytes(b"{" + b",".join([*keys, keys[-1]]) + b"}")
    code = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60)); from fleetctl.cli.main import cli; cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "pool1", "decide", "keys.json"],
        cwd=tmp_path,
        env=Home(path=tmp_path).process_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.split(":")[:2]) == (1, ["error", " json-unreadable"])


def test_answers_end_when_nobody_reads_them(tmp_path: Path) -> None:
    """An endless input, and a reader of one line: quiet, and no later than the next write."""
    home = Home(path=tmp_path)
    command = 'yes \'{"workloads": []}\' | "$PYTHON" -m fleetctl pool1 preempt --lines | head -1'
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[1]}}"],
        cwd=home.work,
        env=home.process_environment() | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == '{"order":[],"undefined":[]}\n0\n'
    assert done.stderr == ""


def test_many_lines_take_no_more_memory_than_few(tmp_path: Path) -> None:
    """Peak memory of both runs, in kilobytes, as the kernel counted it."""
    good = json.dumps({"total_uj": 7, "grade": "HwShunt", "occupants": [{"id": "a", "weight": 1}]})
    code = (
        "import atexit, resource, sys; from fleetctl.cli.main import cli; "
        "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)); cli.main()"
    )
    peaks = []
    for count in (1_000, LINES):
        done = subprocess.run(
            [
                "bash",
                "-c",
                f"yes $'{good}\\n[[[' | head -{count} | \"$PYTHON\" -c '{code}' pool1 attribute --lines | wc -l",
            ],
            env=Home(path=tmp_path).process_environment() | {"PYTHON": sys.executable},
            capture_output=True,
            text=True,
        )
        assert int(done.stdout) == count
        peaks.append(int(done.stderr))
    few, many = peaks
    assert many < few + 8_192


LINES = 100_000

_DECIDE = {
    "tree": [{"id": "A", "guarantee_uj": "100", "guarantee_devices": 1, "over_quota_weight": 0}],
    "claim": {"entitlement": "A", "gang_size": 1, "devices_per_member": 1, "estimate_uj": "100", "grade": "Estimator"},
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_names_every_field_of_its_input(tmp_path: Path, command: str) -> None:
    """No more and no fewer than the cases that it takes have."""

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return {name for name in value if name not in TREE_IDS} | {
                inner for item in value.values() for inner in names(item)
            }
        return {inner for item in value for inner in names(item)} if isinstance(value, list) else set()

    taken = [case["input"] for case in CASES if case["command"] == command and "output" in case] or [_FULL]
    text = Home(path=tmp_path).ok("pool1", command, "--help").out
    shown = set(re.findall(r'"([a-z_]+)"', text[text.index("Input") : text.index("Example")]))
    assert shown == set().union(*map(names, taken))


TREE_IDS = {"A"}
_FULL = {
    "tree": [_DECIDE["tree"][0] | {"parent": "P", "limit_uj": 1, "priority": 0}],  # type: ignore[index, operator]  # JSON
    "usage": {"A": {"spent_uj": 0, "reserved_uj": 0, "devices": 0}},
    "claim": _DECIDE["claim"] | {"class": "x"},  # type: ignore[operator]  # JSON
}
