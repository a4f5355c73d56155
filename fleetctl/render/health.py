"""What `doctor` found, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.diagnostics import Diagnostic
from fleetctl.render.document import Block, Document, Facts, Items, Verdict
from fleetctl.render.words import counted


class CheckView(Protocol):
    """A check as `engine.health.Check` has it."""

    @property
    def name(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def problems(self) -> Sequence[Diagnostic]: ...


def health_json(checks: Sequence[CheckView]) -> dict[str, Any]:
    """`{"result": "ok"|"failed", "checks": [{"check", "ok", "seen"?, "diagnostics"?}]}`."""
    return {
        "result": "failed" if any(item.problems for item in checks) else "ok",
        "checks": [_check_json(item) for item in checks],
    }


def health_document(checks: Sequence[CheckView]) -> Document:
    failed = [item for item in checks if item.problems]
    verdict = (
        Verdict(f"{len(failed)} of {counted(len(checks), 'check')} failed", "bad")
        if failed
        else Verdict(f"All is well: {counted(len(checks), 'check')}", "good")
    )
    blocks: list[Block] = [verdict, Facts([(item.name, item.seen or "FAILED") for item in checks])]
    if failed:
        blocks.append(
            Items(
                [
                    (f"{item.name}: {problem.code.name}: {problem.detail}", "bad")
                    for item in failed
                    for problem in item.problems
                ]
            )
        )
    return blocks


def _check_json(item: CheckView) -> dict[str, Any]:
    out: dict[str, Any] = {"check": item.name, "ok": not item.problems}
    if item.seen:
        out["seen"] = item.seen
    if item.problems:
        out["diagnostics"] = [problem.to_json() for problem in item.problems]
    return out
