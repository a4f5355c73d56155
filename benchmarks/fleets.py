"""The same pools for both sides: as fleet files, as Terraform resources, and as many DNS records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PER_FILE = 1_000
SITES = 10
GPUS = ("H100", "H200", "B200", "A100", "L40S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The facts of one pool that both sides declare."""

    name: str
    site: str
    gpu_model: str
    gpus: int
    max_pending_h: int
    team: str


def pools(count: int) -> Iterator[Pool]:
    """`count` pools, the same ones every time."""
    for number in range(count):
        yield Pool(
            name=f"pool-{number:05d}",
            site=f"site-{number % SITES:02d}",
            gpu_model=GPUS[number % len(GPUS)],
            gpus=8 * (1 + number % 64),
            max_pending_h=1 + number % 24,
            team=f"team-{number % 37}",
        )


def write_fleet(folder: Path, count: int) -> None:
    """Fleet files of `count` pools: one for the header and the sites, the pools in files of a thousand."""
    folder.mkdir(parents=True, exist_ok=True)
    sites = "".join(f"  site-{number:02d}: {{kind: shared, region: eu-central}}\n" for number in range(SITES))
    (folder / "fleet.yaml").write_text(f"apiVersion: fleetctl/v1\nfleet: bench\ntenant: root\nsites:\n{sites}")
    texts = [_fleet_text(pool) for pool in pools(count)]
    for start in range(0, count, PER_FILE):
        text = "pools:\n" + "".join(texts[start : start + PER_FILE])
        (folder / f"pools-{start // PER_FILE:02d}.yaml").write_text(text)


def _fleet_text(pool: Pool) -> str:
    return f"""\
  {pool.name}:
    idempotencyKey: {pool.name}
    site: {pool.site}
    class: metal-host
    gpuModel: {pool.gpu_model}
    sharing: exclusive
    ownerQuota: {{gpu: {pool.gpus}}}
    description: Capacity of {pool.team}
    labels: {{team: {pool.team}, tier: standard}}
    policy:
      acceptance: [{{kind: diag.nvml}}]
      maxPending: {pool.max_pending_h}h
      hugepages: {{size: 1Gi, count: 32}}
"""


def hcl_object(pool: Pool) -> dict[str, object]:
    """The same facts as a Terraform value."""
    return {
        "idempotency_key": pool.name,
        "site": pool.site,
        "class": "metal-host",
        "gpu_model": pool.gpu_model,
        "sharing": "exclusive",
        "owner_quota": {"gpu": pool.gpus},
        "description": f"Capacity of {pool.team}",
        "labels": {"team": pool.team, "tier": "standard"},
        "policy": {
            "acceptance": [{"kind": "diag.nvml"}],
            "max_pending": f"{pool.max_pending_h}h",
            "hugepages": {"size": "1Gi", "count": 32},
        },
    }
