"""How GPUs and scalars are handed out: overcommit, sharing.replicas, migLayout, perGpu, and the GPUs' own settings."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.capacity.gpu_names import family_of
from fleetctl.capacity.mig import (
    LAYOUT_BALANCED,
    LAYOUT_DISABLED,
    LAYOUT_ENABLED,
    MigTable,
    layout_instances,
    layout_profiles,
    table_of_product,
    tables_of_family,
)
from fleetctl.capacity.policy.problems import Policy, PolicyProblem, PoolContext, one_of, problem, rule
from fleetctl.model.policy_forms import integer_of
from fleetctl.units import decimal_ratio, shown

MAX_REPLICAS = 48
"""The most that MPS serves (seed: `sharing`)."""

MIN_POWER_WATTS, MAX_POWER_WATTS = 1, 10_000
_WHOLE_GPU_LAYOUTS = (LAYOUT_BALANCED, LAYOUT_ENABLED, LAYOUT_DISABLED)

OVERCOMMIT = rule(
    "policy-overcommit",
    "overcommit names a resource that is never overcommitted",
    trigger="overcommit: {gpu: 2}, {hugepages1Gi: 2}",
)
REPLICAS = rule(
    "policy-replicas",
    "sharing.replicas is not a whole number from 1 to 48",
    trigger="sharing: {replicas: 49}",
)
PER_GPU = rule(
    "policy-per-gpu",
    "A perGpu figure is not above 0",
    trigger="perGpu: {vcpu: 0}",
)
POWER_LIMIT = rule(
    "policy-power-limit",
    "gpu.powerLimitWatts is not from 1 to 10000",
    trigger="gpu: {powerLimitWatts: 10001}",
)
MIG_LAYOUT = rule(
    "policy-mig-layout",
    "migLayout is no layout of the pool's GPUs",
    trigger="migLayout: all-1g.5gb on H100, 1g.10gb without all-, or any on a pool that is not mig",
)
MIG_UNCHECKED = rule(
    "policy-mig-unchecked",
    "migLayout cannot be checked: no MIG table is known for the pool's GPU model",
    trigger="migLayout on a gpuModel whose profiles are not known here",
    severity="warning",
)


def check(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    """The rules of better-compute 4B for overcommit, sharing, perGpu, gpu and migLayout."""
    yield from _overcommit(policy)
    yield from _numbers(policy)
    yield from _mig_layout(policy, pool)


def _overcommit(policy: Policy) -> Iterator[PolicyProblem]:
    ratios = policy.get("overcommit", {})
    assert isinstance(ratios, dict)
    for resource in ratios:
        if resource == "" or resource.startswith(("gpu", "hugepages")):
            yield problem(
                OVERCOMMIT,
                ("overcommit", resource),
                f"{shown(resource)} is never overcommitted; ratios are for scalars such as vcpu and memoryGiB",
            )


def _numbers(policy: Policy) -> Iterator[PolicyProblem]:
    sharing = policy.get("sharing", {})
    assert isinstance(sharing, dict)
    replicas = integer_of(sharing.get("replicas"))
    if replicas is not None and not 1 <= replicas <= MAX_REPLICAS:
        yield problem(REPLICAS, ("sharing", "replicas"), f"{replicas} is outside 1 to {MAX_REPLICAS}")
    per_gpu = policy.get("perGpu", {})
    assert isinstance(per_gpu, dict)
    for name in ("vcpu", "memoryGiB"):
        share = per_gpu.get(name)
        if isinstance(share, str) and decimal_ratio(share)[0] <= 0:
            yield problem(
                PER_GPU,
                ("perGpu", name),
                f"{share} is not above 0; leave it out to book the smallest share that any GPU host can give",
            )
    gpu = policy.get("gpu", {})
    assert isinstance(gpu, dict)
    watts = gpu.get("powerLimitWatts")
    if isinstance(watts, str):
        numerator, denominator = decimal_ratio(watts)
        if not MIN_POWER_WATTS * denominator <= numerator <= MAX_POWER_WATTS * denominator:
            yield problem(
                POWER_LIMIT,
                ("gpu", "powerLimitWatts"),
                f"{watts} W is outside {MIN_POWER_WATTS} to {MAX_POWER_WATTS} W",
            )


def _mig_layout(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    layout = policy.get("migLayout")
    if not isinstance(layout, str):
        return
    path = ("migLayout",)
    if pool.sharing != "mig":
        yield problem(
            MIG_LAYOUT, path, f"only mig pools have a layout and this one is {pool.sharing}; remove the field"
        )
        return
    if not layout.startswith("all-"):
        yield problem(
            MIG_LAYOUT,
            path,
            f"{shown(layout)} is no layout; write all- and a profile, such as all-1g.10gb, or {one_of(_WHOLE_GPU_LAYOUTS)}",
        )
        return
    products = [(name, table_of_product(name)) for name in pool.products]
    known = [(f"{name} ({table.name})", table) for name, table in products if table is not None]
    if known:
        yield from _for_products(layout, known)
    else:
        yield from _for_family(layout, pool.gpu_model)


def _for_products(layout: str, known: list[tuple[str, MigTable]]) -> Iterator[PolicyProblem]:
    """Every product in the pool must have the profile."""
    without = [name for name, table in known if layout_instances(table, layout) is None]
    if without:
        yield problem(MIG_LAYOUT, ("migLayout",), _no_layout(layout, without[0], [table for _, table in known]))


def _for_family(layout: str, gpu_model: str) -> Iterator[PolicyProblem]:
    """Without inventory, some product of the family must have it."""
    tables = tables_of_family(gpu_model)
    if not tables:
        if layout not in _WHOLE_GPU_LAYOUTS:
            yield problem(
                MIG_UNCHECKED,
                ("migLayout",),
                f"the profiles of {shown(gpu_model)} are not known here, so a node may refuse {shown(layout)}{_plainer(gpu_model)}",
            )
        return
    if all(layout_instances(table, layout) is None for table in tables):
        names = list(dict.fromkeys(name for table in tables for name in layout_profiles([table])))
        yield problem(
            MIG_LAYOUT,
            ("migLayout",),
            f"{gpu_model} has no layout {shown(layout)}; it has {', '.join(names)}, {one_of(_WHOLE_GPU_LAYOUTS)}",
        )


def _plainer(gpu_model: str) -> str:
    """The family to write where a product was written."""
    family = family_of(gpu_model)
    known = family is not None and family != gpu_model and tables_of_family(family)
    return f"; gpuModel is a family, such as {family}" if known else ""


def _no_layout(layout: str, product: str, tables: list[MigTable]) -> str:
    names = ", ".join([*layout_profiles(tables), ""])
    return f"{product} has no layout {shown(layout)}; every product of the pool has {names}{one_of(_WHOLE_GPU_LAYOUTS)}"
