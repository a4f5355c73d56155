"""Lints for fields that have no effect on the pool they are written on."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.capacity.policy.problems import Policy, PolicyProblem, PoolContext, problem, rule
from fleetctl.model.policy_fields import Path

NO_EFFECT = rule(
    "policy-no-effect",
    "A policy field is stored and has no effect on a pool like this",
    trigger="lostAfter on a metal pool, hostReserve on a vps-host pool, sharing.replicas on an exclusive pool",
    severity="warning",
)

_METAL = ("metal-host", "metal-dedicated")
_DAEMON_FIELDS = ("hugepages", "kernelModules", "cpu", "iommu", "gpu", "kubernetes", "telemetry")


def check(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    """The lints of better-compute 4B and B28, and of fleet-files ("fields without effect for the pool's class")."""
    for path, why in _without_effect(policy, pool):
        yield problem(NO_EFFECT, path, f"{why}; remove it, or say why it stays")


def _without_effect(policy: Policy, pool: PoolContext) -> Iterator[tuple[Path, str]]:
    if "lostAfterMs" in policy and pool.pool_class != "provider":
        yield ("lostAfter",), "it is applied only to provider pools, never to metal"
    if policy.get("hostReserve") and pool.pool_class == "vps-host":
        yield ("hostReserve",), "nothing is reserved on hosts of a vps-host pool"
    sharing = policy.get("sharing")
    if isinstance(sharing, dict) and "replicas" in sharing and pool.sharing not in ("timeslice", "mps"):
        yield ("sharing", "replicas"), f"GPUs of {pool.sharing} pools have no replicas"
    if policy.get("workloadIdentity") is True and pool.pool_class != "vps-host":
        yield ("workloadIdentity",), "only instances of vps-host pools get workload identity tokens"
    for name in ("trustProvisioningNetwork", "hardwareProfile"):
        if policy.get(name) and pool.pool_class not in _METAL:
            yield (name,), "only bare metal is provisioned"
    if pool.pool_class == "provider":
        for name in _DAEMON_FIELDS:
            if policy.get(name):
                yield (name,), "machines of a provider run no daemon that could apply it"
    cluster = policy.get("kubernetes")
    if isinstance(cluster, dict) and cluster.get("platformOperated") is True and not pool.platform_owned:
        yield ("kubernetes", "platformOperated"), "it counts only on a pool that the platform owns"
