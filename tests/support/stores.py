"""Stores for tests: every implementation of `ports.Store`, values to put into one, and one that dies at write n."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fleetctl.canonical import canonical_json
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject
from fleetctl.ports import Reader, Store, Writer
from fleetctl.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """A kind of store. Both functions take a folder that belongs to the test alone."""

    create: Callable[[Path], Store]
    open: Callable[[Path], Store]


IMPLEMENTATIONS: dict[str, Implementation] = {
    "sqlite": Implementation(
        create=lambda folder: SqliteStore.create(folder / "state.db"),
        open=lambda folder: SqliteStore.open(folder / "state.db"),
    ),
}

MUTATIONS = frozenset(name for name in vars(Writer) if not name.startswith("_") and name not in vars(Reader))


def pool(key: str, *, version: int = 1, **changes: Any) -> LiveObject:
    """A live pool whose body is not one that decodes; stores do not look into it."""
    values: dict[str, Any] = {
        "kind": "pool",
        "id": ObjectId(f"pool_{key}"),
        "tenant": "acme",
        "key": key,
        "name": f"Pool {key}",
        "version": version,
        "body_json": canonical_json({"policy": {"gpus": 8}}),
    }
    return LiveObject(**(values | changes))


class CrashingStore:
    """Passes everything on, and kills its own process with SIGKILL at point `at`.

    Points count from 1 in order of time: one before each mutating call, one before each commit and one after it.
    Without `at` it only counts.
    """

    def __init__(self, store: Store, at: int | None = None) -> None:
        self._store = store
        self._at = at
        self.points = 0

    def reach(self) -> None:
        """A point is reached."""
        self.points += 1
        if self.points == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._store.read() as reader:
            yield reader

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[Writer]:
        with self._store.write(wait_ms) as writer:
            yield cast(Writer, _CountingWriter(writer, self.reach))
            self.reach()
        self.reach()

    def backup(self, target: str) -> None:
        self._store.backup(target)

    def close(self) -> None:
        self._store.close()


class _CountingWriter:
    def __init__(self, writer: Writer, reach: Callable[[], None]) -> None:
        self._writer = writer
        self._reach = reach

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._writer, name)
        if name not in MUTATIONS:
            return found

        def counted(*values: Any, **named: Any) -> Any:
            self._reach()
            return found(*values, **named)

        return counted
