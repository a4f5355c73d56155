"""In processes of their own: the main job with a witness, pipes, interrupts, terminals, and what starting costs."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetctl.ledger.keyfiles import load_public_key, parse_cose_key
from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path).with_engine(fleet=FLEET)


def heed_interrupts() -> None:
    """Before a command: whoever runs the tests may ignore interrupts, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def witness(home: Home) -> Iterator[str]:
    """The URL of the engine's witness, served by a process."""
    command = [sys.executable, "-m", "fleetctl", "witness", "serve", "--id", "witness-test", "--listen", "127.0.0.1:0"]
    serving = subprocess.Popen(
        command,
        preexec_fn=heed_interrupts,
        stdout=subprocess.PIPE,
        text=True,
        env=home.process_environment(),
        cwd=home.work,
    )
    assert serving.stdout is not None
    url = serving.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    yield url
    serving.send_signal(signal.SIGINT)
    assert serving.wait(20) == 0


def test_an_apply_with_a_witness_ends_witnessed(home: Home, witness: str) -> None:
    """Issue 2: every apply ends with both heads witnessed, or says plainly that they are not."""
    first = home.process("apply", ".", "--yes", "--now", NOW)
    assert (
        first.returncode,
        "self-attested" in first.stdout,
        "does not answer" in first.stdout or "refused" in first.stdout,
    ) == (0, True, True)
    done = home.process("ledger", "witness", "--witness", witness, "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["grade"]) == (0, "witnessed")
    done = home.process(
        "quotas", "set", "pool-fra1-h100", "acme", "gpu=8", "--now", NOW, env={"FLEETCTL_WITNESS": witness}
    )
    assert (done.returncode, "witnessed at 2 by witness-test" in done.stdout) == (0, True)
    verified = json.loads(home.process("ledger", "verify", "--format", "json").stdout)
    assert (verified["grade"], verified["journal"]["grade"]) == ("witnessed", "witnessed")
    home.process("state", "backup", "old.db")
    home.process("quotas", "set", "pool-fra1-h100", "acme", "gpu=9", "--now", NOW, env={"FLEETCTL_WITNESS": witness})
    for asked in (["--witness", witness], []):  # without: nobody answers, and the state's own receipts know as much
        back = home.process("state", "restore", "old.db", *asked, "--format", "json")
        assert (back.returncode, json.loads(back.stdout)["diagnostics"][0]["code"]) == (3, "state-rolled-back")


def test_a_bundle_is_all_an_auditor_needs(home: Home, witness: str, tmp_path: Path) -> None:
    home.process("apply", ".", "--yes", "--now", NOW, env={"FLEETCTL_WITNESS": witness})
    home.process("ledger", "export", "--bundle", "bundle")
    auditor = Home(path=tmp_path / "auditor")
    auditor.path.mkdir()
    bundle = str(home.work / "bundle")
    keys = (
        "--steward-key",
        f"{bundle}/keys/steward-root-steward.pub.pem",
        "--witness-key",
        f"witness-test={bundle}/keys/witness-witness-test.pub.pem",
    )
    verify = auditor.process("ledger", "verify", bundle, *keys, "--cross-check", "--format", "json")
    assert verify.returncode == 0, verify.stdout + verify.stderr
    assert json.loads(verify.stdout)["journal"]["grade"] == "witnessed"
    for name in ("steward-root-steward", "witness-witness-test"):
        key = home.work / "bundle" / "keys" / f"{name}.pub"
        assert parse_cose_key(key.with_suffix(".pub.cose").read_bytes(), name) == load_public_key(
            key.with_suffix(".pub.pem")
        )
    (auditor.work / "last.json").write_text(verify.stdout)
    assert auditor.process("ledger", "verify", bundle, *keys, "--resume", "last.json").returncode == 0
    history = auditor.process("history", "offer/pool-fra1-h100/acme", "--bundle", bundle, *keys, "--format", "json")
    (entry,) = json.loads(history.stdout)["entries"]
    assert (entry["witnessed"], entry["operations"][0]["verb"]) == (True, "create")
    journal = home.work / "bundle" / "journal.cborseq"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    failed = auditor.process("ledger", "verify", bundle, *keys, "--format", "json")
    assert (failed.returncode, json.loads(failed.stdout)["result"]) == (3, "failed")
    assert auditor.process("history", "--bundle", bundle, *keys).returncode == 3


def test_whoever_asks_the_witness_sees_what_an_older_copy_lacks(home: Home, witness: str) -> None:
    """ledger-attacks 110: an old prefix with its old receipts is whole by itself."""
    seen = {"FLEETCTL_WITNESS": witness}
    home.process("apply", ".", "--yes", "--now", NOW, env=seen)
    home.process("ledger", "export", "--bundle", "old")
    home.process("state", "backup", "old.db")
    home.process("quotas", "set", "pool-fra1-h100", "acme", "gpu=9", "--now", NOW, env=seen)

    keys: tuple[str, ...] = ("--steward-key", "old/keys/steward-root-steward.pub.pem")
    keys += ("--witness-key", "witness-test=old/keys/witness-witness-test.pub.pem")
    verify = ("ledger", "verify", "old", *keys, "--format", "json")
    assert home.process(*verify).returncode == 0
    asked = home.process(*verify, "--witness", witness)
    journal = json.loads(asked.stdout)["journal"]
    assert (asked.returncode, journal["receipts"][-1]["verdict"], journal["reasons"]) == (
        3,
        "ahead",
        ["receipt-failed"],
    )
    alone = home.process(*verify, "--witness", "http://127.0.0.1:9")
    assert (alone.returncode, "was asked for its head" in json.loads(alone.stdout)["notes"][-1]) == (0, True)
    other = home.process(*verify, "--witness", f"other={witness}")
    assert (other.returncode, json.loads(other.stdout)["diagnostics"][0]["code"]) == (1, "witness-ambiguous")

    state = home.path / "state" / "fleetctl" / "eng_test" / "state.db"
    for name in ("state.db-wal", "state.db-shm"):
        state.with_name(name).unlink(missing_ok=True)
    state.write_bytes((home.work / "old.db").read_bytes())
    for command in (("ledger", "verify"), ("ledger", "witness", "--now", NOW)):
        assert home.process(*command, env=seen).returncode == 3, command


def test_what_an_auditor_knows_counts_for_the_engines_own_ledgers_too(home: Home, tmp_path: Path) -> None:
    home.process("apply", ".", "--yes", "--now", NOW)
    home.process("witness", "init", "--id", "other", "--steward-key", _public(home), "--steward", "root-steward")
    stranger = str(home.path / "state" / "fleetctl" / "witness" / "other" / "witness.pub.pem")
    for options, exit in (
        (("--steward-key", _public(home)), 0),
        (("--steward-key", stranger), 3),
        (("--steward", "somebody"), 3),
        (("--min-length", "1"), 3),
        (("--receipt", "fleet.yaml"), 3),
        (("--stream", "journal"), 64),
    ):
        assert home.process("ledger", "verify", *options).returncode == exit, options


def _public(home: Home) -> str:
    return str(home.path / "state" / "fleetctl" / "eng_test" / "steward.pub.pem")


def test_nobody_reading_the_output_changes_no_exit_code(home: Home) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "fleetctl", "plan", ".", "--detailed-exitcode"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=home.process_environment(),
        cwd=home.work,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (2, b"")


def test_a_full_disk_behind_standard_output_is_said(home: Home) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fleetctl", "plan", "."],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=home.process_environment(),
            cwd=home.work,
        )
    assert (done.returncode, "output-unwritable" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_standard_output_that_is_ascii_gets_everything(home: Home) -> None:
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 16"))
    done = home.process("plan", ".", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert (done.returncode, "32 \\u2192 16" in done.stdout) == (0, True)


def test_an_interrupt_before_the_commit_is_130_with_nothing_done(home: Home) -> None:
    """A second applier waits for the first; the interrupt reaches it there."""
    import sqlite3

    database = sqlite3.connect(home.path / "state" / "fleetctl" / "eng_test" / "state.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "fleetctl", "apply", ".", "--yes", "--now", NOW, "--wait", "60s"],
        preexec_fn=heed_interrupts,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=home.process_environment(),
        cwd=home.work,
    )
    time.sleep(2)  # it is at the lock long before; too early only makes the test easier
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    database.execute("ROLLBACK")
    database.close()
    assert (waiting.returncode, out, "interrupted" in err, "Traceback" in err) == (130, "", True, False)
    assert home.json("ledger", "head")["heads"][1]["length"] == 0


def test_a_writer_that_does_not_end_is_4(home: Home) -> None:
    import sqlite3

    database = sqlite3.connect(home.path / "state" / "fleetctl" / "eng_test" / "state.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        assert home.json("apply", ".", "--yes", "--now", NOW, "--wait", "10ms", exit=4)["result"] == "error"
        assert home.ok("plan", ".").exit == 0
        assert home.ok("drift", ".").exit == 0
    finally:
        database.close()


def on_a_terminal(home: Home, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Exit code and everything that a terminal showed."""
    child, terminal = pty.fork()
    if child == 0:
        heed_interrupts()
        os.chdir(home.work)
        os.execve(sys.executable, [sys.executable, "-m", "fleetctl", *arguments], home.process_environment())
    shown, asked, tries = b"", False, 0
    while tries < 20:
        if not select.select([terminal], [], [], 3)[0]:
            # A key pressed between the prompt and the read is lost to the interpreter: people press it again.
            tries += 1
            if asked:
                os.write(terminal, answer)
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        shown += data
        if not asked and b"[y/N]: " in shown:
            asked = True
            os.write(terminal, answer)
    else:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


@pytest.mark.parametrize(
    ("answer", "exit", "entries"),
    [(b"y\n", 0, 1), (b"n\n", 130, 0), (b"\n", 130, 0), (b"\x04", 130, 0), (b"\x03", 130, 0)],
)
def test_a_terminal_shows_the_plan_and_asks(home: Home, answer: bytes, exit: int, entries: int) -> None:
    code, shown = on_a_terminal(home, answer, "apply", ".", "--now", NOW)
    assert code == exit, shown
    assert "5 to create" in shown and "Apply this plan?" in shown
    assert home.json("ledger", "head")["heads"][1]["length"] == entries


def test_colour_is_for_terminals(home: Home) -> None:
    assert "\x1b[" in on_a_terminal(home, b"", "plan", ".")[1]
    home.env["NO_COLOR"] = "1"
    assert "\x1b[" not in on_a_terminal(home, b"", "plan", ".")[1]
    assert "\x1b[" not in home.process("plan", ".").stdout


def test_width_is_kept(home: Home) -> None:
    narrow = home.process("explain", "stale-plan", "--width", "40").stdout
    assert max(map(len, narrow.splitlines())) <= 40
    assert max(map(len, home.process("explain", "stale-plan").stdout.splitlines())) <= 80
    assert home.process("explain", "stale-plan", env={"FLEETCTL_WIDTH": "40"}).stdout == narrow


def test_an_unexpected_error_is_one_line_and_debug_adds_the_traceback(home: Home) -> None:
    program = (
        "import sys, fleetctl.cli.commands.start as start\n"
        "start.version.callback = lambda *a, **k: 1 / 0\n"
        "from fleetctl.cli.main import cli\n"
        "sys.argv = ['fleetctl', 'version', *sys.argv[1:]]\n"
        "cli.main()\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=home.process_environment(), cwd=home.work)

    plain, debug, as_json = run(), run("--debug"), run("--format", "json")
    assert (plain.returncode, len(plain.stderr.splitlines())) == (1, 1)
    assert "internal-error" in plain.stderr and "ZeroDivisionError" in plain.stderr
    assert "Traceback" in debug.stderr
    assert json.loads(as_json.stdout)["diagnostics"][0]["code"] == "internal-error"


HEAVY = ("httpx", "rich", "jsonschema", "deepdiff", "starlette", "uvicorn", "pycose", "ruamel", "psycopg")


@pytest.mark.parametrize(
    ("arguments", "also"),
    [
        (("--help",), ("cryptography", "nacl", "sqlite3", "yaml", "jsonschema_rs", "platformdirs")),
        (("version",), ("cryptography", "nacl", "sqlite3", "yaml", "jsonschema_rs", "platformdirs")),
        (("validate", "."), ("cryptography", "nacl", "sqlite3", "platformdirs")),
        (("show", "plan.json"), ("cryptography", "sqlite3", "yaml", "jsonschema_rs")),
        (("plan", "."), ()),
        (("status",), ("yaml", "jsonschema_rs")),
    ],
)
def test_a_command_loads_only_what_it_needs(home: Home, arguments: tuple[str, ...], also: tuple[str, ...]) -> None:
    """architecture.md, "Dependencies": heavy imports are lazy."""
    home.ok("plan", ".", "-o", "plan.json")
    program = (
        "import json, sys\n"
        "from fleetctl.cli.main import cli\n"
        "try:\n    cli.main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(sorted(name.partition('.')[0] for name in sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=home.process_environment(),
        cwd=home.work,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & {*HEAVY, *also} == set()


def test_completion_scripts_complete(home: Home) -> None:
    script = home.process("completion", "bash").stdout
    assert "_FLEETCTL_COMPLETE" in script
    words = {"COMP_WORDS": "fleetctl led", "COMP_CWORD": "1", "_FLEETCTL_COMPLETE": "bash_complete"}
    assert "ledger" in home.process(env=words).stdout
