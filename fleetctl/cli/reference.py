"""What fleetctl knows of itself: every diagnostic code, every schema."""

from __future__ import annotations

import difflib
import importlib
import pkgutil

import fleetctl
from fleetctl.diagnostics import REGISTRY, Code, code
from fleetctl.errors import BadInput
from fleetctl.schemafiles import load_schema_text
from fleetctl.schemafiles import schema_names as file_names

UNKNOWN_CODE = code(
    "unknown-code",
    "No diagnostic has this code",
    trigger="`explain` is given a word that is not the code of a diagnostic",
)
UNKNOWN_SCHEMA = code(
    "unknown-schema",
    "There is no schema of this name",
    trigger="`schema` is given a kind that has none",
)
_SUFFIX = ".schema.json"


def code_named(name: str) -> Code:
    """The code of this name. Imports every module, so that each has declared its own. Raises BadInput."""
    for module in pkgutil.walk_packages(fleetctl.__path__, "fleetctl."):
        if module.name != "fleetctl.__main__":
            importlib.import_module(module.name)
    found = REGISTRY.get(name)
    if found is None:
        raise BadInput(UNKNOWN_CODE.at(f"`{name[:80]}` is no diagnostic code; {_instead(name)}"))
    return found


def _instead(name: str) -> str:
    """What to write instead: the codes of an engine's word such as `CONFLICT`, else those that look alike."""
    engine = sorted(item.name for item in REGISTRY.values() if item.engine_code == name.upper().replace("-", "_"))
    if engine:
        return f"it is the engine's word for: {', '.join(engine)}"
    close = ", ".join(difflib.get_close_matches(name.lower(), REGISTRY, n=3))
    return f"near it: {close}" if close else "docs/reference/diagnostics.md lists all"


def schema_names() -> list[str]:
    """The kinds that have a schema, sorted."""
    return [name.removesuffix(_SUFFIX) for name in file_names() if name.endswith(_SUFFIX)]


def schema_text(kind: str) -> str:
    """The schema of a kind, as the file holds it. Raises BadInput."""
    names = schema_names()
    if kind not in names:
        raise BadInput(UNKNOWN_SCHEMA.at(f"`{kind[:80]}` has no schema; there are: {', '.join(names)}"))
    return load_schema_text(f"{kind}{_SUFFIX}")
