"""The files of `schemas/`: inside the package when installed from a wheel, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

import fleetctl


def load_schema_text(name: str) -> str:
    """The text of a schema file, such as `fleet.schema.json`. Raises FileNotFoundError for a name that is none of them."""
    return (_folder() / name).read_text(encoding="utf-8")


def schema_names() -> list[str]:
    """The names of all schema files, sorted."""
    return sorted(item.name for item in _folder().iterdir() if item.name.endswith((".json", ".cddl")))


def _folder() -> Path:
    # Both are real folders; `importlib.resources` would only take longer to load than a schema to read.
    package = Path(fleetctl.__file__).parent
    packaged = package / "_schemas"
    return packaged if packaged.is_dir() else package.parent / "schemas"
