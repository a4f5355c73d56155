"""Who acted, as the journal has it, and what that is worth."""

from __future__ import annotations

_LOCAL = "local:"


def is_self_declared(actor: str) -> bool:
    """Whether nobody but the actor says who that was: an embedded engine authenticates nobody (cli.md, "Settings")."""
    return actor.startswith(_LOCAL)


def actor_words(actor: str) -> str:
    """The actor for people, marked where it is self-declared."""
    return f"{actor} (self-declared)" if is_self_declared(actor) else actor
