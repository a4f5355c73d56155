"""Admit claims on disk: decide, seal, append, a hundred to a transaction, against raw Ed25519 signing in a loop."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.chains import AT_MS, LEDGER, STEWARD
from benchmarks.peers.ed25519 import TYPICAL, sign_loop
from benchmarks.rows.pool1_decide import state
from benchmarks.series import Line, Row, Sample, alternate, rates
from fleetctl.ledger.chain import Head, Sealed, empty, genesis, seal
from fleetctl.ledger.entries import Admitted
from fleetctl.model.operational import ClaimRow
from fleetctl.pool1.admission import apply, decide
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import TreeState
from fleetctl.ports import Store
from fleetctl.store.sqlite import SqliteStore

WHAT = "ledger append"
STREAM = "entitlements"
GROUP = 100
APPENDS = 10_000
SINGLES = 200
SIGNATURES = 20_000


def measure(folder: Path) -> Row:
    messages = [bytes(TYPICAL)] * SIGNATURES
    grouped, single = Admitter(folder / "grouped"), Admitter(folder / "single")
    taken = alternate(
        lambda: grouped.run(APPENDS, GROUP),
        lambda: sign_loop(messages),
        lambda: single.run(SINGLES, 1),
        lambda: _fsyncs(folder / "fsyncs", SINGLES),
    )
    group, raw, one, synced = (
        rates(name, count, samples)
        for name, count, samples in zip(
            (
                f"decide, seal, append, {GROUP} to a commit",
                "raw sign",
                "decide, seal, append, one to a commit",
                "fsync",
            ),
            (APPENDS, SIGNATURES, SINGLES, SINGLES),
            taken,
            strict=True,
        )
    )
    return Row(
        lines=(
            Line(what=f"group commit of {GROUP}", ours=group, peer=raw, goal="rate", target=0.3),
            Line(what="single commits", ours=one, peer=synced, goal="rate"),
        ),
        notes=(
            "Single commits are bound by one fsync each; the peer there is a loop of write and fsync on the same disk.",
        ),
    )


class Admitter:
    """An entitlement ledger in a store of its own that claims are admitted to, with the usage kept in memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.store: Store = SqliteStore.create(folder / "state.db")
        with self.store.write(0) as tx:
            tx.open_stream(STREAM, LEDGER, genesis(LEDGER))
        self.head: Head = empty(LEDGER)
        self.tree: TreeState = state(1_000)
        self.names = list(self.tree.nodes)

    def run(self, count: int, group: int) -> Sample:
        """Admit `count` claims, `group` to a transaction. The claims themselves are prepared outside the time taken."""
        first = self.head.length
        claims = [(f"c{first + number}", self._claim(first + number)) for number in range(count)]
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, count, group):
            self._admit(claims[start : start + group])
        return Sample(wall_s=time.perf_counter() - began, cpu_s=time.process_time() - cpu)

    def _claim(self, number: int) -> Claim:
        return Claim(
            entitlement=self.names[number % len(self.names)],
            gang_size=1,
            devices_per_member=1,
            estimate_uj=1_000,
            grade=Grade.HW_SHUNT,
        )

    def _admit(self, claims: list[tuple[str, Claim]]) -> None:
        """Decide and seal each claim on the one before, and commit them together."""
        first = self.head
        entries: list[tuple[bytes, bytes]] = []
        rows: list[ClaimRow] = []
        for name, claim in claims:
            verdict = decide(self.tree, claim)
            assert verdict.admitted, verdict.reasons
            event = Admitted(
                at_ms=AT_MS + self.head.length,
                claim=name,
                entitlement=claim.entitlement,
                workload_class=None,
                reserved_uj=verdict.reserved_uj,
                borrowed_uj=verdict.borrowed_uj,
                devices=verdict.devices,
                grade=claim.grade.value,
            )
            sealed: Sealed = seal(event, self.head, STEWARD)
            entries.append((sealed.data, sealed.address))
            rows.append(ClaimRow(stream=STREAM, claim=name, entitlement=claim.entitlement, admitted_at=sealed.seq))
            apply(self.tree, verdict)
            self.head = sealed.head
        with self.store.write(0) as tx:
            tx.append(STREAM, expected_length=first.length, expected_head=first.address, entries=entries)
            tx.put_claims(rows)


def _fsyncs(path: Path, count: int) -> Sample:
    with path.open("ab") as out:
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            out.write(bytes(4096))
            out.flush()
            os.fsync(out.fileno())
        return Sample(wall_s=time.perf_counter() - began, cpu_s=time.process_time() - cpu)
