"""Signatures of whole stretches of a ledger, checked here or spread over processes.

A stretch is bytes of envelopes that already have the pinned form under one kid; what is left to do is the signature of each. Threads
lose to the interpreter lock, so the work goes to fresh interpreters that load nothing but this module: not forks (unsafe beside
threads), and not `multiprocessing` (which would run the caller's main module again).
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import IO, TYPE_CHECKING

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from fleetctl.ledger import cose
from fleetctl.ledger.cbor import loose_head
from fleetctl.ledger.keys import SIGNATURE_BYTES, PublicKey

if TYPE_CHECKING:
    import queue
    from concurrent.futures import Future

STRETCH = 1_000
"""Entries that go to a process at once: some 50 ms of work."""

_ONE_BYTE_LENGTH = 0x58
_LENGTH = struct.Struct(">I")
_BOOT = "import sys; sys.path[:] = {path!r}; from fleetctl.ledger.signatures import serve; serve({kid!r}, bytes.fromhex({key!r}))"


def bad_signatures(stretch: bytes, kid: str, key: PublicKey) -> list[int]:
    """Which envelopes of the stretch, counted from 0, carry a signature that does not verify."""
    before_payload = len(cose.envelope_prefix(kid))
    signed = cose.signing_prefix(kid)
    bad = []
    offset = index = 0
    while offset < len(stretch):
        start = offset + before_payload
        if stretch[start] == _ONE_BYTE_LENGTH:  # nearly every entry
            end = start + 2 + stretch[start + 1]
        else:
            _, size, body = loose_head(stretch, start, len(stretch))
            end = body + size
        offset = end + len(cose.SIGNATURE_HEAD) + SIGNATURE_BYTES
        try:
            crypto_sign_open(stretch[offset - SIGNATURE_BYTES : offset] + signed + stretch[start:end], key)
        except BadSignatureError:
            bad.append(index)
        index += 1
    return bad


class Checker:
    """Takes stretches of `data` in any order and gathers the indices of bad signatures. Checks at once, in this process."""

    def __init__(self, data: bytes, kid: str, key: PublicKey) -> None:
        self._data, self._kid, self._key = data, kid, key
        self._bad: list[int] = []

    def add(self, first: int, start: int, end: int) -> None:
        """Check the envelopes in `data[start:end]`, of which the first is entry `first`."""
        found = bad_signatures(self._data[start:end], self._kid, self._key)
        self._bad.extend(first + index for index in found)

    def finish(self) -> list[int]:
        """All bad indices, ascending."""
        return sorted(self._bad)

    def close(self) -> None:
        """Let go of what was started."""


class SpreadChecker(Checker):
    """The same over `processes` interpreters. Whatever a process fails to answer is checked here instead."""

    def __init__(self, data: bytes, kid: str, key: PublicKey, processes: int) -> None:
        import queue
        from concurrent.futures import ThreadPoolExecutor  # most runs check a few entries and start nothing

        super().__init__(data, kid, key)
        self._children = [child for child in (_start(kid, key) for _ in range(processes)) if child is not None]
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        for child in self._children:
            self._idle.put(child)
        for _ in range(processes - len(self._children)):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(max_workers=processes, thread_name_prefix="ledger-signatures")
        self._asked: list[tuple[int, int, int, Future[list[int] | None]]] = []

    def add(self, first: int, start: int, end: int) -> None:
        self._asked.append((first, start, end, self._threads.submit(self._ask, start, end)))

    def finish(self) -> list[int]:
        for first, start, end, answer in self._asked:
            found = answer.result()
            if found is None:
                super().add(first, start, end)
            else:
                self._bad.extend(first + index for index in found)
        return super().finish()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            _stop(child)

    def _ask(self, start: int, end: int) -> list[int] | None:
        child = self._idle.get()
        try:
            return _converse(child, memoryview(self._data)[start:end]) if child is not None else None
        except (OSError, ValueError):
            child = None  # it has died; from here on its share is checked in this process
            return None
        finally:
            self._idle.put(child)


def checker(data: bytes, kid: str, key: PublicKey, processes: int) -> Checker:
    """A checker in this process for one process, else a spread one. Close it."""
    return SpreadChecker(data, kid, key, processes) if processes > 1 else Checker(data, kid, key)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve(kid: str, key: bytes) -> None:
    """What a child does: stretches in, indices out, until its input ends."""
    while size := sys.stdin.buffer.read(_LENGTH.size):
        stretch = _exactly(sys.stdin.buffer, _LENGTH.unpack(size)[0])
        bad = bad_signatures(stretch, kid, PublicKey(key))
        sys.stdout.buffer.write(_LENGTH.pack(len(bad)) + struct.pack(f">{len(bad)}I", *bad))
        sys.stdout.buffer.flush()


def _start(kid: str, key: PublicKey) -> subprocess.Popen[bytes] | None:
    boot = _BOOT.format(path=sys.path, kid=kid, key=key.hex())
    try:
        return subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None


def _converse(child: subprocess.Popen[bytes], stretch: memoryview) -> list[int]:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(_LENGTH.pack(len(stretch)))
    child.stdin.write(stretch)
    child.stdin.flush()
    (count,) = _LENGTH.unpack(_exactly(child.stdout, _LENGTH.size))
    return list(struct.unpack(f">{count}I", _exactly(child.stdout, 4 * count)))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("the other side has gone")
    return data


def _stop(child: subprocess.Popen[bytes]) -> None:
    try:
        child.communicate(timeout=5)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        child.kill()
        child.wait()
