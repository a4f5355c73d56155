"""Witnesses of the test engine in this process: one that behaves, one that is down, one that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetctl.clock import Clock
from fleetctl.diagnostics import Code
from fleetctl.errors import NotVerified, Unreachable
from fleetctl.ledger.chain import Head, address_of
from fleetctl.ledger.cose import read as read_envelope
from fleetctl.ledger.identifiers import parse_ledger_id
from fleetctl.ledger.keys import PublicKey, SeedSigner, Signer
from fleetctl.ledger.receipts import issue
from fleetctl.ledger.witness import Known, Outcome, advance, build_request, chunks, parse_refusal
from fleetctl.model.bodies import SettingsBody
from fleetctl.ports import Witness, WitnessElsewhere, WitnessState
from tests.support.engines import STEWARD, ToldClock
from tests.support.ledgers import AT_MS, signer

WITNESSES = {name: signer(name) for name in ("witness-a", "witness-b", "witness-c")}
TEST_WITNESS = Code(  # not declared: the reference lists what the program can say
    name="test-witness",
    summary="A test's witness says no",
    trigger="a witness of a test",
    severity="error",
    exit_code=3,
    engine_code=None,
)


@dataclass(slots=True)
class MemoryState:
    """What a witness remembers, in memory: `ports.WitnessState`."""

    stewards: Mapping[str, Sequence[PublicKey]] = field(default_factory=lambda: {STEWARD.kid: [STEWARD.public_key]})
    heads: dict[str, Known] = field(default_factory=dict)
    evidence: list[bytes] = field(default_factory=list)
    kept: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def known(self, ledger: str) -> Known | None:
        return self.heads.get(ledger)

    def move(
        self, ledger: str, before: Known | None, after: Known, *, start: int = 0, entries: Sequence[bytes] = ()
    ) -> bool:
        if self.heads.get(ledger) != before:
            return False
        self.heads[ledger] = after
        self.kept.setdefault(ledger, {}).update(enumerate(entries, start))
        return True

    def entries(self, ledger: str, start: int, most: int) -> list[bytes]:
        kept = self.kept.get(ledger, {})
        return [kept[seq] for seq in sorted(kept) if start <= seq < start + most]

    def keep_evidence(self, ledger: str, evidence: bytes, at_ms: int) -> None:
        self.evidence.append(evidence)


_PATIENCE = 100
"""How often a witness that another process moved first is asked again, as a client over HTTP does."""


@dataclass(slots=True)
class InProcess:
    """A witness over the pure core: `ports.Witness`. It never goes on by itself from another place than it was asked."""

    signer: Signer = field(default_factory=lambda: WITNESSES["witness-a"])
    state: WitnessState = field(default_factory=MemoryState)
    clock: Clock = field(default_factory=ToldClock)
    co_located: bool = False
    asked: int = 0

    @property
    def id(self) -> str:
        return self.signer.kid

    @property
    def key(self) -> PublicKey:
        return self.signer.public_key

    def head(self, ledger: str) -> bytes | None:
        known = self.state.known(ledger)
        return None if known is None else known.receipt

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        self.asked += 1
        at = Head(ledger=parse_ledger_id(ledger), length=old_length, address=old_head)
        receipt = b""
        for run in chunks(entries):
            receipt = self._ask(build_request(at, run))
            if run:
                at = replace(at, length=at.length + len(run), address=address_of(read_envelope(run[-1], 0).payload))
        return receipt

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        return self.state.entries(ledger, start, stop - start)

    def _ask(self, body: bytes) -> bytes:
        for _ in range(_PATIENCE):
            outcome = advance(
                body,
                stewards=self.state.stewards,
                known=self.state.known,
                signer=self.signer,
                now_ms=self.clock.now_ms(),
            )
            if outcome.evidence is not None and outcome.ledger is not None:
                self.state.keep_evidence(outcome.ledger, outcome.evidence, self.clock.now_ms())
            if outcome.status != 200:
                raise _refusal(outcome)
            assert outcome.after is not None and outcome.ledger is not None
            if self.state.move(
                outcome.ledger, outcome.before, outcome.after, start=outcome.start, entries=outcome.entries
            ):
                return outcome.body
        raise Unreachable(TEST_WITNESS.at("busy"))


def _refusal(outcome: Outcome) -> NotVerified:
    refusal = parse_refusal(outcome.body)
    said = TEST_WITNESS.at(f"{outcome.status} {refusal.error}: {refusal.detail}")
    if outcome.status == 409 and refusal.length is not None and refusal.head is not None:
        return WitnessElsewhere(said, length=refusal.length, head=refusal.head, receipt=refusal.receipt)
    return NotVerified(said)


@dataclass(slots=True)
class Down:
    """A witness that does not answer: at all, or from the moment that `answers` is set to False."""

    behind: Witness
    answers: bool = False
    co_located: bool = False

    @property
    def id(self) -> str:
        return self.behind.id

    @property
    def key(self) -> PublicKey:
        return self.behind.key

    def head(self, ledger: str) -> bytes | None:
        self._or_silence()
        return self.behind.head(ledger)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        self._or_silence()
        return self.behind.advance(ledger, old_length, old_head, entries)

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        self._or_silence()
        return self.behind.fetch(ledger, start, stop, signer)

    def _or_silence(self) -> None:
        if not self.answers:
            raise Unreachable(TEST_WITNESS.at("it does not answer"))


@dataclass(slots=True)
class Saying:
    """A witness that signs whatever head `say` makes of the one it is asked for."""

    say: Callable[[Head], Head]
    signer: SeedSigner = field(default_factory=lambda: WITNESSES["witness-a"])
    at_ms: int = AT_MS
    co_located: bool = False
    newest: dict[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.signer.kid

    @property
    def key(self) -> PublicKey:
        return self.signer.public_key

    def head(self, ledger: str) -> bytes | None:
        return self.newest.get(ledger)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        at = Head(ledger=parse_ledger_id(ledger), length=old_length, address=old_head)
        if entries:
            last = address_of(read_envelope(entries[-1], 0).payload)
            at = replace(at, length=at.length + len(entries), address=last)
        self.newest[ledger] = issue(self.say(at), at_ms=self.at_ms, signer=self.signer)
        return self.newest[ledger]

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        return []


def witnessed_by(*signers: Signer, required: int = 0, co_located: Iterable[str] = ()) -> SettingsBody:
    """Settings that name these witnesses."""
    return SettingsBody(
        witnesses={item.kid: item.public_key.hex() for item in signers},
        required_witnesses=required,
        co_located=tuple(co_located),
    )
