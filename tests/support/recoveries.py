"""An engine with a past, a backup of it from the middle, and replicas of the end: what a recovery begins with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetctl.engine import builders, calls, claims, drifting, reservations
from fleetctl.engine.context import Engine
from fleetctl.engine.ledgers import bundle
from fleetctl.engine.recovery import Recovery, recover
from fleetctl.engine.stands import Replica
from fleetctl.ledger.fetching import split
from fleetctl.model.bodies import SettingsBody
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.ports import Witness
from tests.support import engines as te
from tests.support import inprocess as tw

KEYS = tw.WITNESSES["witness-a"]
TABLES = (
    "objects",
    "tombstones",
    "quotas",
    "authz_rows",
    "fleets",
    "streams",
    "entries",
    "journal_objects",
    "applied_plans",
    "claims",
    "documents",
)
"""Everything that ledgers and documents stand for."""


def admit(
    engine: Engine, claim: str, *, energy_uj: int = 1_000, devices: int = 1, workload_class: str | None = None
) -> str:
    found = claims.admit(
        engine,
        claim=claim,
        entitlement="ent",
        gang_size=1,
        devices_per_member=devices,
        estimate_uj=energy_uj,
        grade=Grade.MODEL_BASED,
        workload_class=workload_class,
    )
    return str(found.verdict.outcome.value)


def release(engine: Engine, claim: str, spent_uj: int = 700) -> None:
    claims.release(engine, claim=claim, reading=Figure(energy_uj=spent_uj, grade=Grade.HW_SHUNT))


def reserve(engine: Engine, key: str, gpus: int = 2) -> str:
    estimate = reservations.Estimate(entitlement="ent", energy_uj=500, grade=Grade.ESTIMATOR)
    found = reservations.create(engine, tenant="acme", pool="pool-a", gpus=gpus, estimate=estimate, key=key)
    return str(found.reservation.id)


def before(engine: Engine) -> None:
    """What the backup has: two applies, four entries of usage, a node and a reservation that runs."""
    te.applied(engine, te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.pool("pool-b"), te.entitlement()))
    te.applied(
        engine,
        te.fleet(te.pool("pool-a", name="renamed"), te.offer("pool-a", gpus=31), te.pool("pool-b"), te.entitlement()),
    )
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    reserve(engine, "early")
    admit(engine, "c1", workload_class="train")
    admit(engine, "c2")
    release(engine, "c1")


def after(engine: Engine) -> None:
    """What comes behind it: an apply that creates and removes, a call, a sealed report, and six entries of usage."""
    te.applied(engine, te.one_pool(16), accept=["share:fleet/eu"])
    (held,) = [item for item in _reservations(engine) if item.key == "early"]
    reservations.end(engine, held.id, Figure(energy_uj=100, grade=Grade.HW_SHUNT))
    release(engine, "c2", 900)
    admit(engine, "c3", workload_class="train")
    reserve(engine, "late")
    calls.call(
        engine, "pools.unoffer", tenant="root", request={"word": "x"}, build=builders.unoffering(te.POOL_A, "acme")
    )
    drifting.seal_report(engine, {"result": "none"}, "none")
    admit(engine, "c4")
    release(engine, "c4", 50)


def _reservations(engine: Engine) -> list[Any]:
    with engine.store.read() as reader:
        return list(reader.reservations())


@dataclass(slots=True, kw_only=True)
class Past:
    """`whole` is the engine as it was; `backup` a folder with its state from the middle, `witness` knows all of it."""

    folder: Path
    whole: Engine
    witness: tw.InProcess
    backup: Path
    settings: SettingsBody = field(default_factory=SettingsBody)

    @property
    def whole_folder(self) -> Path:
        return te.state_of(self.whole).parent

    def restored(self, *, witnesses: Sequence[Witness] | None = None, name: str = "restored", **changes: Any) -> Engine:
        """A fresh copy of the backup, opened."""
        folder = te.copied(self.backup, self.folder / name)
        return te.open_engine(folder, witnesses=(self.witness,) if witnesses is None else tuple(witnesses), **changes)

    def replica(self, engine: Engine | None = None, name: str = "replica") -> Replica:
        """A bundle of the engine as it was."""
        return replica_of(engine or self.whole, name)


def replica_of(engine: Engine, name: str = "replica") -> Replica:
    files = dict(bundle(engine))
    documents = {Path(path).stem: data for path, data in files.items() if path.startswith("documents/")}
    return Replica(
        name=name,
        ledgers=json.loads(files["names.json"])["journals"],
        entries=[item for path, data in files.items() if path.endswith(".cborseq") for item in split(data)],
        receipts=[data for path, data in files.items() if path.startswith("receipts/")],
        document=documents.get,
    )


def past(folder: Path, *, witnessed: bool = True, settings: SettingsBody | None = None) -> Past:
    """The engine `before`, its backup, the engine `after`, all of it shown to the witness."""
    witness = tw.InProcess()
    whole = te.new_engine(folder / "whole", settings or tw.witnessed_by(KEYS), witnesses=(witness,))
    before(whole)
    te.witness(whole)
    backup = te.copied(folder / "whole", folder / "backup")
    after(whole)
    if witnessed:
        te.witness(whole)
    return Past(folder=folder, whole=whole, witness=witness, backup=backup)


def rows(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that ledgers and documents stand for."""
    return te.dump(te.state_of(engine).parent, TABLES)


def recovered(engine: Engine, *replicas: Replica, **how: Any) -> Recovery:
    return recover(engine, replicas, **how)
