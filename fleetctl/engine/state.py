"""One consistent snapshot of a store, and the check that it is what the journal last sealed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleetctl.diagnostics import code
from fleetctl.engine.context import Engine
from fleetctl.engine.initial import initial_statement
from fleetctl.engine.streams import Usages, last_journal_event
from fleetctl.errors import Tampered
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot, state_digest
from fleetctl.model.usage import Usage
from fleetctl.ports import Reader

STATE_TAMPERED = code(
    "state-tampered",
    "The live state is not the one that the journal last sealed",
    trigger="a database row was edited behind the engine's back, or the journal was",
    exit_code=3,
)


def load_objects(reader: Reader) -> dict[ObjectKey, LiveObject]:
    """Every configuration object, by (kind, id)."""
    return {(item.kind, item.id): item for item in reader.objects()}


def load_snapshot(engine: Engine, reader: Reader, usages: Usages) -> Snapshot:
    """Everything that deciding needs. `usages` is the fold of the entitlement ledger as of the same reading."""
    quotas: dict[tuple[ObjectId, str], dict[str, int]] = {}
    for row in reader.quotas():
        quotas.setdefault((row.pool, row.tenant), {})[row.resource] = row.maximum
    return Snapshot(
        engine=engine.id,
        objects=load_objects(reader),
        tombstones={(stone.kind, stone.id): stone for stone in reader.tombstones()},
        quotas=quotas,
        usage=Usage(
            booked=dict(reader.booked()),
            inventory_gpus=dict(reader.inventory_gpus()),
            entitlements=usages.entitlements,
        ),
        fleets=dict(reader.fleets()),
    )


def digests_of(objects: Mapping[ObjectKey, LiveObject]) -> dict[ObjectKey, bytes]:
    """Each object's digest, computed from what it holds."""
    return {key: item.digest() for key, item in objects.items()}


def moved(digests: Mapping[ObjectKey, bytes], touched: Mapping[ObjectKey, LiveObject | None]) -> dict[ObjectKey, bytes]:
    """The digests after a change: those of the objects it touched computed anew, those that are gone left out."""
    out = {key: digest for key, digest in digests.items() if key not in touched}
    out.update({key: item.digest() for key, item in touched.items() if item is not None})
    return out


def sealed_state(engine: Engine, reader: Reader) -> bytes:
    """The state digest that the journal stands for: the last `state_after`, or what `init` made. Raises Tampered."""
    last = last_journal_event(engine, reader)
    if last is not None:
        return last.state_after
    return initial_statement(engine, reader).state


def check_state(engine: Engine, reader: Reader, digests: Mapping[ObjectKey, bytes]) -> bytes:
    """The live state digest, when it is the sealed one. Raises Tampered and names the rows whose own digest is off."""
    live, sealed = state_digest(digests.items()), sealed_state(engine, reader)
    if live != sealed:
        off = edited_rows(digests, dict(reader.stored_digests()))
        named = f"; rows that changed: {_named(reader, off)}" if off else ""
        raise Tampered(
            STATE_TAMPERED.at(
                f"the live state has the digest {live.hex()[:16]}…, the journal sealed {sealed.hex()[:16]}…{named}. "
                "Somebody changed the database behind the engine's back: compare with `fleetctl drift --full`, then "
                "restore a backup or run `fleetctl state rebuild`"
            )
        )
    return live


def check_readable(objects: Iterable[LiveObject]) -> None:
    """Every body can be decoded. Only an edited state can fail here. Raises Tampered."""
    for item in objects:
        try:
            item.body()
            item.last_applied()
        except (ValueError, RecursionError) as error:
            raise Tampered(
                STATE_TAMPERED.at(f"{item.kind} {item.id} holds what no engine wrote: {error}; restore a backup")
            ) from None


_SHOWN = 5  # rows that a message names


def edited_rows(digests: Mapping[ObjectKey, bytes], stored: Mapping[ObjectKey, bytes]) -> list[ObjectKey]:
    """The objects whose content does not have the digest stored beside it, or that have none."""
    keys: Iterable[ObjectKey] = sorted(digests.keys() | stored.keys())
    return [key for key in keys if digests.get(key) != stored.get(key)]


def _named(reader: Reader, rows: Sequence[ObjectKey]) -> str:
    """The first rows as `kind/key` with the id, which alone is certain: a key may be what was edited."""
    found = [(reader.object(kind, id), kind, id) for kind, id in rows[:_SHOWN]]
    shown = [f"{item.label} ({id})" if item is not None else f"{kind} {id}" for item, kind, id in found]
    more = len(rows) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
