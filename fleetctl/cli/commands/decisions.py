"""What an auditor decides again from exported data."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.audits import Known
from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit
from fleetctl.cli.types import FILE_PATH
from fleetctl.cli.wiring import now_clock
from fleetctl.render.decisions import decisions_document, decisions_json


@command("decisions", own=("steward_key",))
@click.argument("bundle", metavar="BUNDLE", type=FILE_PATH)
@click.option("--steward-key", metavar="PUB", type=FILE_PATH, help="The steward's public key.")
@click.option("--steward", metavar="ID", help="Whose ledger it must be; the key id of entry 0 if absent.")
@click.option("--witness-key", "witness_keys", metavar="ID=PUB", multiple=True, help="A witness's public key.")
@click.option("--claim", "claims", metavar="ID", multiple=True, help="Only this one; may be repeated.")
@click.option("--inputs", is_flag=True, help="JSON Lines for `pool1 decide --lines`, one for each admission.")
def decisions(
    settings: Settings,
    bundle: Path,
    steward_key: Path | None,
    steward: str | None,
    witness_keys: tuple[str, ...],
    claims: tuple[str, ...],
    inputs: bool,
) -> int:
    """Decide every admission of an exported BUNDLE again: on the tree that its journal declared when the entry was appended, and
    on what its ledger had in use. Exit 3 when one comes out otherwise than it was sealed.

    The bundle is verified first. Queue and Deny are in no ledger, so they are not among them.

    \b
    Example:
      fleetctl ledger decisions audit-2026-12 --steward-key steward.pub.pem
      fleetctl ledger decisions audit-2026-12 --steward-key steward.pub.pem \\
        --claim c1 --inputs | fleetctl pool1 decide --lines
    """
    from fleetctl.cli.decisions import bundle_decisions, write_inputs

    known = Known(steward_key=steward_key, steward=steward, witness_keys=witness_keys)
    ledger, made, names = bundle_decisions(bundle, known, claims, now_clock(settings).now_ms())
    if inputs:
        write_inputs(made)
        return 0
    found = list(made)
    emit(settings, lambda: decisions_document(ledger, found, names), lambda: decisions_json(ledger, found))
    return 0 if all(item.agrees for item in found) else 3
