"""JSON documents in and out of the pure commands, bounded and strict."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

from fleetctl.cli.files import open_input
from fleetctl.cli.output import json_text, write
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput

MAX_DOCUMENT = 64 * 1024 * 1024

JSON_UNREADABLE = code(
    "json-unreadable",
    "The input is not one JSON document",
    trigger="input that is not UTF-8 JSON, repeats a key, holds NaN, is nested too deeply, or is over 64 MiB",
)

Answer = Callable[[object], dict[str, object]]


def answer_one(answer: Answer, file: str) -> int:
    """The answer to the one document in `file` (`-`: standard input). Raises BadInput, Unreachable."""
    with _opened(file) as source:
        data = source.read(MAX_DOCUMENT + 1)
    write(json_text(answer(parse_json(data))))
    return 0


def answer_lines(answer: Answer, file: str) -> int:
    """One answer for each line, an error object for a malformed one. 1 if there was any."""
    failed = 0
    with _opened(file) as source:
        for line in _lines(source):
            try:
                out: dict[str, Any] = answer(parse_json(line))
            except BadInput as error:
                failed = 1
                out = {"error": {"code": error.code, "message": error.diagnostics[0].detail}}
            write(json.dumps(out, separators=(",", ":")) + "\n")
    return failed


def parse_json(data: bytes) -> object:
    """One JSON value. Raises BadInput."""
    if len(data) > MAX_DOCUMENT:
        raise BadInput(JSON_UNREADABLE.at(f"it is over {MAX_DOCUMENT} bytes; give less at once"))
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except RecursionError:
        raise BadInput(
            JSON_UNREADABLE.at("it is nested too deeply; nothing here needs more than a few levels")
        ) from None
    except ValueError as error:
        raise BadInput(JSON_UNREADABLE.at(f"{error}; give one JSON object")) from None


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with open_input(file) as source:
        yield source


def _lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(MAX_DOCUMENT + 2):
        yield line.removesuffix(b"\n")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} comes twice")
    return out


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
