"""A rotation of the entitlement ledger: what was closed, what was opened, and what went on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fleetctl.render.attestation import WitnessedView, attestation_facts, attestation_json, attestation_notes
from fleetctl.render.document import Block, Column, Document, Facts, Table, Verdict
from fleetctl.render.ledger import head_json
from fleetctl.render.words import Names, counted
from fleetctl.units import format_energy, format_ms

if TYPE_CHECKING:
    from fleetctl.ledger.chain import Head


class CarriedView(Protocol):
    """A claim that went on."""

    @property
    def claim(self) -> str: ...
    @property
    def successor(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def spent_uj(self) -> int: ...
    @property
    def grade(self) -> str: ...
    @property
    def reserved_uj(self) -> int: ...
    @property
    def borrowed_uj(self) -> int: ...
    @property
    def devices(self) -> int: ...


class RotationView(Protocol):
    """What the engine answers to a rotation."""

    @property
    def closed(self) -> Head: ...
    @property
    def opened(self) -> Head: ...
    @property
    def entry(self) -> int: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def early(self) -> bool: ...
    @property
    def claims(self) -> Sequence[CarriedView]: ...
    @property
    def witnessed(self) -> WitnessedView: ...


def rotation_json(found: RotationView, names: Names) -> dict[str, Any]:
    """`early`: the danger was there and accepted. `claims` are those that went on, in the order of their admission."""
    out: dict[str, Any] = {
        "result": "done",
        "closed": head_json(found.closed),
        "opened": head_json(found.opened),
        "entry": found.entry,
        "at": format_ms(found.at_ms),
        "early": found.early,
        "claims": [_carried_json(item, names) for item in found.claims],
    }
    return out | attestation_json(found.witnessed)


def rotation_document(found: RotationView, names: Names) -> Document:
    facts = [
        ("closed", f"{counted(found.closed.length, 'entry', 'entries')}, head {found.closed.address.hex()}"),
        ("entry", f"{found.entry} of the journal"),
        *([("accepted", "reset-usage:ledger")] if found.early else []),
        *attestation_facts(found.witnessed),
    ]
    blocks: list[Block] = [
        Verdict(f"{found.closed.ledger} is closed, {found.opened.ledger} is in force", "good"),
        Facts(facts),
    ]
    if found.claims:
        titles = ("charged", "left", "borrowed", "devices")
        columns = (
            Column("claim"),
            Column("goes on as"),
            Column("entitlement"),
            *(Column(title, right=True) for title in titles),
        )
        rows = [
            (
                item.claim,
                item.successor,
                names.get(item.entitlement, item.entitlement).removeprefix("entitlement/"),
                f"{format_energy(item.spent_uj)} {item.grade}",
                format_energy(item.reserved_uj),
                format_energy(item.borrowed_uj),
                str(item.devices),
            )
            for item in found.claims
        ]
        blocks.append(Table(columns, rows))
    return [*blocks, *attestation_notes(found.witnessed)]


def _carried_json(item: CarriedView, names: Names) -> dict[str, Any]:
    return {
        "claim": item.claim,
        "successor": item.successor,
        "entitlement": names.get(item.entitlement, item.entitlement),
        "spent_uj": item.spent_uj,
        "grade": item.grade,
        "reserved_uj": item.reserved_uj,
        "borrowed_uj": item.borrowed_uj,
        "devices": item.devices,
    }
