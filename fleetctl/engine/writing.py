"""Changes written to a store: many decisions of one transaction become few batches."""

from __future__ import annotations

from collections.abc import Sequence

from fleetctl.model.changes import AuthzRow, Changes, Event, QuotaRow
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject, ObjectKey, Tombstone
from fleetctl.ports import Writer
from fleetctl.units import UnixMs


def write_changes(tx: Writer, changes: Sequence[Changes], at_ms: UnixMs) -> dict[ObjectKey, LiveObject | None]:
    """Write what decisions changed, in their order where order matters, and return the objects they touched, as they now are (None: gone).

    An object that is written and later removed is removed; one that is removed and later written is written.
    """
    puts: dict[ObjectKey, LiveObject] = {}
    drops: dict[ObjectKey, Tombstone] = {}
    quotas: dict[tuple[ObjectId, str, str], QuotaRow] = {}
    authz: dict[tuple[ObjectId, str], AuthzRow | None] = {}
    events: list[Event] = []
    for item in changes:
        for stone in item.drop:
            drops[stone.kind, stone.id] = stone
            puts.pop((stone.kind, stone.id), None)
        for made in item.put:
            puts[made.kind, made.id] = made
        quotas.update({(row.pool, row.tenant, row.resource): row for row in item.quotas})
        authz.update({(row.pool, row.tenant): row for row in item.authz})
        authz.update(dict.fromkeys(item.authz_removed))
        events += item.events
    tx.drop_objects(drops.values())
    tx.put_objects(puts.values())
    tx.put_quotas(quotas.values())
    tx.put_authz(row for row in authz.values() if row is not None)
    tx.drop_authz(key for key, row in authz.items() if row is None)
    tx.add_events(events, at_ms)
    return {**dict.fromkeys(drops), **puts}
