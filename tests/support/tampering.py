"""A state with some history, edits of it behind the engine's back, and what each command makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fleetctl.canonical import sha256_hex
from fleetctl.engine import builders, calls, claims, drifting, reservations
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.errors import FleetctlError
from fleetctl.model.bodies import OfferBody
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support import inprocess as tw

WITNESS = tw.WITNESSES["witness-a"]
CHECKPOINT_EVERY = 4
LIVE = te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.pool("pool-b", protect=True), te.entitlement())
WANTED = te.fleet(
    te.pool("pool-a", name="renamed"),
    te.offer("pool-a", gpus=31),
    te.pool("pool-b", protect=True),
    te.offer("pool-b", gpus=4),
    te.entitlement(),
    te.entitlement("ent-2"),
)
"""What the plan in every case is for: an offer and an entitlement that existed once come back."""


def build(folder: Path) -> bytes:
    """A ground with tombstones, a withdrawn offer, claims before and after a checkpoint, a reservation and receipts.

    Returns the plan for `WANTED`, made while everything was as it should be.
    """
    engine = opened(folder, new=True)
    te.applied(engine, te.fleet(*LIVE.objects[2:], te.offer("pool-b", gpus=4), te.entitlement("ent-2")))
    for number in range(3):
        admit(engine, f"early-{number}")
    claims.release(engine, claim="early-0", reading=Figure(energy_uj=7, grade=Grade.HW_SHUNT))
    claims.release(engine, claim="early-1")
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    reservations.create(engine, tenant="acme", pool="pool-a", gpus=2, estimate=_estimate(), key="job")
    te.applied(engine, LIVE, accept=["share:fleet/eu"])
    calls.call(
        engine,
        "pools.update",
        tenant="root",
        request={},
        build=builders.flag("pool", te.POOL_A, protect=True),
    )
    calls.call(
        engine,
        "pools.update",
        tenant="root",
        request={},
        build=builders.flag("pool", te.POOL_A, protect=False),
    )
    admit(engine, "late")
    data = te.planned(engine, WANTED)
    engine.store.close()
    return data


def opened(folder: Path, *, new: bool = False) -> Engine:
    """The engine in the folder, which keeps checkpoints often; the witness is not there."""
    how: dict[str, Any] = {"checkpoint_every": CHECKPOINT_EVERY}
    if new:
        return te.new_engine(folder, tw.witnessed_by(WITNESS), witnesses=(tw.InProcess(signer=WITNESS),), **how)
    return te.open_engine(folder, **how)


def edit(folder: Path, statements: Sequence[str], plan: bytes) -> None:
    """Run the statements. `flip(blob, byte)` flips a bit, `:plan` is the digest of the plan, `:genesis` of an empty stream `x`."""
    connection = te.raw(folder)
    connection.create_function("flip", 2, _flip, deterministic=True)
    values = {"plan": json.loads(plan)["digest"], "genesis": te.genesis_of("entitlements:x")}
    try:
        with connection:
            for statement in statements:
                assert connection.execute(statement, values).rowcount > 0, statement
    finally:
        connection.close()


def _flip(data: bytes | str, at: int) -> bytes | str:
    if isinstance(data, str):
        return data[:at] + chr(ord(data[at]) ^ 1) + data[at + 1 :]
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def admit(engine: Engine, claim: str) -> str:
    return str(
        claims.admit(
            engine,
            claim=claim,
            entitlement="ent",
            gang_size=1,
            devices_per_member=2,
            estimate_uj=1_000,
            grade=Grade.MODEL_BASED,
            workload_class="train",
        ).verdict.outcome.value
    )


def _estimate() -> reservations.Estimate:
    return reservations.Estimate(entitlement="ent", energy_uj=500, grade=Grade.ESTIMATOR)


def _plan(engine: Engine) -> str:
    found = plan_fleet(engine, WANTED, Source(), host="host")
    return f"{found.file.digest} {[item.code.name for item in found.plan.warnings]}"


def _offer(engine: Engine) -> str:
    body = OfferBody(pool=te.POOL_A, to="acme", quota={"gpu": 16})
    return str(calls.call(engine, "offer", tenant="root", request={}, build=builders.offering(body, "")).entry)


def _drift(engine: Engine, full: bool) -> str:
    found = drifting.drift_fleet(engine, LIVE, Source(), full=full)
    return found.tampered[0].code.name if found.tampered else found.result


def commands(plan: bytes) -> dict[str, Callable[[Engine], str]]:
    """Every command that decides, seals or reports, by a short name."""
    return {
        "plan": _plan,
        "apply": lambda engine: apply_plan(engine, plan).result,
        "call": _offer,
        "admit": lambda engine: admit(engine, "new"),
        "admit again": lambda engine: admit(engine, "early-0"),
        "release": lambda engine: str(claims.release(engine, claim="early-2").entry),
        "reserve": lambda engine: (
            reservations.create(
                engine, tenant="acme", pool="pool-a", gpus=2, estimate=_estimate(), key="other"
            ).reservation.state
        ),
        "seal": lambda engine: str(drifting.seal_report(engine, {}, "none")),
        "drift": lambda engine: _drift(engine, full=False),
        "full": lambda engine: _drift(engine, full=True),
    }


def outcome(folder: Path, command: Callable[[Engine], str]) -> tuple[str, str]:
    """What a command says (or the code of its refusal), and the digest of everything that it sealed."""
    length = {row[:2] for row in te.dump(folder, ["entries"])["entries"]}
    engine = opened(folder)
    try:
        said = command(engine)
    except FleetctlError as error:
        assert error.exit_code == 3 or error.code in ("duplicate-claim", "stale-plan"), str(error)
        said = error.code
    finally:
        engine.store.close()
    sealed = [row for row in te.dump(folder, ["entries"])["entries"] if row[:2] not in length]
    return said, sha256_hex(repr(sealed).encode())
