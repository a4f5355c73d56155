"""What ends with a tenant: before it is deleted, and once it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleetctl.plan.deletion import Teardown
from fleetctl.render.capacity import reservation_json, reservations_table
from fleetctl.render.document import Block, Document, Heading, Items, Paragraph, Verdict
from fleetctl.render.outcome import CallView, call_document, call_json
from fleetctl.render.words import Names, counted


def survey_document(found: Teardown, names: Names) -> Document:
    """What a deletion would take down."""
    danger, parts = found.danger(), list(_parts(found, names))
    return [
        Verdict(f"{found.label} would be deleted{', and this with it' if parts else '; it has nothing'}", "bad"),
        *parts,
        Paragraph(
            f"It is the danger {danger.id}: nothing is done until it is accepted with `--accept {danger.id}`.", "dim"
        ),
    ]


def deleted_document(receipt: CallView, found: Teardown, names: Names) -> Document:
    """What a deletion took down."""
    return [*call_document(receipt, names), *_parts(found, names)]


def gone_document(tenant: str) -> Document:
    """A tenant that was deleted before."""
    return [Verdict(f"tenant/{tenant} was deleted before: nothing to do", "good")]


def survey_json(method: str, found: Teardown, names: Names) -> dict[str, Any]:
    return {
        "result": "planned",
        "method": method,
        "entry": None,
        "label": found.label,
        "id": found.id,
        "dangers": [found.danger().to_json()],
        "teardown": _json(found, names),
    }


def deleted_json(receipt: CallView, found: Teardown | None, accepted: tuple[str, ...], names: Names) -> dict[str, Any]:
    out = call_json(receipt)
    return out if found is None else {**out, "accepted": list(accepted), "teardown": _json(found, names)}


def _json(found: Teardown, names: Names) -> dict[str, Any]:
    return {
        "pools": list(found.pools),
        "sites": list(found.sites),
        "offers": list(found.offers),
        "reservations": [reservation_json(item, names) for item in found.reservations],
        "others": {"reservations": found.others, "gpus": found.other_gpus},
        "nodes": found.nodes,
        "fleets": list(found.fleets),
    }


def _parts(found: Teardown, names: Names) -> Iterator[Block]:
    for title, labels in (
        ("Pools archived", found.pools),
        ("Offers withdrawn", found.offers),
        ("Sites removed", found.sites),
    ):
        if labels:
            yield Heading(title)
            yield Items([(label, None) for label in labels])
    if found.reservations:
        yield Heading("Reservations ended, each claim charged as reserved")
        yield reservations_table(found.reservations, names)
    if found.others or found.nodes:
        yield Heading("What goes on")
        points = []
        if found.others:
            held = (
                f"{counted(found.others, 'reservation')} of other tenants, holding {counted(found.other_gpus, 'GPU')}"
            )
            points.append(f"{held}: to their end, and nothing new starts")
        if found.nodes:
            points.append(f"{counted(found.nodes, 'machine')} of its pools: joined until `fleetctl nodes leave`")
        yield Items([(point, None) for point in points])
    if found.fleets:
        yield Paragraph(
            f"Declared by {', '.join(f'fleet {name}' for name in found.fleets)}: while files have any of it, the next plan of "
            "them asks for it again."
        )
