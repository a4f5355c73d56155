"""What a policy comes to once defaults and clamps are applied. Clamps and defaults of use are computed here, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from fleetctl.canonical import Json
from fleetctl.capacity.policy.sharing import MAX_REPLICAS
from fleetctl.frozen import dataclass
from fleetctl.model.policy_fields import POLICY
from fleetctl.model.policy_forms import integer_of, is_canonical_decimal
from fleetctl.units import DurationMs, decimal_ratio

_MIN_RATIO, _MAX_RATIO = Fraction(1, 10), Fraction(100)
_REPLICAS = {"timeslice": 4, "mps": 10}
_HOST_RESERVE = {"vcpu": Fraction(2), "memoryGiB": Fraction(8)}
PER_GPU_RESOURCES = ("vcpu", "memoryGiB")


def overcommit(policy: Mapping[str, Json], resource: str) -> Fraction:
    """The ratio of a scalar resource: 1 when none is given, within 0.1 to 100 (seed: "The placer reads …")."""
    return min(max(_decimal(_object(policy, "overcommit"), resource, Fraction(1)), _MIN_RATIO), _MAX_RATIO)


def replicas(policy: Mapping[str, Json], sharing: str) -> int:
    """Slot atoms per GPU: the policy's, at most 48; 4 for timeslice and 10 for mps by default; 1 for whole and MIG GPUs."""
    if sharing not in _REPLICAS:
        return 1
    given = integer_of(_object(policy, "sharing").get("replicas"))
    return min(given or _REPLICAS[sharing], MAX_REPLICAS)


def disruptable(policy: Mapping[str, Json], nodes: int) -> int:
    """How many of the pool's nodes remediation and rollouts may disrupt at once (B29).

    max(1, ⌊budget·nodes⌋), exactly, when the budget is above 0; never more than there are; 0 for a budget of 0.
    """
    default = Fraction(*decimal_ratio(str(POLICY.fields["disruptionBudget"].default)))
    budget = _decimal(policy, "disruptionBudget", default)
    return 0 if budget <= 0 else min(nodes, max(1, budget.numerator * nodes // budget.denominator))


def max_pending_ms(policy: Mapping[str, Json]) -> DurationMs:
    """How long a reservation may stay pending; 24 hours by default."""
    default = POLICY.fields["maxPending"].default
    assert isinstance(default, int)
    return DurationMs(integer_of(policy.get("maxPendingMs")) or default)


def lost_after_ms(policy: Mapping[str, Json], pool_class: str) -> DurationMs | None:
    """How long an unreachable node waits before it is lost: provider pools only, elsewhere never (B28)."""
    given = integer_of(policy.get("lostAfterMs"))
    return DurationMs(given) if given and pool_class == "provider" else None


def host_reserve(policy: Mapping[str, Json], pool_class: str, resource: str) -> Fraction:
    """What each host keeps of `vcpu` or `memoryGiB` for itself: 2 CPUs and 8 GiB by default, nothing on vps-host pools."""
    if pool_class == "vps-host":
        return Fraction(0)
    return _decimal(_object(policy, "hostReserve"), resource, _HOST_RESERVE[resource])


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """What one host of the pool can give: whole GPUs, and its bookable vcpu and memoryGiB rows."""

    gpus: int
    vcpu: int
    memory_gib: int


def per_gpu(policy: Mapping[str, Json], resource: str, hosts: Iterable[HostShare]) -> Fraction | None:
    """What a reservation books of `vcpu` or `memoryGiB` per whole GPU when it asks for none.

    The policy's figure, else the smallest whole share that any host with GPUs can give; None when there is no such host.
    """
    given = _object(policy, "perGpu").get(resource)
    if is_canonical_decimal(given):
        return Fraction(*decimal_ratio(str(given)))
    shares = [(host.vcpu if resource == "vcpu" else host.memory_gib) // host.gpus for host in hosts if host.gpus > 0]
    return Fraction(min(shares)) if shares else None


def booked_with_gpus(share: Fraction | None, gpus: int) -> int:
    """What `gpus` whole GPUs book at a share each, rounded up, so that a booking never holds less than its share."""
    return 0 if share is None else -(-share.numerator * gpus // share.denominator)


def _object(policy: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    value = policy.get(name)
    return value if isinstance(value, dict) else {}


def _decimal(fields: Mapping[str, Json], name: str, default: Fraction) -> Fraction:
    value = fields.get(name)
    return Fraction(*decimal_ratio(str(value))) if is_canonical_decimal(value) else default
