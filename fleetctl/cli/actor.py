"""Who acts and where, as they say of themselves."""

from __future__ import annotations

import difflib
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetctl.ports import Store

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


def check_tenant(store: Store, tenant: str) -> None:
    """`--as` names a tenant of the engine: for one that nobody has, every list would be empty. Raises EngineRefused."""
    from fleetctl.capacity.refusals import NOT_FOUND, refuse
    from fleetctl.model.ids import ROOT_TENANT, ObjectId, object_name

    with store.read() as reader:
        if tenant == ROOT_TENANT or reader.object("tenant", ObjectId(tenant)) is not None:
            return
        known = [ROOT_TENANT, *(item.key for item in reader.objects() if item.kind == "tenant")]
    close = difflib.get_close_matches(tenant, known, n=3)
    meant = f"; did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else ";"
    detail = f"--as: there is no tenant `{tenant}`{meant} `fleetctl tenants list` shows them"
    refuse(NOT_FOUND, detail, object_name("tenant", tenant))
