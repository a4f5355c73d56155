"""Who acts and where, as they say of themselves."""

from __future__ import annotations

import os
import socket

_MAX = 128


def local_actor() -> str:
    """`local:<user>@<host>`: self-declared, as anybody with the steward's key can declare anything."""
    return f"local:{_user()}@{host_name()}"


def host_name() -> str:
    """The machine's name, in printable ASCII."""
    try:
        found = socket.gethostname()
    except OSError:
        found = ""
    return _plain(found) or "unknown-host"


def _user() -> str:
    import pwd

    try:
        found = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        found = ""
    return _plain(found) or f"uid-{os.getuid()}"


def _plain(text: str) -> str:
    return "".join(letter if letter.isascii() and letter.isprintable() and letter != " " else "-" for letter in text)[
        :_MAX
    ]
