"""Witnesses for tests: keys, small ledgers, a state in a folder, and the service as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fleetctl.clock import SystemClock
from fleetctl.ledger.chain import Head, empty, seal
from fleetctl.ledger.entries import Admitted
from fleetctl.ledger.identifiers import LedgerId, ledger_id
from fleetctl.ledger.keys import SeedSigner, Signer
from fleetctl.store.witness_state import SqliteWitnessState

STEWARD = SeedSigner("root-steward", b"s" * 32)
STRANGER = SeedSigner("root-steward", b"x" * 32)
"""Says that it is the steward, with another key."""
OTHER = SeedSigner("other-steward", b"o" * 32)
WITNESS = SeedSigner("w1", b"w" * 32)
LEDGER = ledger_id("root-steward", "entitlements")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Sealed entries, with the head after each: `heads[n]` is the head of the first n entries."""

    entries: tuple[bytes, ...]
    heads: tuple[Head, ...]

    @property
    def head(self) -> Head:
        return self.heads[-1]


def chain(
    length: int, *, ledger: LedgerId = LEDGER, signer: Signer = STEWARD, on: Chain | None = None, mark: str = "c"
) -> Chain:
    """`length` admissions, after those of `on` when it is given. Chains with different marks differ in every entry."""
    entries = list(on.entries) if on else []
    heads = list(on.heads) if on else [empty(ledger)]
    for _ in range(length):
        event = Admitted(
            claim=f"{mark}{len(entries)}",
            entitlement="ent_1",
            reserved_uj=1,
            borrowed_uj=0,
            devices=1,
            grade="Estimator",
            at_ms=1_000 + len(entries),
        )
        sealed = seal(event, heads[-1], signer)
        entries.append(sealed.data)
        heads.append(sealed.head)
    return Chain(entries=tuple(entries), heads=tuple(heads))


def prefix(of: Chain, length: int) -> Chain:
    """Its first `length` entries."""
    return Chain(entries=of.entries[:length], heads=of.heads[: length + 1])


def init_state(folder: Path, stewards: Sequence[Signer] = (STEWARD, OTHER)) -> None:
    """A witness's state `state.db` in the folder, which trusts the stewards."""
    roster = {signer.kid: [signer.public_key] for signer in stewards}
    SqliteWitnessState.init(
        folder / "state.db", witness=WITNESS.kid, own_key=WITNESS.public_key, stewards=roster
    ).close()


def open_state(folder: Path) -> SqliteWitnessState:
    """The state that `init_state` made."""
    return SqliteWitnessState.open(folder / "state.db", witness=WITNESS.kid, own_key=WITNESS.public_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service."""

    url: str
    process: subprocess.Popen[str]


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """The service over the folder's state, in a process of its own, until the context ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.witnesses", str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        yield Service(url=url, process=process)
    finally:
        process.terminate()
        process.communicate()


def _main(folder: Path) -> None:
    from fleetctl.api.witness_service import serve, witness_app

    app = witness_app(state=open_state(folder), signer=WITNESS, clock=SystemClock())
    serve(app, host="127.0.0.1", port=0, announce=lambda url: print(url, flush=True))  # noqa: T201 - the URL is what the parent reads


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
