"""Who acted, as the journal has it, and what that is worth."""

from __future__ import annotations

_LOCAL = "local:"
NOBODY_DID = "nobody did it through the engine"


def is_self_declared(actor: str) -> bool:
    """Whether nobody but the actor says who that was: an embedded engine authenticates nobody (cli.md, "Settings")."""
    return actor.startswith(_LOCAL)


def actor_words(actor: str) -> str:
    """The actor for people, marked where it is self-declared."""
    return f"{actor} (self-declared)" if is_self_declared(actor) else actor


def mover_words(actor: str, when: str, entry: int) -> str:
    """Who moved something, when and where that is journalled."""
    return f"{actor_words(actor)} at {when}, journal entry {entry}"
