"""An engine's settings by the names that people give them, and their values as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fleetctl.canonical import is_digest
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.codec import encode
from fleetctl.render.words import plain
from fleetctl.units import UnitError, parse_count

BAD_SETTING = code(
    "setting-value",
    "A setting does not take this value",
    trigger="`settings set` with a value that is out of range or that this version cannot honour, or a key that cannot be read",
)
_EMPTY = "-"


def setting_edit(name: str, text: str) -> Callable[[SettingsBody], SettingsBody]:
    """The change that sets `name` to what `text` says. Raises BadInput, Unreachable for key files."""
    attribute, read = SETTINGS[name]
    try:
        value = read(text)
        replace(SettingsBody(), **{attribute: value})
    except (UnitError, ValueError) as error:
        raise BadInput(BAD_SETTING.at(f"{name}: {error}")) from None

    def edit(body: SettingsBody) -> SettingsBody:
        return replace(body, **{attribute: value})

    return edit


def settings_rows(body: SettingsBody) -> list[tuple[str, str]]:
    """Names and values for people."""
    return [
        (name, plain(value, {}) if value not in ({}, []) else "none")
        for name, value in encode("settings", body).items()
    ]


def _keys(text: str) -> dict[str, str]:
    """`ID=PUB,ID=PUB`, each PUB a key file or 64 hex digits, as ids and hex digits."""
    from fleetctl.ledger.identifiers import check_identifier
    from fleetctl.ledger.keyfiles import load_public_key
    from fleetctl.ledger.keys import public_key

    out: dict[str, str] = {}
    for item in _items(text):
        id, equals, key = item.partition("=")
        if not equals or id in out:
            raise ValueError(f"`{item[:80]}`: write each key once as ID=PUB, PUB a file or 64 hex digits")
        check_identifier(id, "key id")
        out[id] = (public_key(bytes.fromhex(key)) if is_digest(key) else load_public_key(Path(key))).hex()
    return out


def _words(text: str) -> tuple[str, ...]:
    from fleetctl.ledger.identifiers import check_identifier

    return tuple(sorted({check_identifier(item, "name") for item in _items(text)}))


def _approvals(text: str) -> int:
    """No command signs plans in this version, so a plan that needs a signature could never be applied."""
    count = parse_count(text)
    if count:
        raise ValueError(
            "this version has no command that approves a plan, so every apply would be refused; leave it at 0, and review "
            "by digest: `fleetctl apply PATH --expect DIGEST`"
        )
    return count


def _items(text: str) -> list[str]:
    return [] if text == _EMPTY else text.split(",")


SETTINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "shareThresholdPercent": ("share_threshold_percent", parse_count),
    "requiredApprovals": ("required_approvals", _approvals),
    "approvers": ("approvers", _keys),
    "requiredWitnesses": ("required_witnesses", parse_count),
    "witnesses": ("witnesses", _keys),
    "coLocated": ("co_located", _words),
    "attestors": ("attestors", _words),
}
"""Canonical name to attribute and reader."""
