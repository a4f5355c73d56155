"""A disk that fills at any byte: a clear error or a whole transaction, and nothing lost (pins, "Tests as root")."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl.store.sqlite import SqliteStore
from tests.support.stores import pool

PROGRAM = """
import resource, signal, sys
from fleetctl.errors import FleetctlError
from fleetctl.store.sqlite import SqliteStore
from tests.support.stores import pool
path, limit = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    store = SqliteStore.open(path)
    with store.write(1000) as writer:
        writer.put_objects([pool(f"new-{n}", name="x" * 1000) for n in range(100)])
    print("committed")
except FleetctlError as error:
    print(error.code)
"""


def run(path: Path, limit: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(limit)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("limit", [0, 1_000, 33_000, 50_000, 100_000, 150_000, 10_000_000])
def test_a_write_beyond_the_limit_loses_nothing(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore.create(path)
    with store.write(1000) as writer:
        writer.put_objects([pool("old")])
    store.close()

    said = run(path, limit)
    assert said in {"committed", "state-io-error", "disk-full"}
    assert (said == "committed") == (limit == 10_000_000)

    store = SqliteStore.open(path)
    with store.read() as reader:
        assert len(list(reader.objects())) == (101 if said == "committed" else 1)
    with store.write(0) as writer:
        writer.put_objects([pool("later")])
    store.close()
