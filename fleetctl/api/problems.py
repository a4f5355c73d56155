"""Diagnostics as problem details (RFC 9457): the one form in which a service says that something is wrong to people."""

from __future__ import annotations

from collections.abc import Sequence

from fleetctl.diagnostics import Diagnostic

MEDIA_TYPE = "application/problem+json"


def problem(status: int, diagnostics: Sequence[Diagnostic], **more: object) -> dict[str, object]:
    """`title` is the first diagnostic's summary; `diagnostics` has them all, as every JSON output does."""
    first = diagnostics[0]
    return {
        "type": "about:blank",
        "title": first.summary,
        "status": status,
        "detail": first.detail,
        "code": first.code.name,
        "diagnostics": [item.to_json() for item in diagnostics],
        **more,
    }
