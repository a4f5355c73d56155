"""The files of `schemas/`: inside the package when installed from a wheel, beside it in a checkout."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import fleetctl


def load_schema_text(name: str) -> str:
    """The text of a schema file, such as `fleet.schema.json`. Raises FileNotFoundError for a name that is none of them."""
    return (_folder() / name).read_text(encoding="utf-8")


def schema_names() -> list[str]:
    """The names of all schema files, sorted."""
    return sorted(item.name for item in _folder().iterdir() if item.name.endswith((".json", ".cddl")))


def _folder() -> Traversable:
    packaged = files("fleetctl") / "_schemas"
    return packaged if packaged.is_dir() else Path(fleetctl.__file__).parent.parent / "schemas"
