"""The pool policy: what may be written (`validate_policy`) and what it comes to (`effective`, `rows`).

Reading order: `problems` (what is reported), `shape` (values of the right kind), then the rules by subject: `admission`,
`sharing`, `host`, `kubernetes`, the lints of `effect`, and the pool's own words in `pool`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fleetctl.canonical import Json
from fleetctl.capacity.policy import admission, effect, host, kubernetes, shape
from fleetctl.capacity.policy import sharing as sharing_rules
from fleetctl.capacity.policy.pool import AGENTS, CLASSES, SHARING_MODES, pool_words
from fleetctl.capacity.policy.problems import PolicyProblem, PoolContext, path_text, refuse_errors
from fleetctl.model.policy_fields import Path
from fleetctl.model.policy_forms import Misfit

__all__ = [
    "AGENTS",
    "CLASSES",
    "SHARING_MODES",
    "PolicyProblem",
    "path_text",
    "pool_words",
    "refuse_errors",
    "validate_policy",
]

_RULES = (admission.check, sharing_rules.check, host.check, kubernetes.check, effect.check)


def validate_policy(
    policy: Mapping[str, Json],
    *,
    pool_class: str,
    sharing: str,
    gpu_model: str,
    site_kind: str | None,
    platform_owned: bool,
    attestors: Collection[str] | None,
    billing_configured: bool | None,
    products: Sequence[str] = (),
    misfits: Sequence[Misfit] = (),
) -> list[PolicyProblem]:
    """Every problem of a policy in canonical form, errors and lints, in the order of the rules (better-compute 4B, 4D).

    `site_kind`, `attestors` and `billing_configured` are None where they are not known; rules that need them then pass.
    `attestors` are the ids that the engine runs besides `join-token`; `products` the NVML names in the pool's inventory.
    `misfits` are the values that did not convert to canonical form and are missing from `policy`; they are reported first.
    """
    pool = PoolContext(
        pool_class=pool_class,
        sharing=sharing,
        gpu_model=gpu_model,
        site_kind=site_kind,
        platform_owned=platform_owned,
        attestors=attestors,
        billing_configured=billing_configured,
        products=tuple(products),
    )
    known, found = shape.check(policy)
    problems = [*shape.of_misfits(misfits), *found]
    left_out = [item.path for item in problems if item.severity == "error"]
    for check in _RULES:
        problems.extend(item for item in check(known, pool) if not _follows(item.path, left_out))
    return problems


def _follows(path: Path, left_out: Sequence[Path]) -> bool:
    """Whether a rule speaks of a value that was left out or of what holds it, and so would only repeat that."""
    return any(other[: len(path)] == path for other in left_out)
