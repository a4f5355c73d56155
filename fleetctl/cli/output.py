"""Results to standard output in the form that was asked for, and everything else to standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from fleetctl.cli.command import Settings
from fleetctl.diagnostics import Diagnostic, code
from fleetctl.errors import Unreachable
from fleetctl.render.diagnostics import error_text
from fleetctl.render.document import Document
from fleetctl.render.text import DEFAULT_WIDTH, to_text

OUTPUT_UNWRITABLE = code(
    "output-unwritable",
    "The result cannot be written",
    trigger="standard output is closed, or the disk that it goes to is full",
)


def emit(settings: Settings, document: Callable[[], Document], data: Callable[[], dict[str, Any]]) -> None:
    """Write a result: `document` for people, `data` for machines. Only the one that is wanted is made."""
    if settings.format == "json":
        write(json_text(data()))
        return
    stream = sys.stdout
    write(page(settings, document(), stream))


def page(settings: Settings, document: Document, stream: TextIO) -> str:
    """A document as text for a stream. Wide tables are folded for eyes alone: through a pipe a row stays a line."""
    seen = stream.isatty() or settings.width is not None
    return to_text(document, columns=columns_of(settings, stream), colour=coloured(stream), fold=seen)


def json_text(data: dict[str, Any]) -> str:
    """One JSON document, ASCII only: nothing in it can do anything to a terminal."""
    return json.dumps(data, indent=2) + "\n"


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Diagnostics that do not stop the command, on standard error."""
    note(error_text(diagnostics))


def note(text: str) -> None:
    """Something that is not the result, on standard error. Nobody listening is no reason to fail."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def write(text: str) -> bool:
    """To standard output, all of it. False when the reader went away and wants no more; raises Unreachable for other failures."""
    return _write(lambda: sys.stdout.write(text))


def write_bytes(data: bytes) -> None:
    """As `write`, for a result that is no text."""
    _write(lambda: sys.stdout.buffer.write(data))


def _write(out: Callable[[], int]) -> bool:
    try:
        out()
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        if (refused := unwritten(error)) is not None:
            raise refused from None
        return False
    return True


def unwritten(error: OSError | ValueError) -> Unreachable | None:
    """What a failure to write to standard output means: nothing, when the reader went away."""
    _discard(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return None
    return Unreachable(
        OUTPUT_UNWRITABLE.at(f"standard output: {error}; what the command did stands, its result was not shown")
    )


def columns_of(settings: Settings, stream: TextIO) -> int:
    """`--width`, else the terminal's width, else 80."""
    if settings.width is not None:
        return settings.width
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if stream.isatty() else DEFAULT_WIDTH


def coloured(stream: TextIO) -> bool:
    """Colour on a terminal, unless `NO_COLOR` is set or the terminal is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _discard(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush is quiet."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
