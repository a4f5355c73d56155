"""What a policy validator reports, and what it is told about the pool."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from fleetctl.canonical import Json
from fleetctl.diagnostics import Code, Diagnostic, Severity, Span, code
from fleetctl.errors import EngineRefused
from fleetctl.frozen import dataclass
from fleetctl.model.policy_fields import Path
from fleetctl.units import shown

PoolClass = Literal["metal-host", "metal-dedicated", "vps-host", "provider"]
Sharing = Literal["exclusive", "mig", "timeslice", "mps"]
SiteKind = Literal["shared", "dedicated", "custom"]

_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,64}", re.ASCII)

Policy = Mapping[str, Json]
"""A policy in canonical form, whose known fields have passed `shape.check`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProblem:
    """One problem with one field. `path` is in the names that a file uses; `detail` begins with it (`perGpu.vcpu: …`)."""

    code: Code
    path: Path
    detail: str
    severity: Severity

    def diagnostic(self, *, span: Span | None = None, subject: str | None = None) -> Diagnostic:
        """The diagnostic that a file's reader sees at the field's place."""
        return self.code.at(self.detail, span=span, subject=subject, severity=self.severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContext:
    """What the rules need to know of the pool around its policy.

    `site_kind`, `attestors` and `billing_configured` are None where they are not known (files validated without an engine);
    the rules that need them are then left to the engine. `attestors` are the ids the engine runs besides `join-token`.
    `products` are the NVML names in the pool's inventory, if any.
    """

    pool_class: str
    sharing: str
    gpu_model: str
    site_kind: str | None
    platform_owned: bool
    attestors: Collection[str] | None
    billing_configured: bool | None
    products: tuple[str, ...] = ()


def rule(name: str, summary: str, *, trigger: str, severity: Severity = "error") -> Code:
    """Declare a policy rule's code; the engine answers INVALID_INPUT (seed: "Pool policy")."""
    return code(name, summary, trigger=trigger, severity=severity, engine_code="INVALID_INPUT")


def problem(of: Code, path: Path, detail: str) -> PolicyProblem:
    """One occurrence of a rule's code at a field; `detail` without the path."""
    return PolicyProblem(code=of, path=path, detail=f"{path_text(path)}: {detail}", severity=of.severity)


def path_text(path: Path) -> str:
    """`overcommit.vcpu`, `acceptance[0].kind`; names that are not plain are quoted and escaped."""
    text = ""
    for step in path:
        name = step if isinstance(step, int) or _PLAIN.fullmatch(step) else shown(step)
        text += f"[{name}]" if isinstance(step, int) else f".{name}" if text else str(name)
    return text


def refuse_errors(problems: Iterable[PolicyProblem], *, subject: str | None = None) -> None:
    """Raise EngineRefused (INVALID_INPUT) with every error among the problems, each reading `policy: …`; warnings pass."""
    errors = [item for item in problems if item.severity == "error"]
    if errors:
        raise EngineRefused([item.code.at(f"policy: {item.detail}", subject=subject) for item in errors])


def one_of(names: Iterable[str]) -> str:
    """`a, b or c`."""
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
