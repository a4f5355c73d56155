"""The sealed statement of what `init` made: the state that an empty journal stands for.

With an empty journal there is no `state_after` to compare a database with; this statement, over
`{fleet_init: "1", engine, steward, state, at_ms}`, takes its place (pins: "State digest").
"""

from __future__ import annotations

from fleetctl.diagnostics import code
from fleetctl.errors import Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.statement import BadStatement, read_statement, seal_statement

BAD_INITIAL = code(
    "initial-state-unverified",
    "The statement of what `init` made does not verify",
    trigger="the sealed initial state of an engine is missing, edited, or sealed by another key",
    exit_code=3,
)
_MAX_BYTES = 4 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialState:
    """`state` is the 32-byte state digest that `init` left."""

    engine: str
    steward: str
    state: bytes
    at_ms: int


def seal_initial(initial: InitialState, signer: Signer) -> bytes:
    """The statement, signed by the steward."""
    return seal_statement(
        {
            "fleet_init": "1",
            "engine": initial.engine,
            "steward": initial.steward,
            "state": initial.state,
            "at_ms": initial.at_ms,
        },
        signer,
    )


def read_initial(data: bytes, *, engine: str, steward: str, key: PublicKey) -> InitialState:
    """The statement, when it is this engine's and this steward's. Raises Tampered for anything else."""
    try:
        statement = read_statement(data, max_bytes=_MAX_BYTES)
    except (BadStatement, IndexError) as error:
        raise Tampered(BAD_INITIAL.at(f"it cannot be read: {error}")) from None
    if statement.kid != steward or not statement.signed_by(key):
        raise Tampered(BAD_INITIAL.at(f"it is not sealed by the steward {steward} under the key that is configured"))
    match statement.core:
        case {
            "fleet_init": "1",
            "engine": str(sealed_engine),
            "steward": str(sealed_steward),
            "state": bytes(state),
            "at_ms": int(at_ms),
        } if len(statement.core) == 5 and (sealed_engine, sealed_steward, len(state)) == (engine, steward, 32):
            return InitialState(engine=sealed_engine, steward=sealed_steward, state=state, at_ms=at_ms)
    raise Tampered(BAD_INITIAL.at(f"it speaks of another engine than {engine}"))
