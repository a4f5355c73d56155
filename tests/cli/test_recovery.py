"""Recovery, several witnesses, moves and copies from the command line, with witnesses that are processes of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

AT = ("--now", NOW)


@dataclass(slots=True)
class Witnesses:
    """Witness processes of one home, by id."""

    home: Home
    stack: ExitStack
    urls: dict[str, str]

    def make(self, id: str) -> str:
        """A new witness for the test engine's steward; its `ID=PUB`."""
        (key,) = self.home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
        made = self.home.json("witness", "init", "--id", id, "--steward-key", str(key), "--steward", "root-steward")
        return f"{id}={made['public_key_file']}"

    def start(self, id: str) -> None:
        self.urls[id] = self.stack.enter_context(serving(self.home, id))

    @property
    def flag(self) -> tuple[str, str]:
        return "--witness", ",".join(f"{id}={url}" for id, url in self.urls.items())


@contextmanager
def serving(home: Home, id: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetctl", "witness", "serve", "--id", id],
        env=home.process_environment(),
        cwd=home.work,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://")
        yield url
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Witnesses]:
    """A test engine whose own witness runs."""
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    with ExitStack() as stack:
        witnesses = Witnesses(home, stack, {})
        witnesses.start("witness-test")
        yield witnesses


def claim(home: Home, id: str, *more: str) -> None:
    ask = ("--entitlement", "ent-acme", "--devices", "1", "--energy", "1MJ", "--grade", "ModelBased")
    home.ok("claims", "admit", "--claim", id, *ask, *more, *AT)


# ------------------------------------------------------------------------------------------------------ recovery


def test_a_restored_backup_is_whole_again(running: Witnesses) -> None:
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    home.ok("state", "backup", "../backup.db")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", *flag, *AT)
    claim(home, "c1", *flag)
    home.ok("ledger", "witness", *flag, *AT)
    home.ok("ledger", "export", "--bundle", "../bundle")
    usage = home.json("ledger", "verify", *AT)["usage"]
    # The disk is gone, and what is put in its place is the backup.
    for part in home.path.glob("state/fleetctl/eng_test/state.db*"):
        part.unlink()
    refused = home.run("state", "restore", "../backup.db", *flag)
    assert (refused.exit, "--accept set-back:engine/eng_test" in refused.err) == (3, True)
    assert home.run("state", "restore", "../backup.db", "--accept", "set-back:engine/eng_other", *flag).exit == 3
    back = home.json("state", "restore", "../backup.db", "--accept", "set-back:engine/eng_test", *flag)
    assert (back["journal_length"], back["behind"]) == (1, True)

    assert home.run("apply", ".", "--yes", *flag, *AT).exit == 3
    alone = home.run("ledger", "recover", *flag, *AT)
    assert alone.exit == 3 and "lose-entries:ledger/journal" in alone.err
    done = home.json("ledger", "recover", "--from", "../bundle", *flag, *AT)
    assert (done["result"], done["grade"], done["entry"]) == ("recovered", "witnessed", None)
    assert {item["ledger"]: (item["length"], item["whole"]) for item in done["regained"]} == {
        "root-steward/journal": (1, 2),
        "root-steward/entitlements": (0, 1),
    }
    assert home.json("ledger", "recover", *flag, *AT)["result"] == "nothing-to-do"
    found = home.json("ledger", "verify", *flag, *AT)
    assert (found["result"], found["usage"]) == ("ok", usage)
    assert home.json("plan", ".", *AT)["result"] == "nothing-to-do"
    assert home.json("drift", ".", "--full", *flag, *AT)["result"] == "none"
    claim(home, "c2", *flag)
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 25"))
    assert home.json("apply", ".", "--yes", "--require-witness", *flag, *AT)["grade"] == "witnessed"
    assert home.run("doctor", *flag).exit == 0


def test_usage_comes_back_from_the_witness_alone_and_a_loss_is_said_plainly(running: Witnesses) -> None:
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    home.ok("state", "backup", "../backup.db")
    claim(home, "c1", *flag)
    home.ok("ledger", "witness", *flag, *AT)
    (home.path / "backup.db").replace(home.path / "older.db")
    state = home.path / "state/fleetctl/eng_test/state.db"

    def set_back() -> None:
        for part in state.parent.glob("state.db*"):
            part.unlink()
        state.write_bytes((home.path / "older.db").read_bytes())
        state.chmod(0o600)

    set_back()
    done = home.ok("ledger", "recover", *flag, *AT).out
    assert "Recovered" in done and "from witness witness-test" in done

    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", *flag, *AT)
    set_back()
    refused = home.run("ledger", "recover", *flag, *AT)
    assert (refused.exit, "only a replica holds" in refused.err) == (3, True)
    lost = home.ok("ledger", "recover", "--accept", "lose-entries:ledger/journal", *flag, *AT).out
    assert "Went on in new ledgers" in lost and "root-steward/journal:r2026" in lost
    found = home.json("ledger", "verify", *flag, *AT)
    assert found["result"] == "ok" and found["journal"]["ledger"].startswith("root-steward/journal:r2026")
    assert [item["event"] for item in home.json("history", *flag, *AT)["entries"]] == ["applied", "recovered"]
    (_, entry) = home.json("history", *flag, *AT)["entries"]
    assert entry["accepted"] == ["lose-entries:ledger/journal"] and "root-steward/journal at 2" in entry["lost"][0]
    told = " ".join(home.ok("history", *flag, *AT).out.split())
    assert "lost root-steward/journal at 2 by witness witness-test, 1 kept" in told
    assert "[" not in home.ok("ledger", "show", "--stream", "journal", *AT).out
    home.ok("apply", ".", "--yes", "--require-witness", *flag, *AT)
    home.ok("ledger", "export", "--bundle", "../after")
    (key,) = home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
    audited = home.json("ledger", "verify", "../after", "--steward-key", str(key), *AT)
    assert (audited["result"], audited["journal"]["length"]) == ("ok", 2)


def test_an_old_backup_keeps_the_receipts_of_the_state_that_goes(running: Witnesses) -> None:
    """So nothing is appended to it, though the witness is silent; and the receipts say how much is missing."""
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    home.ok("state", "backup", "../backup.db")
    home.ok("ledger", "export", "--bundle", "../older")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", *flag, *AT)
    home.ok("ledger", "export", "--bundle", "../newer")
    home.ok("state", "restore", "../backup.db", "--accept", "set-back:engine/eng_test", *flag)
    silent = ("--witness", "http://127.0.0.1:1")
    assert "state-rolled-back" in home.run("apply", ".", "--yes", *silent, *AT).err
    assert home.run("ledger", "recover", "--from", "../older", *silent, *AT).exit == 3
    assert home.json("ledger", "recover", "--from", "../newer", *silent, *AT)["result"] == "recovered"


def test_a_backup_from_before_its_witness_was_named_is_behind_all_the_same(running: Witnesses) -> None:
    """The settings are as old as the backup, so only the state that goes can say whose receipts count."""
    home = running.home
    home.ok("apply", ".", "--yes", *running.flag, *AT)
    home.ok("state", "backup", "../backup.db")
    key = running.make("audit-1")
    home.ok("settings", "set", "witnesses", key, *AT)
    running.start("audit-1")
    running.urls.pop("witness-test")
    home.ok("ledger", "witness", "--remember", *running.flag, *AT)
    claim(home, "late")
    home.ok("ledger", "witness", *AT)
    home.ok("ledger", "export", "--bundle", "../newer")
    assert "state-rolled-back" in home.run("state", "restore", "../backup.db").err
    home.ok("state", "restore", "../backup.db", "--accept", "set-back:engine/eng_test")
    for silent in ((), ("--witness", "audit-1=http://127.0.0.1:1")):
        done = home.run("apply", ".", "--yes", *silent, *AT)
        assert done.exit == 3 and "state-rolled-back" in done.err
    assert home.run("ledger", "recover", *AT).exit == 3
    assert home.json("ledger", "recover", "--from", "../newer", *AT)["result"] == "recovered"
    assert home.json("ledger", "witness", *AT)["grade"] == "witnessed"
    home.ok("apply", ".", "--yes", *AT)
    assert home.json("drift", ".", "--full", *AT)["result"] == "none"


_CUT_SHORT = """
import os, sys
from fleetctl.cli.main import cli
from fleetctl.store import sqlite
whole = sqlite.restore_file
def restore_file(*arguments):
    whole(*arguments)
    os._exit(9)
sqlite.restore_file = restore_file
cli.main(sys.argv[1:])
"""


def test_a_restore_that_is_cut_short_forgets_no_receipt(running: Witnesses) -> None:
    """Killed at the first moment at which the old state is gone."""
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    home.ok("state", "backup", "../backup.db")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", *flag, *AT)
    ask = ("state", "restore", "../backup.db", "--accept", "set-back:engine/eng_test", *flag)
    done = subprocess.run([sys.executable, "-c", _CUT_SHORT, *ask], env=home.process_environment(), cwd=home.work)
    assert done.returncode == 9
    assert "state-rolled-back" in home.run("apply", ".", "--yes", "--witness", "http://127.0.0.1:1", *AT).err


@pytest.mark.parametrize(
    ("arguments", "exit", "said"),
    [
        (("--from", "fleet.yaml"), 1, "replica-unreadable"),
        (("--from", "missing"), 1, "missing"),
        (("--from", "."), 1, "bundle-unreadable"),
        (("--accept", "everything"), 64, "is no danger"),
    ],
)
def test_what_is_given_to_a_recovery_must_be_something(
    running: Witnesses, arguments: tuple[str, ...], exit: int, said: str
) -> None:
    done = running.home.run("ledger", "recover", *arguments, *AT)
    assert (done.exit, said in done.err, done.error) == (exit, True, None)


# ---------------------------------------------------------------------------------------------- several witnesses


def test_two_witnesses_of_two_required(running: Witnesses) -> None:
    home = running.home
    keys = [running.make(id) for id in ("audit-1", "audit-2")]
    running.start("audit-1")
    running.urls.pop("witness-test")
    audit_1 = running.flag
    home.ok("settings", "set", "witnesses", ",".join(keys), *AT)
    assert home.run("settings", "set", "requiredWitnesses", "2", *audit_1, *AT).exit == 5
    assert home.run("apply", ".", "--yes", "--status-file", "status.json", *audit_1, *AT).exit == 5
    done = json.loads((home.work / "status.json").read_text())
    assert (done["entry"], done["grade"]) == (2, "self-attested")
    assert done["witnesses"] == {"required": 2, "covering": 1, "missing": ["audit-2"]}
    assert any("nothing says where it is" in note for note in done["notes"])
    assert "1 of 2 required; not audit-2" in home.ok("status", *audit_1, *AT).out
    assert any("1 of 2 required" in note for note in home.json("ledger", "verify", *audit_1, *AT)["notes"])

    running.start("audit-2")
    both = running.flag
    found = home.json("ledger", "witness", *both, *AT)
    assert (found["grade"], found["witnesses"]) == (
        "witnessed",
        {"required": 2, "covering": 2, "missing": []},
    )
    claim(home, "c1", *both)
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    assert home.json("apply", ".", "--yes", *both, *AT)["grade"] == "witnessed"
    assert {item["witness"] for item in home.json("ledger", "verify", *both, *AT)["receipts"]} == {"audit-1", "audit-2"}
    home.ok("ledger", "export", "--bundle", "../bundle")
    offline = ("ledger", "verify", "../bundle", "--steward-key", *map(str, home.path.glob("state/**/steward.pub.pem")))
    known = [argument for key in keys for argument in ("--witness-key", key)]
    assert home.json(*offline, *known, "--required-witnesses", "2", *AT)["grade"] == "witnessed"
    assert home.json(*offline, *known[:2], "--required-witnesses", "2", *AT)["grade"] == "self-attested"
    twice = [*known[:2], "--witness-key", known[1].replace("audit-1=", "audit-2=")]
    assert (
        home.run(*offline, *twice, "--required-witnesses", "2", *AT).exit == 3
    )  # the other's receipts are not by this key


def test_witnesses_are_remembered_in_the_configuration(running: Witnesses) -> None:
    home = running.home
    config = next(home.path.glob("config/fleetctl/config.toml"))
    config.write_text(f"# mine\n{config.read_text()}\n# the end\n")
    keys = [running.make(id) for id in ("audit-1", "audit-2")]
    home.ok("settings", "set", "witnesses", ",".join(keys), *AT)
    running.start("audit-1")
    running.start("audit-2")
    running.urls.pop("witness-test")
    home.ok("apply", ".", "--yes", *running.flag, *AT)
    assert home.run("ledger", "witness", "--remember", *AT).exit == 64
    assert "remembered: audit-1, audit-2" in home.ok("ledger", "witness", "--remember", *running.flag, *AT).err
    assert home.json("ledger", "witness", *AT)["witnesses"] == {"required": 0, "covering": 2, "missing": []}
    text = config.read_text()
    assert text.startswith("# mine\n") and text.endswith("# the end\n")
    assert [text.count(id) for id in ("audit-1", "audit-2", 'id = "witness-test"')] == [1, 1, 1]
    home.ok("ledger", "witness", "--remember", *running.flag, *AT)
    assert config.read_text() == text
    config.write_text(text.replace("[\n    {", "[{").replace("},\n", "}, ").replace("[", "[", 1))
    home.ok("ledger", "witness", "--remember", *running.flag, *AT)
    assert home.json("ledger", "witness", *AT)["witnesses"]["covering"] == 2
    config.write_text(re.sub(r"^witnesses = .*?^\]|^witnesses = .*$", "", text, flags=re.MULTILINE | re.DOTALL))
    home.ok("ledger", "witness", "--remember", *running.flag, *AT)
    assert home.json("ledger", "witness", *AT)["witnesses"]["covering"] == 2


def test_a_witness_that_the_settings_replaced_is_asked_no_more(running: Witnesses) -> None:
    """Its table stays in `config.toml`; it may be down for good."""
    home = running.home
    key = running.make("audit-1")
    config = next(home.path.glob("config/fleetctl/config.toml"))
    running.start("audit-1")
    entry = f'    {{id = "audit-1", url = "{running.urls["audit-1"]}", public_key = "{key.partition("=")[2]}"}},\n]'
    config.write_text(re.sub(r"^\]", lambda _: entry, config.read_text(), flags=re.MULTILINE))
    done = home.run("apply", ".", "--yes", "--format", "json", *AT)  # witness-test is not where `init` said
    assert done.exit == 0 and any("witness-test" in note for note in done.json["notes"])
    home.ok("settings", "set", "witnesses", key, *AT)
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    done = home.run("apply", ".", "--yes", "--format", "json", *AT)
    assert (done.json["grade"], done.json.get("notes")) == ("witnessed", None)
    assert "witness-test" in config.read_text()


# -------------------------------------------------------------------------------------------------- move and copy


def test_a_move_has_its_last_entry_countersigned(running: Witnesses) -> None:
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    moved = home.json("state", "move", f"sqlite:{home.path}/moved.db", *flag, *AT)
    assert (moved["grade"], {item["length"] for item in moved["receipts"] if item["stream"] == "journal"}) == (
        "witnessed",
        {2},
    )
    assert home.json("status", *AT)["grade"] == "witnessed"


def test_a_copy_has_a_witness_of_its_own(running: Witnesses) -> None:
    home = running.home
    home.ok("settings", "set", "requiredWitnesses", "1", *running.flag, *AT)
    home.ok("apply", ".", "--yes", *running.flag, *AT)
    made = home.json("state", "copy", f"sqlite:{home.path}/copy.db", "--engine", "eng_copy", *AT)
    assert made["witness"]["id"] == "witness-copy" and made["witness"]["serve"].startswith("fleetctl witness serve")
    there = replace(home, env={"FLEETCTL_STATE": f"sqlite:{home.path}/copy.db"})
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir()
    fleet = (home.work / "fleet.yaml").read_text().replace("gpu: 32", "gpu: 16")
    (elsewhere / "fleet.yaml").write_text(fleet)
    assert there.run("apply", ".", "--yes", *AT, cwd=elsewhere).exit == 5
    with serving(home, "witness-copy") as url:
        found = there.json("ledger", "witness", "--witness", url, *AT, cwd=elsewhere)
    assert (found["grade"], found["witnesses"]["covering"]) == ("witnessed", 1)


def test_decisions_are_made_again_across_a_journal_that_a_recovery_closed(running: Witnesses) -> None:
    """What the second journal begins from is what the first one had come to."""
    home, flag = running.home, running.flag
    home.ok("apply", ".", "--yes", *flag, *AT)
    claim(home, "c1", *flag)
    home.ok("state", "backup", "../backup.db")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", *flag, *AT)
    state = home.path / "state/fleetctl/eng_test/state.db"
    for part in state.parent.glob("state.db*"):
        part.unlink()
    state.write_bytes((home.path / "backup.db").read_bytes())
    state.chmod(0o600)
    home.ok("ledger", "recover", "--accept", "lose-entries:ledger/journal", *flag, *AT)
    claim(home, "c2", *flag)
    home.ok("ledger", "export", "--bundle", "../bundle")
    key = str(state.parent / "steward.pub.pem")
    found = home.json("ledger", "decisions", "../bundle", "--steward-key", key, *AT)
    assert [(item["claim"], item["agrees"]) for item in found["decisions"]] == [("c1", True), ("c2", True)]
