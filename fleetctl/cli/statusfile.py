"""`--status-file`: the result as JSON in a file, for pipelines that lose exit codes. Errors are results too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetctl.cli.failures import translated
from fleetctl.cli.files import write_whole
from fleetctl.cli.output import json_text
from fleetctl.errors import FleetctlError
from fleetctl.render.diagnostics import error_json


@dataclass(slots=True)
class Status:
    """What the file will say."""

    result: dict[str, Any] | None = None


@contextmanager
def with_status_file(path: Path | None) -> Iterator[Status]:
    """Write `result` at the end of the context, or the error that ends it. Raises Unreachable."""
    status = Status()
    try:
        yield status
    except BaseException as error:
        known: FleetctlError = translated(error)
        # An error may carry its own result: what was committed is told even when something else is missing.
        _write(path, error_json(known.diagnostics) | (status.result or {}) | {"exit": known.exit_code})
        raise
    if status.result is not None:
        _write(path, status.result)


def _write(path: Path | None, data: dict[str, Any]) -> None:
    if path is not None:
        write_whole(path, json_text(data).encode("ascii"))
