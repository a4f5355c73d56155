"""Warnings: what a fleet may say and probably does not mean (fleet-files: "Lints"). Whether they are errors is the caller's.

`# fleetctl: allow CODE reason` above the line of the finding, or above the line that names its object, silences one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleetctl.config.build import Written
from fleetctl.config.codes import did_you_mean, nearest, one_of, shown
from fleetctl.config.loaded import KnownPools
from fleetctl.config.places import Places
from fleetctl.config.problems import Problems
from fleetctl.config.scan import Allowed
from fleetctl.diagnostics import REGISTRY, Code, code
from fleetctl.model.bodies import EntitlementBody, OfferBody, PoolBody
from fleetctl.model.declared import Declared, IgnoredDrift
from fleetctl.model.ids import object_name
from fleetctl.units import format_duration


def _lint(name: str, summary: str, *, trigger: str) -> Code:
    return code(name, summary, trigger=trigger, severity="warning")


OVERSUBSCRIBED = _lint(
    "offers-over-capacity",
    "The offers of a pool add up to more than it has",
    trigger="the sum of offered quota is over the known capacity of a pool",
)
INTERIOR_GUARANTEE = _lint(
    "interior-guarantee",
    "An entitlement with children has a guarantee of its own",
    trigger="a guarantee above 0 on an interior node: what it leaves unspent is lent to its siblings, not to its children",
)
INTERIOR_LIMIT = _lint(
    "interior-limit",
    "A limit on an entitlement with children does not bind them",
    trigger="a limit on an interior node of the entitlement tree",
)
PERIODS_DIFFER = _lint(
    "periods-differ",
    "Two root entitlements have different periods",
    trigger="`period: 7d` on one root and `30d` on another: there is one ledger, and a rotation ends the window of both",
)
OWNER_QUOTA = _lint(
    "owner-quota-missing",
    "The owner of a divided pool has no quota for its parts",
    trigger="a mig, timeslice or mps pool whose ownerQuota has no gpu.mig or gpu.slot: a missing row grants 0",
)
MODEL_DIFFERS = _lint(
    "gpu-model-differs",
    "A pool's machines report another GPU family than its gpuModel",
    trigger="gpuModel: H200 while the nodes of the pool report H100: authorization and billing go by the name",
)
INCLUDE_DESCENDANTS = _lint(
    "include-descendants-no-effect",
    "includeDescendants has no effect yet",
    trigger="includeDescendants: true, which is stored; tenants are matched exactly in this release",
)
MODEL_CASE = _lint(
    "gpu-model-case",
    "Two pools name GPU models that differ only in case",
    trigger="H100 and h100 in one fleet: both are billed as gpu.h100.hours",
)
IGNORED_OBJECT = _lint(
    "ignore-drift-unknown-object",
    "An `ignoreDrift` entry names an object that the fleet does not declare",
    trigger="an entry left behind when its object left the files",
)
ALLOWED_CODE = _lint(
    "allow-unknown-code",
    "A comment silences a lint that does not exist",
    trigger="`# fleetctl: allow CODE …` with a code that is no warning of the file checks",
)

QUOTA_MISSPELT = _lint(
    "quota-misspelt",
    "A quota names a resource that looks like a known one",
    trigger="quota: {gpus: 8}: stored as given, and nothing is ever booked on it",
)
QUOTA_EMPTY = _lint(
    "offer-quota-empty",
    "An offer grants nothing",
    trigger="quota: {}: a resource without a row grants 0, so the tenant sees a pool that it cannot use",
)

_RESOURCES = ("gpu", "gpu.mig", "gpu.slot", "vcpu", "memoryGiB", "diskGiB", "hugepages2Mi", "hugepages1Gi")
_PART = {"mig": "gpu.mig", "timeslice": "gpu.slot", "mps": "gpu.slot"}


_SHOWN = 5  # pools that one warning names


class Lints:
    """Takes warnings, drops those that a comment allows."""

    def __init__(self, problems: Problems, allowed: Sequence[Allowed]) -> None:
        self.problems = problems
        self._allowed: set[tuple[str, str, int]] = set()
        for item in allowed:
            span = problems.sources.span(item.line_at)
            self._allowed.add((item.code, span.file, span.line))
            known = REGISTRY.get(item.code)
            if known is None or known.severity != "warning":
                detail = f"{shown(item.code)} is no warning that can be silenced; see the reference of diagnostics"
                problems.add(ALLOWED_CODE, detail, item.at)

    def add(self, code: Code, detail: str, at: int, *, item: Written | None = None) -> None:
        """Report a warning at a place of an object, unless a comment above either line allows it."""
        places = {at, item.at} if item is not None else {at}
        if self._allowed:
            lines = [self.problems.sources.span(place) for place in places]
            if any((code.name, span.file, span.line) in self._allowed for span in lines):
                return
        subject = item.declared.label if item is not None else None
        self.problems.add(code, detail, at, subject=subject, severity="warning")


def lint(objects: Sequence[Written], places: Places, lints: Lints, known: KnownPools) -> None:
    """All lints over objects, except those that the policy validators give."""
    _entitlements(objects, places, lints)
    _periods(objects, places, lints)
    _pools(objects, places, lints, known)
    _offers(objects, places, lints, known)


def lint_ignored(ignored: Iterable[tuple[IgnoredDrift, int]], objects: Sequence[Declared], lints: Lints) -> None:
    """Entries of `ignoreDrift` whose object is not declared; each comes with its place."""
    labels = {item.label for item in objects}
    for entry, at in ignored:
        if entry.object not in labels:
            mend = _by_name(entry.object, objects) or did_you_mean(entry.object, labels) or "; remove the entry"
            lints.add(IGNORED_OBJECT, f"{shown(entry.object)} is not declared in this fleet{mend}", at)


def _by_name(label: str, objects: Sequence[Declared]) -> str:
    """What to write where an object was named by its name instead of its key."""
    found = [item.label for item in objects if object_name(item.kind, item.name) == label]
    return f"; objects go by their key, write {one_of(f'`{item}`' for item in sorted(found)[:5])}" if found else ""


def _entitlements(objects: Sequence[Written], places: Places, lints: Lints) -> None:
    bodies = [(item, item.declared.body) for item in objects]
    parents = {body.parent for _, body in bodies if isinstance(body, EntitlementBody)}
    for item, body in bodies:
        if not isinstance(body, EntitlementBody) or item.declared.key not in parents:
            continue
        here = (item.section, item.name)
        if body.guarantee_uj or body.guarantee_devices:
            detail = f"`{item.name}` has children; give the guarantee to them, and 0 to it"
            lints.add(INTERIOR_GUARANTEE, detail, places.key(here, "guarantee"), item=item)
        if body.limit_uj is not None:
            detail = f"`{item.name}` has children, and its limit is not enforced on them; put limits on the leaves"
            lints.add(INTERIOR_LIMIT, detail, places.key(here, "limit"), item=item)


def _periods(objects: Sequence[Written], places: Places, lints: Lints) -> None:
    """Roots whose period is longer than another's: the rotation that is due for that one sets them back early."""
    periods = [
        (body.period_ms, item)
        for item in objects
        if isinstance(body := item.declared.body, EntitlementBody) and body.period_ms is not None
    ]
    shortest, first = min(periods, key=lambda found: found[0], default=(None, None))
    for period, item in periods:
        if shortest is not None and first is not None and period > shortest:
            detail = (
                f"`{item.name}` has {format_duration(period)} and `{first.name}` {format_duration(shortest)}; a rotation after "
                f"{format_duration(shortest)} ends the window of `{item.name}` early and is a danger: write one period, or use an "
                "engine for each"
            )
            lints.add(PERIODS_DIFFER, detail, places.value((item.section, item.name, "period")), item=item)


def _pools(objects: Sequence[Written], places: Places, lints: Lints, known: KnownPools) -> None:
    models: dict[str, str] = {}
    for item in objects:
        body = item.declared.body
        if not isinstance(body, PoolBody):
            continue
        part = _PART.get(body.sharing)
        if part is not None and part not in body.owner_quota:
            detail = f"`{item.name}` is a {body.sharing} pool and its owner has 0 of {part}; add it to ownerQuota"
            lints.add(OWNER_QUOTA, detail, item.at, item=item)
        _quota_names(item, "ownerQuota", body.owner_quota, places, lints)
        first = models.setdefault(body.gpu_model.lower(), body.gpu_model)
        if first != body.gpu_model:
            detail = f"{shown(body.gpu_model)} and {shown(first)} are billed as one; write one form"
            lints.add(MODEL_CASE, detail, places.value((item.section, item.name, "gpuModel")), item=item)
        families = known[item.declared.key].families if item.declared.key in known else frozenset()
        if families - {body.gpu_model}:
            detail = f"its machines report {one_of(sorted(families))}; a pool holds one model (readings B32)"
            lints.add(MODEL_DIFFERS, detail, places.value((item.section, item.name, "gpuModel")), item=item)


def _offers(objects: Sequence[Written], places: Places, lints: Lints, capacity: KnownPools) -> None:
    sums: dict[tuple[str, str], int] = {}
    over: dict[tuple[int, str], list[tuple[Written, str, int]]] = {}
    """What goes over capacity, by where it is written: one entry offers many pools."""
    for item in objects:
        body = item.declared.body
        if not isinstance(body, OfferBody):
            continue
        if body.include_descendants:
            detail = "it is stored, and tenants are matched exactly in this release; offer to each tenant by name"
            at = places.value((item.section, item.name, "includeDescendants"))
            lints.add(INCLUDE_DESCENDANTS, detail, at, item=item)
        if not body.quota:
            detail = f"`{item.name}` grants {shown(body.to)} nothing; name resources, such as quota: {{gpu: 8}}"
            lints.add(QUOTA_EMPTY, detail, places.value((item.section, item.name, "quota")), item=item)
        _quota_names(item, "quota", body.quota, places, lints)
        for resource, maximum in sorted(body.quota.items()):
            total = sums[body.pool, resource] = sums.get((body.pool, resource), 0) + maximum
            known = capacity[body.pool].resources.get(resource) if body.pool in capacity else None
            if known is not None and total > known >= total - maximum:
                at = places.key((item.section, item.name, "quota"), resource)
                over.setdefault((at, resource), []).append((item, body.pool, known))
    for (at, resource), found in over.items():
        pools = [(pool, sums[pool, resource], known) for _, pool, known in found]
        lints.add(OVERSUBSCRIBED, _over(resource, pools), at, item=found[0][0])


def _over(resource: str, pools: Sequence[tuple[str, int, int]]) -> str:
    """What one entry takes over capacity, as (pool, offered, there)."""
    shown_pools = ", ".join(f"{shown(pool)} ({total} offered, it has {known})" for pool, total, known in pools[:_SHOWN])
    more = f" and {len(pools) - _SHOWN} more" if len(pools) > _SHOWN else ""
    of = f"pool {shown_pools}" if len(pools) == 1 else f"{len(pools)} pools: {shown_pools}{more}"
    return f"with this offer more {resource} are offered than there are of {of}; lower a quota, or allow it"


def _quota_names(item: Written, field: str, quota: Mapping[str, int], places: Places, lints: Lints) -> None:
    for resource in sorted(quota.keys() - set(_RESOURCES)):
        meant = nearest(resource, _RESOURCES, cutoff=0.8)
        if meant is not None:
            detail = f"nothing is booked on {shown(resource)}; if `{meant}` is meant, write that name"
            lints.add(QUOTA_MISSPELT, detail, places.key((item.section, item.name, field), resource), item=item)
