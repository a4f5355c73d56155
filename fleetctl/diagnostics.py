"""Diagnostics are data: a stable code, a fixed summary, a detail that says how to mend it, a span.

A module declares the codes it reports next to the rule that reports them::

    DUPLICATE_KEY = code("duplicate-key", "A mapping names the same key twice", trigger="...")
    ...
    problems.append(DUPLICATE_KEY.at("`gpu` is already given at a.yaml:3:5; remove one", span=span))

`REGISTRY` holds every declared code; the reference table and `fleetctl explain` are made from it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Literal

from fleetctl.frozen import dataclass

Severity = Literal["error", "warning"]

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a source file. `file` is relative to the fleet's path with `/`; lines and columns count from 1, columns in code points."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A kind of problem. `name` is stable; `summary` never holds a user's value; `exit_code` is what the command ends with because of it."""

    name: str
    summary: str
    trigger: str
    severity: Severity
    exit_code: int
    engine_code: str | None

    def at(
        self,
        detail: str,
        *,
        span: Span | None = None,
        subject: str | None = None,
        severity: Severity | None = None,
    ) -> Diagnostic:
        """One occurrence. `detail` says what is wrong with this input and how to mend it; `subject` is `kind/key`, printed as `object`."""
        return Diagnostic(code=self, detail=detail, span=span, subject=subject, severity=severity or self.severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem found in one place. Text, JSON, GitHub annotations and HTTP problems are views of it."""

    code: Code
    detail: str
    span: Span | None = None
    subject: str | None = None
    severity: Severity = "error"

    @property
    def summary(self) -> str:
        return self.code.summary

    def to_json(self) -> dict[str, object]:
        """The shape `diagnostics[]` has in every JSON output: absent parts are left out."""
        out: dict[str, object] = {
            "code": self.code.name,
            "severity": self.severity,
            "summary": self.code.summary,
            "detail": self.detail,
        }
        if self.span is not None:
            out |= {"file": self.span.file, "line": self.span.line, "column": self.span.column}
        if self.subject is not None:
            out["object"] = self.subject
        if self.code.engine_code is not None:
            out["engineCode"] = self.code.engine_code
        return out


REGISTRY: dict[str, Code] = {}


def code(
    name: str,
    summary: str,
    *,
    trigger: str,
    severity: Severity = "error",
    exit_code: int = 1,
    engine_code: str | None = None,
) -> Code:
    """Declare a diagnostic code, once. `name` is kebab-case; `engine_code` is the seed's word (`CONFLICT`, `NOT_FOUND`, ...) where there is one."""
    if not _CODE.fullmatch(name):
        raise ValueError(f"diagnostic code {name!r} is not kebab-case")
    if name in REGISTRY:
        raise ValueError(f"diagnostic code {name!r} is declared twice")
    made = Code(
        name=name, summary=summary, trigger=trigger, severity=severity, exit_code=exit_code, engine_code=engine_code
    )
    REGISTRY[name] = made
    return made


def in_reading_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted by file, line and column; those without a place come first; ties by code and detail, which is arbitrary."""

    def key(item: Diagnostic) -> tuple[str, int, int, str, str]:
        span = item.span or Span("", 0, 0)
        return (span.file, span.line, span.column, item.code.name, item.detail)

    return sorted(diagnostics, key=key)
