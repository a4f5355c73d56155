"""The documents that journal entries name: each kept under its digest and never deleted (ledger.md "Documents")."""

from __future__ import annotations

from collections.abc import Callable

from fleetctl.diagnostics import code
from fleetctl.ledger.entries import Applied, Called, JournalEvent, Recovered, Reported

DOCUMENT_MISSING = code(
    "document-missing",
    "A document that the journal names is missing or was changed",
    trigger="a plan's body or context, a request, a report or a recovery's evidence is not kept under its digest any more",
    exit_code=3,
)

Documents = Callable[[str], bytes | None]
"""The content kept under a digest in hex; None when there is none that has it."""


def named_documents(event: JournalEvent) -> tuple[bytes, ...]:
    """The digests of the documents that an event stands for."""
    if isinstance(event, Applied):
        return event.plan, event.context
    if isinstance(event, Called):
        return (event.request,)
    if isinstance(event, Recovered):
        return event.evidence
    return (event.report,) if isinstance(event, Reported) else ()
