"""Verification over processes, what it loads, and its refusals as errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl.errors import NotVerified
from fleetctl.ledger import signatures
from fleetctl.ledger.verify import Verification, examine, verify
from tests.support.ledgers import ENTITLEMENTS, STEWARD, admitted, history, join, released, seal_all

ROOT = Path(__file__).parents[3]
LARGE = seal_all(history(1_300))
KEY = STEWARD.public_key


def found(seen: Verification) -> tuple[object, ...]:
    return seen.length, seen.head, seen.faults, seen.fault_count, seen.usage, seen.addresses


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_find_what_one_finds(processes: int) -> None:
    good = join(LARGE)
    assert found(examine(good, ledger=ENTITLEMENTS, key=KEY, processes=processes)) == found(
        examine(good, ledger=ENTITLEMENTS, key=KEY, processes=1)
    )
    ends = [0]
    for item in LARGE:
        ends.append(ends[-1] + len(item.data))
    bad = bytearray(good)
    for index in (0, 999, 1_000, 1_001, 2_599):
        bad[ends[index + 1] - 1] ^= 1
    bad[ends[500] + 1] = 0x85  # an envelope that is not pinned, in the middle of a stretch
    one = examine(bytes(bad), ledger=ENTITLEMENTS, key=KEY, processes=1)
    assert found(examine(bytes(bad), ledger=ENTITLEMENTS, key=KEY, processes=processes)) == found(one)
    assert one.first["authenticity"].index == 0


def test_large_ledgers_use_every_core_by_default() -> None:
    assert signatures.cores() >= 1
    assert examine(join(LARGE), ledger=ENTITLEMENTS, key=KEY).ok


def test_without_processes_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    bad = join(LARGE)[:-1] + bytes((LARGE[-1].data[-1] ^ 1,))
    seen = examine(bad, ledger=ENTITLEMENTS, key=KEY, processes=2)
    assert seen.first["authenticity"].index == len(LARGE) - 1


def test_a_process_that_dies_is_replaced_by_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    bad = join(LARGE)[:-1] + bytes((LARGE[-1].data[-1] ^ 1,))
    seen = examine(bad, ledger=ENTITLEMENTS, key=KEY, processes=2)
    assert (seen.fault_count, seen.first["authenticity"].index) == (1, len(LARGE) - 1)


def test_no_process_outlives_the_verification() -> None:
    script = (
        "import os\n"
        "from pathlib import Path\n"
        "from fleetctl.ledger.verify import examine\n"
        "from tests.support.ledgers import *\n"
        "assert examine(join(seal_all(history(1300))), ledger=ENTITLEMENTS, key=STEWARD.public_key, processes=2).ok\n"
        "children = Path(f'/proc/self/task/{os.getpid()}/children').read_text()\n"
        "assert children == '', children\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_verifying_loads_the_ground_floor_and_the_ledger_alone() -> None:
    """architecture.md: an auditor's verification needs nothing else of ours, and no heavy library."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fleetctl.ledger.audit import audit\n"
        "from fleetctl.ledger.keys import public_key\n"
        f"audit(b'', ledger='root-steward/entitlements', key=public_key(bytes.fromhex('{KEY.hex()}')), now_ms=0)\n"
        "ours = {name for name in sys.modules if name.startswith('fleetctl')}\n"
        "floor = {'fleetctl', *('fleetctl.' + name for name in ('diagnostics', 'errors', 'frozen', 'units', 'clock', 'canonical'))}\n"
        "assert all(name in floor or name.startswith('fleetctl.ledger') for name in ours), ours\n"
        "heavy = {'pycose', 'cryptography', 'cbor2', 'jsonschema', 'httpx', 'rich', 'sqlite3', 'multiprocessing'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_verify_raises_with_a_diagnostic_for_each_axis() -> None:
    sealed = seal_all([admitted("c0"), released("c0"), released("c0"), admitted("c1")])
    data = join(sealed)[:-1] + bytes((sealed[-1].data[-1] ^ 1,))
    with pytest.raises(NotVerified) as refused:
        verify(data, ledger=ENTITLEMENTS, key=KEY)
    details = [item.detail for item in refused.value.diagnostics]
    assert len(details) == 2 and "double-release" in details[0] and "bad-signature" in details[1]
    assert refused.value.exit_code == 3


@pytest.mark.clause("pool/1 §6.4 (1)")
def test_first_fault_of_a61() -> None:
    """A61: flip a byte of a value in entry 3 of 10."""
    sealed = seal_all(history(5))
    entry = bytearray(sealed[3].data)
    entry[entry.index(b"spent_uj") + 10] ^= 1
    seen = examine(join(sealed[:3]) + bytes(entry) + join(sealed[4:]), ledger=ENTITLEMENTS, key=KEY)
    assert {axis: (fault.index, fault.code) for axis, fault in seen.first.items()} == {
        "authenticity": (3, "bad-signature"),
        "sequence": (4, "link"),
    }
    assert seen.first_fault is not None and seen.first_fault.index == seen.sound_length == 3
    assert seen.usage is None


def test_heads_by_length() -> None:
    seen = verify(join(LARGE[:10]), ledger=ENTITLEMENTS, key=KEY)
    assert [seen.head_at(n) for n in range(1, 11)] == [item.address for item in LARGE[:10]]
    assert seen.tip == LARGE[9].head
    for beyond in (-1, 11):
        with pytest.raises(IndexError):
            seen.head_at(beyond)


def test_a_later_stream_of_the_same_steward_has_its_own_genesis() -> None:
    from fleetctl.ledger.identifiers import ledger_id

    later = ledger_id("root-steward", "entitlements:2026w50")
    data = join(seal_all(history(1), ledger=later))
    assert verify(data, ledger=later, key=KEY).length == 2
    assert not examine(data, ledger=ENTITLEMENTS, key=KEY).ok
