"""A fleet that uses every section and most fields, as data and as files in several shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FLEET: Mapping[str, Any] = {
    "apiVersion": "fleetctl/v1",
    "fleet": "eu-prod",
    "tenant": "root",
    "tenants": {"acme": {"parent": "root"}, "lab": {"parent": "acme", "description": "été"}},
    "sites": {
        "fra1": {"kind": "shared", "region": "eu-central"},
        "par1": {"kind": "custom", "region": "eu-west", "idempotencyKey": "site.par1"},
    },
    "policies": {
        "training": {
            "acceptance": [{"kind": "diag.nvml"}],
            "maxPending": "6h",
            "hugepages": {"size": "1Gi", "count": 32},
            "joinAttestors": ["x509pop", "tpm"],
            "x": {"y": [1, "two", True]},
        }
    },
    "defaults": {"pools": {"class": "metal-host", "sharing": "exclusive", "policy": "training"}},
    "pools": {
        "fra1-h100": {
            "idempotencyKey": "pool-fra1-h100",
            "site": "fra1",
            "gpuModel": "H100",
            "ownerQuota": {"gpu": 512},
            "protect": True,
            "labels": {"team": "ml"},
        },
        "par1-h100": {
            "idempotencyKey": "pool-par1-h100",
            "site": "par1",
            "gpuModel": "H100",
            "policy": {"from": "training", "maxPending": "12h"},
        },
    },
    "offers": {
        "acme-eu": {"to": "acme", "pools": ["fra1-h100", "par1-h100"], "quota": {"gpu": 32, "vcpu": 64}, "priority": 10}
    },
    "entitlements": {
        "research": {"idempotencyKey": "ent-research", "guarantee": {"energy": "0 J", "devices": 0}, "period": "30d"},
        "research-vision": {
            "idempotencyKey": "ent-vision",
            "parent": "research",
            "tenant": "acme",
            "guarantee": {"energy": "40 MJ", "devices": 8},
            "overQuotaWeight": 2,
            "limit": {"energy": "60 MJ"},
            "priority": -5,
        },
    },
    "marketPools": {
        "dev": {
            "idempotencyKey": "mkt-dev",
            "procurements": {"w": {"instanceSku": "sea-3-h100", "nodes": 2, "window": "2h", "maxRate": 20}},
        },
        "prod": {"idempotencyKey": "mkt-prod", "protect": True, "explicitOnly": True},
    },
    "orders": {
        "o1": {
            "idempotencyKey": "ord-1",
            "side": "buy",
            "pool": "dev",
            "nodes": 1,
            "startAt": "2026-12-07T00:00Z",
            "endAt": "2026-12-07T08:00Z",
            "maxRate": 20,
            "standing": True,
        }
    },
    "transfers": {
        "t1": {
            "idempotencyKey": "xfer-1",
            "from": "dev",
            "to": "prod",
            "startAt": "2026-12-07T00:00Z",
            "endAt": "2026-12-14T00:00Z",
            "nodes": 4,
            "instanceSku": "sea-3-h100",
        }
    },
    "accept": [{"danger": "shrink-below-use:offer/pool-fra1-h100/acme", "reason": "agreed", "until": "2026-12-31"}],
    "ignoreDrift": [{"object": "pool/pool-fra1-h100", "field": "policy.telemetry", "owner": "sre", "reason": "tuned"}],
    "release": ["pool/pool-old"],
}


def as_yaml(data: Any, *, quoted: frozenset[str] = frozenset(), indent: int = 0) -> str:
    """Block YAML of plain data. Text is plain where that reads back the same, quoted otherwise or when in `quoted`."""
    pad = "  " * indent
    if isinstance(data, Mapping):
        if not data:
            return " {}\n"
        lines = [f"{pad}{key}:{_below(value, quoted, indent)}" for key, value in data.items()]
        return ("\n" if indent else "") + "".join(lines)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return f" {json.dumps(data, ensure_ascii=False)}\n"
    if isinstance(data, str) and data not in quoted and ": " not in data and data.isascii():
        return f" {data}\n"
    return f" {json.dumps(data, ensure_ascii=False)}\n"


def _below(value: Any, quoted: frozenset[str], indent: int) -> str:
    return as_yaml(value, quoted=quoted, indent=indent + 1)


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files of a fleet in a folder of their own."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return folder
