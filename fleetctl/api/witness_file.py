"""The `file:` witness: the same decision over a state beside the engine's, for the quickstart and for tests.

Its receipts are real and checked, and never raise a ledger's grade (ledger.md, "The witness").
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetctl.api.witnessing import answer, ask, fetch, kept, newest, receipt_of
from fleetctl.clock import Clock
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ports import WitnessState


class FileWitness:
    """`ports.Witness` in process."""

    def __init__(self, *, state: WitnessState, signer: Signer, clock: Clock) -> None:
        self._state = state
        self._signer = signer
        self._clock = clock

    @property
    def id(self) -> str:
        return self._signer.kid

    @property
    def key(self) -> PublicKey:
        return self._signer.public_key

    @property
    def co_located(self) -> bool:
        return True

    def head(self, ledger: str) -> bytes | None:
        """Its newest receipt for the ledger; None while it has signed none. Raises NotVerified for an unknown steward."""
        outcome = newest(ledger, state=self._state)
        return receipt_of(self.id, outcome.status, outcome.body)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        """As `ports.Witness.advance`."""
        return ask(
            self._post,
            key=self._signer.public_key,
            witness=self.id,
            ledger=ledger,
            old_length=old_length,
            old_head=old_head,
            entries=entries,
        )

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        """As `ports.Witness.fetch`."""
        return fetch(
            self._post_fetch,
            witness=self.id,
            ledger=ledger,
            start=start,
            stop=stop,
            signer=signer,
            clock=self._clock,
        )

    def _post_fetch(self, body: bytes) -> tuple[int, bytes]:
        outcome = kept(body, witness=self.id, state=self._state, clock=self._clock)
        return outcome.status, outcome.body

    def _post(self, body: bytes) -> tuple[int, bytes]:
        outcome = answer(body, state=self._state, signer=self._signer, clock=self._clock)
        return outcome.status, outcome.body
