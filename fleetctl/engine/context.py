"""An open engine: the things that wiring hands in, and nothing that is read from the repository."""

from __future__ import annotations

from collections.abc import Callable

from fleetctl.clock import Clock
from fleetctl.diagnostics import code
from fleetctl.errors import SafetyRefused, Tampered, Unreachable
from fleetctl.frozen import dataclass
from fleetctl.ledger.identifiers import LedgerId, StreamKind, is_identifier, kind_of, ledger_id
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.model.ids import EngineId
from fleetctl.ports import Reader, Store, Witness
from fleetctl.units import shown

JOURNAL = "journal"
ENTITLEMENTS = "entitlements"

META_ENGINE = "engine"
META_STEWARD = "steward"
META_INITIAL = "initial_state"
META_INITIAL_DOCUMENT = "initial_document"
META_TEST_CLOCK = "test_clock"
META_STREAM = "entitlement_stream"
META_JOURNAL = "journal_stream"
META_CLOSED = "closed"
META_SCHEMA = "schema"
META_EARLIER = "witnesses_before_restore"
"""The witnesses (JSON, id to hexadecimal key) that the settings named before the state was set back."""
"""The schema version that the journal knows of: that of `init`, or of the last `migrated`."""

CHECKPOINT_EVERY = 256
"""Entries of the entitlement stream after which a new checkpoint is worth its signature."""

NO_KEY = code(
    "steward-key-missing",
    "The steward's private key is needed and not there",
    trigger="a command that seals an entry runs without the steward's key file",
)
WRONG_ENGINE = code(
    "wrong-engine",
    "The state belongs to another engine",
    trigger="the state that was opened has another engine id or steward than the configuration says",
    exit_code=3,
)
STREAM_UNKNOWN = code(
    "stream-unknown",
    "The state names a ledger stream that cannot be",
    trigger="the stream in force is no name of a stream, or one of the other kind: the database was edited",
    exit_code=3,
)
CLOSED = code(
    "engine-closed",
    "This state was moved and is sealed closed",
    trigger="a command would change a state that `state move` closed",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine, open. `steward_key` comes from the user's configuration, never from the database it verifies.

    `actor` is who acts, for the journal; `entropy(n)` gives n random bytes.
    """

    id: EngineId
    store: Store
    steward: str
    steward_key: PublicKey
    clock: Clock
    actor: str
    entropy: Callable[[int], bytes]
    signer: Signer | None = None
    witnesses: tuple[Witness, ...] = ()
    checkpoint_every: int = CHECKPOINT_EVERY

    def sealing(self) -> Signer:
        """The signer. Raises Unreachable when its key is not there, SafetyRefused when it is another key."""
        if self.signer is None:
            raise Unreachable(
                NO_KEY.at(f"the private key of steward {self.steward} is not there; give it with --steward-key")
            )
        if self.signer.kid != self.steward or self.signer.public_key != self.steward_key:
            raise SafetyRefused(
                WRONG_ENGINE.at(
                    f"the private key given is not the one of steward {self.steward} of engine {self.id}; "
                    "its public key differs"
                )
            )
        return self.signer

    def ledger(self, stream: str) -> LedgerId:
        """The id of one of this engine's streams."""
        return ledger_id(self.steward, stream)


def check_identity(engine: Engine, reader: Reader) -> None:
    """The store is this engine's and not closed. Raises SafetyRefused."""
    found, steward = reader.meta(META_ENGINE), reader.meta(META_STEWARD)
    if found != engine.id or steward != engine.steward:
        raise SafetyRefused(
            WRONG_ENGINE.at(
                f"the state is of engine {found} (steward {steward}), expected {engine.id} (steward {engine.steward})"
            )
        )


def check_open(reader: Reader) -> None:
    """Raises SafetyRefused when `state move` has closed this state."""
    if target := reader.meta(META_CLOSED):
        raise SafetyRefused(CLOSED.at(f"it was moved to {target}; use that one"))


def usage_stream(reader: Reader) -> str:
    """The entitlement stream in force. Raises Tampered for a name that is none."""
    return _stream(reader, META_STREAM, ENTITLEMENTS, "entitlements")


def journal_stream(reader: Reader) -> str:
    """The journal stream in force. Raises Tampered for a name that is none."""
    return _stream(reader, META_JOURNAL, JOURNAL, "journal")


def _stream(reader: Reader, name: str, default: str, kind: StreamKind) -> str:
    stream = reader.meta(name) or default
    if not is_identifier(stream) or kind_of(LedgerId(f"steward/{stream}")) != kind:
        raise Tampered(STREAM_UNKNOWN.at(f"`{name}` of the state is {shown(stream)}; compare with a backup"))
    return stream
