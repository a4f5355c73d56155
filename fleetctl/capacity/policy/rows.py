"""The `node_resources` rows of a host: what it can book of CPUs, memory, disk and huge pages (seed: "The placer reads …", B27)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fleetctl.canonical import Json
from fleetctl.capacity.policy.effective import host_reserve, overcommit
from fleetctl.frozen import dataclass
from fleetctl.model.policy_forms import integer_of

_PAGE_MIB = {"2Mi": 2, "1Gi": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostInventory:
    """What a host has installed. Memory in MiB, so that huge pages come out of it exactly; `disk_gib` counts on vps-host pools only."""

    logical_cpus: int
    memory_mib: int
    disk_gib: int = 0
    numa_nodes: int = 1
    tenant_controlled: bool = False


def host_rows(
    policy: Mapping[str, Json], *, pool_class: str, host: HostInventory, allocated: Mapping[str, int]
) -> dict[str, int]:
    """The host's rows: `vcpu`, `memoryGiB`, `hugepages2Mi`, `hugepages1Gi`, and `diskGiB` on vps-host pools.

    Each is ⌊(installed − huge pages − reserve)·ratio⌋, at least 0 and never below what is allocated of it; huge pages
    have no ratio. A tenant-controlled node has no rows.
    """
    if host.tenant_controlled:
        return {}
    pages = hugepages(policy, host.numa_nodes)
    huge_mib = sum(count * _PAGE_MIB[size] for size, count in pages.items())
    memory_gib = Fraction(host.memory_mib - huge_mib, 1024) - host_reserve(policy, pool_class, "memoryGiB")
    rows = {
        "vcpu": _bookable(policy, "vcpu", host.logical_cpus - host_reserve(policy, pool_class, "vcpu")),
        "memoryGiB": _bookable(policy, "memoryGiB", memory_gib),
        **{f"hugepages{size}": count for size, count in pages.items()},
    }
    if pool_class == "vps-host":
        rows["diskGiB"] = _bookable(policy, "diskGiB", Fraction(host.disk_gib))
    return {resource: max(amount, allocated.get(resource, 0)) for resource, amount in rows.items()}


def hugepages(policy: Mapping[str, Json], numa_nodes: int) -> dict[str, int]:
    """Pages of each size that a host reserves; `perNuma` counts them once per NUMA node."""
    pages = dict.fromkeys(_PAGE_MIB, 0)
    given = policy.get("hugepages")
    if isinstance(given, dict):
        size, count = given.get("size"), integer_of(given.get("count"))
        if isinstance(size, str) and size in pages and count is not None:
            pages[size] = count * (numa_nodes if given.get("perNuma") is True else 1)
    return pages


def _bookable(policy: Mapping[str, Json], resource: str, amount: Fraction) -> int:
    return max(0, int(amount * overcommit(policy, resource) // 1))
