"""Where the problems of a fleet's files are gathered: all of them, but not millions of one kind in one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from fleetctl.config.sources import Sources
from fleetctl.diagnostics import Code, Diagnostic, Severity, Span, code, in_reading_order

MORE = code(
    "more-problems", "There are more problems than are shown", trigger="a file in which nearly everything is wrong"
)

MAX_PER_FILE = 100
"""Of one code in one file; a hostile file cannot fill memory with diagnostics."""
_MAX_PROBLEMS = 10_000
"""Errors of all codes in all files, shown or not."""

Detail = str | Callable[[], str]


class Problems:
    """A list of diagnostics, each at a place of `sources`."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._found: dict[tuple[str, Span | None, str], Diagnostic] = {}
        self._count: Counter[tuple[str, str]] = Counter()
        self._settled: set[int] = set()
        self._total = 0
        self.hopeless = False
        """So much is wrong that nothing more is taken in, and readers may stop."""

    def add(
        self, code: Code, detail: Detail, at: int, *, subject: str | None = None, severity: Severity | None = None
    ) -> None:
        """Report `code` at a place. A detail that costs something to word comes as a function."""
        if self.hopeless or at in self._settled:
            return
        if (severity or code.severity) == "error":  # a sound fleet may have any number of lints
            self._total += 1
            self.hopeless = self._total >= _MAX_PROBLEMS
        file = self.sources.source_at(at).name
        if self.has_room(code, file):
            words = detail if isinstance(detail, str) else detail()
            self.add_at(code, words, self.sources.span(at), subject=subject, severity=severity)
        else:
            self._count[(code.name, file)] += 1

    def settle(self, at: int) -> None:
        """Say no more about a place: what stands there could not be read, and everything else would follow from that."""
        if not self.hopeless:
            self._settled.add(at)

    def add_at(
        self,
        code: Code,
        detail: str,
        span: Span | None,
        *,
        subject: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report `code` at a span. The same words at the same span count once: a default is shared by many objects."""
        identity = (code.name, span, detail)
        if identity in self._found:
            return
        where = (code.name, span.file if span else "")
        self._count[where] += 1
        if self._count[where] <= MAX_PER_FILE:
            self._found[identity] = code.at(detail, span=span, subject=subject, severity=severity)

    def has_error_at(self, at: int) -> bool:
        """Whether an error is reported at a place."""
        span = self.sources.span(at)
        return any(item.span == span and item.severity == "error" for item in self._found.values())

    def has_room(self, code: Code, file: str) -> bool:
        """Whether one more problem of this code in this file would be shown."""
        return self._count[(code.name, file)] < MAX_PER_FILE

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Take in diagnostics made elsewhere."""
        for item in diagnostics:
            self._found.setdefault((item.code.name, item.span, item.detail), item)

    @property
    def any_error(self) -> bool:
        return any(item.severity == "error" for item in self._found.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """By file, line and column; the last one of a kind that was cut off says how many more there are."""
        out = in_reading_order(self._found.values())
        for (name, file), count in self._count.items():
            if count > MAX_PER_FILE:
                _say_more(out, name, file, count - MAX_PER_FILE)
        if self.hopeless:
            out.append(
                MORE.at(f"there are over {_MAX_PROBLEMS:,} problems, and the rest is not looked at; mend these first")
            )
        return tuple(out)


def _say_more(found: list[Diagnostic], name: str, file: str, more: int) -> None:
    for index in range(len(found) - 1, -1, -1):
        item = found[index]
        if item.code.name == name and (item.span.file if item.span else "") == file:
            detail = f"{item.detail} ({more} more of this kind in this file are not shown)"
            found[index] = item.code.at(detail, span=item.span, subject=item.subject, severity=item.severity)
            return
