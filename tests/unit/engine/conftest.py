"""Folders in memory, where there is such a place: these tests commit thousands of times, and the disk is not what they test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the tests of one module."""
    if not MEMORY.is_dir():
        yield tmp_path_factory.mktemp("engine")
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="fleetctl-tests-") as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(memory: Path) -> Path:
    """A folder for one test, in the place of pytest's own."""
    return Path(tempfile.mkdtemp(dir=memory))
