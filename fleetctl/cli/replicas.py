"""Replicas given to a recovery: bundles and exported ledgers. Nothing in them is believed before it verifies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.bundles import read_bundle, read_ledger
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput

if TYPE_CHECKING:
    from fleetctl.engine.stands import Replica

REPLICA_UNREADABLE = code(
    "replica-unreadable",
    "What is given as a replica is no exported ledger",
    trigger="`ledger recover --from` with a file that is no sequence of sealed entries to its end",
)


def read_replica(path: Path) -> Replica:
    """A bundle's folder with all its ledgers, or one exported ledger. Raises BadInput, Unreachable."""
    from fleetctl.engine.stands import Replica

    if not path.is_dir():
        return Replica(name=str(path), entries=_entries(path))
    bundle = read_bundle(path)
    entries = [item for file in sorted(path.rglob("*.cborseq")) for item in _entries(file)]
    return Replica(
        name=str(path),
        ledgers=bundle.journals(),
        entries=entries,
        receipts=bundle.receipts,
        document=bundle.document,
    )


def _entries(path: Path) -> list[bytes]:
    from fleetctl.ledger.cose import BadEnvelope
    from fleetctl.ledger.fetching import split

    try:
        return split(read_ledger(path))
    except (BadEnvelope, IndexError) as error:
        raise BadInput(
            REPLICA_UNREADABLE.at(f"{path}: {error}; name what `ledger export` or `ledger export --bundle` wrote")
        ) from None
