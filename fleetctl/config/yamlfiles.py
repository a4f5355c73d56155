"""YAML as text that keeps its comments: formatting, and changing single fields. The only user of ruamel.yaml.

Nothing written here is believed: text that would read otherwise than before is refused.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from fleetctl.config.filing import Entry, Number
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput

if TYPE_CHECKING:
    from ruamel.yaml import YAML

FORMAT_UNSAFE = code(
    "fmt-unsafe",
    "Formatting would change what the file says",
    trigger="a file whose formatted text would read otherwise or lose a comment; it is left as it is",
)
_COMMENT = re.compile(r"(?:^|\s)(#.*)$")
_OTHER = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|[-+]?(?:[0-9][0-9_,:.]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|\.inf|0[xob][0-9a-f]+)|\.nan|[0-9-]+(?:[Tt ].*)?",
    re.IGNORECASE,
)
"""Texts that some reader of YAML takes for something else than text."""
_MARKER = re.compile(r"---\s*(?:#.*)?|\.\.\.\s*")
_WIDTH = 140
_LONGEST_LINE = 70_000
"""Room for the longest description."""
_LONG = re.compile(r"( *)([A-Za-z0-9_-]+): ([{\[].*)")


def formatted(text: str, name: str) -> str:
    """A file's text in one form: indentation, spacing, line ends. Comments, order and flow style stay.

    Raises BadInput when the result would not say the same.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    _check_lines(lines, name)
    with _refusals(name):
        made = "\n".join(part if is_marker else _formatted_document(part) for part, is_marker in _documents(lines))
    made = f"{made.strip(chr(10))}\n"
    _check_same(text, made, name)
    return made


def _check_lines(lines: Sequence[str], name: str) -> None:
    """ruamel.yaml takes quadratic time over one long comment."""
    for number, line in enumerate(lines, start=1):
        if len(line) > _LONGEST_LINE:
            raise BadInput(FORMAT_UNSAFE.at(f"line {number} of {name} has over {_LONGEST_LINE} characters; break it"))


def _documents(lines: Sequence[str]) -> list[tuple[str, bool]]:
    """Documents and the marker lines between them, as (text, whether it is a marker). No content begins with `---`."""
    parts: list[tuple[str, bool]] = []
    current: list[str] = []
    for line in lines:
        if _MARKER.fullmatch(line):
            parts += [("\n".join(current), False)] if current else []
            parts.append((line.rstrip(), True))
            current = []
        else:
            current.append(line)
    return [*parts, ("\n".join(current), False)] if current else parts


def _formatted_document(text: str) -> str:
    """One document; comments alone stay as they are."""
    writer = _writer()
    document = writer.load(text)
    if document is None:
        return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    out = io.StringIO()
    writer.dump(document, out)
    return "\n".join(map(_on_two_lines, out.getvalue().strip("\n").split("\n")))


def written(entries: Iterable[Entry], header: Mapping[str, str]) -> str:
    """A new file of these entries, sections in the order in which they come."""
    data: dict[str, Any] = _as_texts(header)
    for entry in entries:
        section = data.setdefault(entry.section, {})
        section[_free(section, entry.name)] = _as_texts(entry.fields)
    out = io.StringIO()
    _writer().dump(data, out)
    return out.getvalue()


def with_fields(text: str, name: str, path: Sequence[str], fields: Mapping[str, Any]) -> str:
    """The text with fields of the mapping at `path` set (None: taken out); every other line stays as it is written.

    Raises BadInput when nothing is at the path.
    """
    writer = _writer()
    as_written, changed = io.StringIO(), io.StringIO()
    _check_lines(text.split("\n"), name)
    with _refusals(name):
        documents = list(writer.load_all(text))
        writer.dump_all(documents, as_written)
    for document in documents:
        found: Any = document
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict):
            _set(found, fields)
            break
    else:
        raise BadInput(FORMAT_UNSAFE.at(f"{name} does not hold {'.'.join(path)} as a mapping; change it by hand"))
    writer.dump_all(documents, changed)
    return _carried(as_written.getvalue(), changed.getvalue(), text)


def _carried(base: str, changed: str, text: str) -> str:
    """What changed from `base` to `changed`, done to `text`, which differs from `base` in form alone."""
    old, new, own = (part.splitlines(keepends=True) for part in (base, changed, text))
    blocks = SequenceMatcher(None, old, own, autojunk=False).get_matching_blocks()
    place = {block.a + i: block.b + i for block in blocks for i in range(block.size)}
    out, done = list[str](), 0
    for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        begin, stop = _own_lines(place, start, end, len(old), len(own))
        out += own[done:begin] + new[first:last]
        done = stop
    return "".join(out + own[done:])


def _own_lines(place: Mapping[int, int], start: int, end: int, old: int, own: int) -> tuple[int, int]:
    """The lines of the text that stand for lines of the base: between the nearest ones that are the same in both."""
    if start < end and all(line in place for line in range(start, end)):
        return place[start], place[end - 1] + 1
    before = next((place[line] + 1 for line in range(start - 1, -1, -1) if line in place), 0)
    return before, next((place[line] for line in range(end, old) if line in place), own)


def _set(mapping: Any, fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        if value is None:
            mapping.pop(field, None)
        else:
            mapping[field] = _as_texts(value)


def _free(section: Mapping[str, Any], name: str) -> str:
    """The name, with a number where it is taken."""
    if name not in section:
        return name
    return next(made for number in range(2, len(section) + 3) if (made := f"{name[:58]}-{number}") not in section)


def _writer() -> YAML:
    """Reads and writes plain scalars as the texts they are: what they mean is for our own reader to say."""
    from ruamel.yaml import YAML
    from ruamel.yaml.resolver import VersionedResolver

    class Resolver(VersionedResolver):
        """Resolves nothing."""

        @property
        def versioned_resolver(self) -> dict[Any, Any]:
            return {}

    writer = YAML()
    writer.Resolver = Resolver
    writer.preserve_quotes = True
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.width = 1_000_000  # a text that somebody wrote on one line stays on one
    writer.indent(mapping=2, sequence=4, offset=2)
    return writer


def _as_texts(value: Any) -> Any:
    """A value with its scalars as the texts that stand for them, in quotes where a text could be read as something else."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, Mapping):
        return {name: _as_texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_texts(item) for item in value]
    if isinstance(value, Number) or not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return DoubleQuotedScalarString(value) if not value or _OTHER.fullmatch(value) else value


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """What the library does not read or write leaves as our refusal."""
    from ruamel.yaml.error import YAMLError

    try:
        yield
    except (YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise BadInput(FORMAT_UNSAFE.at(f"{name} cannot be written again ({why}); it is left as it is")) from None


def _on_two_lines(line: str) -> str:
    """A long flow value under its key instead of beside it, as people write them."""
    found = _LONG.fullmatch(line) if len(line) > _WIDTH else None
    return line if found is None else f"{found[1]}{found[2]}:\n{found[1]}  {found[3]}"


def _check_same(before: str, after: str, name: str) -> None:
    if _events(before) != _events(after):
        raise BadInput(FORMAT_UNSAFE.at(f"{name} would read otherwise; it is left as it is"))
    if _comments(before) != _comments(after):
        raise BadInput(FORMAT_UNSAFE.at(f"{name} would lose or change a comment; it is left as it is"))


def _events(text: str) -> list[tuple[str, Any, Any, Any]]:
    """What a file says, without how: events with anchors, values and plainness."""
    import yaml

    out = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        value, anchor = getattr(event, "value", None), getattr(event, "anchor", None)
        plain = getattr(event, "implicit", None) if isinstance(event, yaml.ScalarEvent) else None
        out.append((type(event).__name__, anchor, value, plain))
    return out


def _comments(text: str) -> Counter[str]:
    return Counter(found[1].rstrip() for line in text.splitlines() if (found := _COMMENT.search(line)))
