"""libyaml's complaints, said so that a person knows what to write instead."""

from __future__ import annotations

from typing import Any

from fleetctl.config.problems import Problems
from fleetctl.config.sources import Source
from fleetctl.diagnostics import Code, code

SYNTAX = code("yaml-syntax", "A file is not well-formed YAML", trigger="anything that the YAML parser refuses")

TOO_DEEP = code("nesting-too-deep", "Values are nested too deep", trigger="more than 64 levels of nesting")

MAX_DEPTH = 64

# The first entry whose key is part of libyaml's problem text wins.
_MEND: tuple[tuple[str, str], ...] = (
    ("mapping values are not allowed", "quote the text if it holds `: `, or check the indentation"),
    ("could not find expected ':'", "a key needs `: ` after it, on the same line"),
    ("tab character", "indent with spaces"),
    ("found character that cannot start any token", "quote text that begins with `@`, a backquote, `%` or a tab"),
    ("found unexpected end of stream", "a quote or bracket that was opened is never closed"),
    ("found unexpected document indicator", "a quote that was opened is not closed before `---` or `...`"),
    ("did not find expected ',' or '}'", "separate entries with commas and close `{` with `}`"),
    ("did not find expected ',' or ']'", "separate items with commas and close `[` with `]`"),
    ("did not find expected key", "check the indentation: keys of one mapping begin in one column"),
    ("did not find expected '-' indicator", "check the indentation: items of one list begin in one column with `- `"),
    ("block sequence entries are not allowed", "begin a list on a line of its own, or write it as [a, b]"),
    ("block mapping entries are not allowed", "begin a mapping on a line of its own, or write it as {a: b}"),
    ("mapping keys are not allowed", "a key cannot begin here; check the indentation"),
    ("did not find expected <document start>", "separate documents with a line `---`, or check the indentation"),
    ("unknown escape character", "write a backslash as two, or use single quotes"),
    ("escape", "write the escape with all its digits, or use single quotes"),
    ("hexdecimal", "write the escape with all its digits, or use single quotes"),
    ("did not find expected alphabetic or numeric character", "quote text that begins with `&` or `*`"),
    ("undefined tag handle", "remove the tag; tags are not read"),
    ("while scanning a tag", "remove the tag; tags are not read"),
    ("directive", "remove the line that begins with `%`"),
    ("incompatible YAML document", "remove the %YAML line"),
    ("indentation indicator", "write `|` or `>` alone and indent the text below it"),
    ("did not find expected node content", "write a value here"),
)
_MEND_ELSE = "check the indentation, the quotes and the brackets around this place"


def explain_syntax_error(error: Any, source: Source, problems: Problems) -> tuple[int, Code, str]:
    """The place, code and detail of an exception of PyYAML's C parser (`MarkedYAMLError` or `ReaderError`)."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = str(getattr(error, "context", None) or "")
    begun = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or begun
    at = source.base + (mark.index if mark is not None else 0)
    if "exceeded maximum nesting depth" in problem:  # libyaml looks ahead, and meets its own bound before ours
        return at, TOO_DEEP, f"brackets or lists are nested without end; nest at most {MAX_DEPTH} levels"
    where = ""
    if begun is not None and mark is not None and begun.index != mark.index:
        span = problems.sources.span(source.base + begun.index)
        where = f" (begun at {span.line}:{span.column})"
    said = f"{context}{where}, {problem}" if context else problem
    return at, SYNTAX, f"{said}; {_mend(f'{context}, {problem}')}"


def _mend(said: str) -> str:
    for part, mend in _MEND:
        if part in said:
            return mend
    return _MEND_ELSE
