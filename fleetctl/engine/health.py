"""Everything about an engine that can be looked at without changing it: replayed, compared, and asked of its witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetctl.diagnostics import Diagnostic
from fleetctl.engine.context import Engine, check_identity, check_open, journal_stream, usage_stream
from fleetctl.engine.indexes import INDEX_TAMPERED, check_quotas
from fleetctl.engine.rebuild import differences
from fleetctl.engine.receipts import check_receipts
from fleetctl.engine.state import check_state, digests_of, load_snapshot
from fleetctl.engine.streams import read_usages, verify_stream
from fleetctl.engine.windows import check_succession
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import FleetctlError, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.receipts import read_receipt
from fleetctl.ledger.statement import BadStatement
from fleetctl.ports import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: what was seen, or what is wrong with it."""

    name: str
    seen: str = ""
    problems: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def checked(name: str, look: Callable[[], str]) -> Check:
    """Look, and take what fails as an answer."""
    try:
        return Check(name=name, seen=look())
    except FleetctlError as error:
        return Check(name=name, problems=error.diagnostics)


def examine(engine: Engine) -> Iterator[Check]:
    """The checks of an engine, in the order in which one failure may explain the next. Raises nothing for what they find."""
    yield checked("identity", lambda: _identity(engine))
    yield checked("ledgers", lambda: _ledgers(engine))
    yield checked("state", lambda: _state(engine))
    yield checked("tables", lambda: _tables(engine))
    for witness in engine.witnesses:
        yield checked(f"witness {witness.id}", lambda witness=witness: _witness(engine, witness))  # type: ignore[misc]  # a lambda's default has no type
    yield checked("rollback", lambda: _rollback(engine))


def _identity(engine: Engine) -> str:
    with engine.store.read() as reader:
        check_identity(engine, reader)
        check_open(reader)
    return f"engine {engine.id}, steward {engine.steward}"


def _ledgers(engine: Engine) -> str:
    """Every signature and link from genesis, of every window, and every receipt that is kept."""
    with engine.store.read() as reader:
        journal = verify_stream(engine, reader, journal_stream(reader))
        found = [*reversed(check_succession(engine, reader)), journal]
        check_receipts(engine, reader, found, full=True)
    return ", ".join(f"{item.length} in {item.ledger}" for item in found)


def _state(engine: Engine) -> str:
    """What is live is what the journal last sealed."""
    with engine.store.read() as reader:
        snapshot = load_snapshot(engine, reader, read_usages(engine, reader))
        state = check_state(engine, reader, digests_of(snapshot.objects))
        check_quotas(snapshot)
    return state.hex()


def _tables(engine: Engine) -> str:
    """The tables are the fold of the journal's documents and of the entitlement ledger."""
    with engine.store.read() as reader:
        off = differences(engine, reader)
    if off:
        raise Tampered(
            INDEX_TAMPERED.at(
                f"{len(off)} row(s) are not what ledgers and documents stand for: {', '.join(off[:5])}; restore a backup, "
                "or run `fleetctl state rebuild`"
            )
        )
    return "as the journal's documents and the ledger fold to"


def _witness(engine: Engine, witness: Witness) -> str:
    """That a witness answers, and how far it is. Whether it may be there is `rollback`'s to judge."""
    with engine.store.read() as reader:
        streams = (journal_stream(reader), usage_stream(reader))
    return ", ".join(f"{_length(witness.head(engine.ledger(stream)))} of {stream}" for stream in streams)


def _length(sealed: bytes | None) -> str:
    if sealed is None:
        return "nothing"
    try:
        return str(read_receipt(sealed)[0].length)
    except BadStatement:
        return "no receipt"


def _rollback(engine: Engine) -> str:
    refuse_rollback(engine)
    return "no witness that answers knows more than this state" if engine.witnesses else "nobody was asked"
