"""What the engine refuses, in the seed's codes. Every rule of the capacity core raises through here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from fleetctl.diagnostics import Code, Diagnostic, code
from fleetctl.errors import EngineRefused, SafetyRefused

NOT_FOUND = code(
    "not-found",
    "The object does not exist for this tenant",
    trigger="a command names an object that does not exist, or that the acting tenant may not see",
    engine_code="NOT_FOUND",
)
CONFLICT = code(
    "conflict",
    "The key is taken by an object that differs where it may not change",
    trigger="an immutable field changes, or an idempotency key comes again with another site, class, sharing, agent or provider account",
    engine_code="CONFLICT",
)
KEY_ARCHIVED = code(
    "key-archived",
    "The key belongs to an archived pool",
    trigger="a pool is declared under the key of a pool that was archived",
    engine_code="CONFLICT",
)
INVALID_INPUT = code(
    "invalid-input",
    "The object holds a value that the engine does not take",
    trigger="an object is created or updated with a value outside its rules",
    engine_code="INVALID_INPUT",
)
INVALID_POLICY = code(
    "invalid-policy",
    "The pool policy holds a value that the engine does not take",
    trigger="a pool policy validator fails",
    engine_code="INVALID_INPUT",
)
PROVIDER_ACCOUNT = code(
    "provider-account",
    "Class, agent and provider account do not go together",
    trigger="a provider pool without account or with an agent, or another class with an account",
    engine_code="INVALID_INPUT",
)
NOT_OFFERABLE = code(
    "not-offerable",
    "The pool cannot be offered this way",
    trigger="the offering validator refuses: timeslice or mps, tenant-owned nodes, singleTenant, archived",
    engine_code="INVALID_STATE",
)
INVALID_STATE = code(
    "invalid-state",
    "The object's state does not allow this",
    trigger="a command on an archived, still used or still referenced object",
    engine_code="INVALID_STATE",
)
ACCESS_DENIED = code(
    "access-denied",
    "The acting tenant or fleet may not do this",
    trigger="a fleet or tenant touches what belongs to another one",
    engine_code="ACCESS_DENIED",
)
PROTECTED = code(
    "protected",
    "The object is protected",
    trigger="a protected object would be removed; it takes two applied plans, the first one taking `protect` off",
    exit_code=3,
)


def refuse(kind: Code, detail: str, subject: str) -> NoReturn:
    """Raise EngineRefused with one diagnostic about `subject` (`kind/key`)."""
    raise EngineRefused(kind.at(detail, subject=subject))


def refuse_protected(subject: str) -> NoReturn:
    """Raise SafetyRefused: protection cannot be accepted away."""
    raise SafetyRefused(
        PROTECTED.at(
            f"{subject} is protected and cannot be removed; apply its entry with `protect: false` first, and remove it in a second plan",
            subject=subject,
        )
    )


def refuse_together(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise EngineRefused with all of them, SafetyRefused when nothing but safety rules refuse; return when there are none."""
    found = list(diagnostics)
    if found and all(item.code.exit_code == SafetyRefused.exit_code for item in found):
        raise SafetyRefused(found)
    if found:
        raise EngineRefused(found)


def refuse_all(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise EngineRefused with all errors among `diagnostics`; return when there are none."""
    errors = [item for item in diagnostics if item.severity == "error"]
    if errors:
        raise EngineRefused(errors)
