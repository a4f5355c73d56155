"""130 means that nothing was committed (cli.md): an interrupt at each step of an apply, before the commit and after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.cli.applying import Options, run_apply
from fleetctl.engine.apply import ApplyReceipt
from fleetctl.ports import Reader, Store, Writer
from tests.support.engines import journal, new_engine, one_pool, planned

OPTIONS = Options(yes=True, expect=None, accept=(), require_witness=False, wait_ms=0, terminal=False)


class Interrupted:
    """A store that is interrupted once, at its n-th transaction: when it begins, or just after it has ended."""

    def __init__(self, store: Store, at: int, *, after: bool) -> None:
        self._store, self._left, self._after = store, at, after

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._interrupting(), self._store.read() as reader:
            yield reader

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[Writer]:
        with self._interrupting(), self._store.write(wait_ms) as writer:
            yield writer

    @contextmanager
    def _interrupting(self) -> Iterator[None]:
        self._left -= 1
        now = self._left == 0
        if now and not self._after:
            raise KeyboardInterrupt
        yield
        if now and self._after:
            raise KeyboardInterrupt

    def backup(self, target: str) -> None:
        self._store.backup(target)

    def close(self) -> None:
        self._store.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 8))
def test_an_interrupt_ends_with_nothing_done_or_with_the_receipt_of_what_was(
    tmp_path: Path, at: int, after: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = new_engine(tmp_path)
    data = planned(engine, one_pool())
    told: list[ApplyReceipt] = []
    interrupted = replace(engine, store=Interrupted(engine.store, at, after=after))
    try:
        receipt = run_apply(interrupted, data, OPTIONS, told.append)
    except KeyboardInterrupt:
        assert (journal(engine), told) == ([], [])
        assert run_apply(engine, data, OPTIONS, told.append).result == "applied"
        return
    assert told == [receipt]
    assert (receipt.entry, len(journal(engine))) == (0, 1)
    if receipt.result == "already-applied":
        assert "after the commit" in capsys.readouterr().err
