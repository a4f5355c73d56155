"""JSON documents in and out of the pure commands, bounded and strict."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

from fleetctl.cli.files import open_input
from fleetctl.cli.output import json_text, write
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.units import shown

MAX_DOCUMENT = 64 * 1024 * 1024

JSON_UNREADABLE = code(
    "json-unreadable",
    "The input is not one JSON document",
    trigger="input that is not UTF-8 JSON, repeats a key, holds NaN or half a surrogate pair, is nested too deeply, or is over 64 MiB",
)

_LONGEST = MAX_DOCUMENT + 2
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape of half a surrogate pair, with or without its other half."""


class _Refused(ValueError):
    """JSON that the standard reader takes and nothing here does."""


Answer = Callable[[object], dict[str, object]]


def answer_one(answer: Answer, file: str) -> int:
    """The answer to the one document in `file` (`-`: standard input). Raises BadInput, Unreachable."""
    with _opened(file) as source:
        data = source.read(MAX_DOCUMENT + 1)
    write(json_text(answer(parse_json(data, where="" if file == "-" else file))))
    return 0


def answer_lines(answer: Answer, file: str) -> int:
    """One answer for each line, an error object for a malformed one. 1 if there was any. Ends early when nobody reads on."""
    failed = 0
    with _opened(file) as source:
        for line in _lines(source):
            try:
                out: dict[str, Any] = answer(parse_json(line))
            except BadInput as error:
                failed = 1
                out = {"error": {"code": error.code, "message": error.diagnostics[0].detail}}
            if not write(json.dumps(out, separators=(",", ":")) + "\n"):
                break
    return failed


def parse_json(data: bytes, *, where: str = "") -> object:
    """One JSON value. `where` is the file it is from, for the refusal. Raises BadInput."""
    if len(data) > MAX_DOCUMENT:
        raise _unreadable(where, f"it is over {MAX_DOCUMENT} bytes; give less at once")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError:
        raise _unreadable(where, "it is nested too deeply; nothing here needs more than a few levels") from None
    except ValueError as error:
        raise _unreadable(where, f"{_why(error, data)}; give one JSON object in UTF-8") from None


def _unreadable(where: str, detail: str) -> BadInput:
    return BadInput(JSON_UNREADABLE.at(f"{where}: {detail}" if where else detail))


def _why(error: ValueError, data: bytes) -> str:
    """What is wrong with a document that the JSON reader refused, in words that are not the reader's own."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "it escapes half of a surrogate pair, which is no text"
    if data.startswith(codecs.BOM_UTF8):
        return "it begins with a byte order mark"
    if isinstance(error, json.JSONDecodeError | _Refused):
        return str(error)
    return "it holds a number of more digits than any figure has"


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with open_input(file) as source:
        yield source


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends. One that is too long comes cut, and is still one line."""
    while line := source.readline(_LONGEST):
        yield line.removesuffix(b"\n")
        while len(line) == _LONGEST and not line.endswith(b"\n"):
            line = source.readline(_LONGEST)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        name = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise _Refused(f"the key {shown(name)} comes twice")
    return out


def _no_constant(text: str) -> NoReturn:
    raise _Refused(f"{text} is no JSON number")
