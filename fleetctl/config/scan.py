"""One look at a file's bytes before the YAML parser sees them.

libyaml itself accepts UTF-16, U+2028 and tabs in places, and its events carry no comments; both are settled here.
The clean case costs a few passes of compiled code; places are worked out only where something matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from fleetctl.config.credentials import report_secrets
from fleetctl.config.problems import Problems
from fleetctl.config.sources import Source
from fleetctl.diagnostics import Code, code
from fleetctl.frozen import dataclass
from fleetctl.model.texts import FORBIDDEN, SEPARATORS, SHAPELESS

NOT_UTF8 = code("invalid-utf8", "A file is not valid UTF-8", trigger="bytes that are not UTF-8")
UTF16 = code("utf16-file", "A file is UTF-16 or UTF-32", trigger="a UTF-16 or UTF-32 byte order mark at the start")
STRAY_BOM = code("stray-bom", "A byte order mark stands inside a file", trigger="U+FEFF elsewhere than at byte 0")
NUL = code("nul-character", "A file holds a NUL character", trigger="U+0000 in the bytes or as an escape")
CONTROL = code(
    "control-character",
    "A file holds a control character",
    trigger="C0 or C1 controls other than tab and line ends, a carriage return without line feed, noncharacters",
)
LINE_SEPARATOR = code(
    "line-separator",
    "A file holds an unusual line end",
    trigger="U+0085, U+2028 or U+2029, which readers disagree about",
)
INVISIBLE = code(
    "invisible-character",
    "A file holds invisible or text-reordering characters",
    trigger="bidirectional controls, zero-width and other characters without a shape of their own",
)
TAB_INDENT = code(
    "tab-indentation", "A line is indented with a tab", trigger="a tab before the first character of a line"
)
TAG_DIRECTIVE = code("yaml-directive", "A file has a %TAG directive", trigger="a line that begins with %TAG")
BAD_ALLOW = code(
    "allow-without-reason",
    "A comment that silences a lint is incomplete",
    trigger="`# fleetctl: …` that is not `# fleetctl: allow CODE reason`",
    severity="warning",
)

_KINDS: tuple[tuple[re.Pattern[str], Code, str], ...] = (
    (re.compile(r"\x00"), NUL, "remove it; the file may not be text"),
    (re.compile(r"\ufeff"), STRAY_BOM, "remove it; a byte order mark may only be the first character of a file"),
    (re.compile(rf"[{SEPARATORS}]"), LINE_SEPARATOR, "end lines with LF or CRLF"),
    (re.compile(rf"[{SHAPELESS}]"), INVISIBLE, "remove it; what is reviewed must be what is read"),
    (re.compile(r"\r"), CONTROL, "end lines with LF or CRLF"),
)
_CLEAN_ASCII = bytes({9, 10, 13, *range(32, 127)})
_INDENTING_TAB = re.compile(r"^ *(\t)", re.MULTILINE)
_TAG = re.compile(r"^%TAG", re.MULTILINE)
_ALLOW = re.compile(r"^[ \t]*(#+[ \t]*fleetctl:[ \t]*([^\r\n]*))(?=\r?$)", re.MULTILINE)
_ALLOW_BODY = re.compile(r"allow[ \t]+([a-z0-9-]+)[ \t]+(\S.*)", re.ASCII)
_BLANK_OR_COMMENT = re.compile(r"[ \t]*(#[^\n]*)?\r?(\n|\Z)")
_MAX_MATCHES = 1_000
"""Looked at per file; more of them only make the reader slow."""
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A lint silenced by a comment: `code` on the line that begins at or before `line_at`, which `at` is above."""

    code: str
    reason: str
    at: int
    line_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What the look at the bytes found. `parse` is false when the parser would only repeat what is already reported."""

    parse: bool
    tabs: bool = False
    """Whether a tab is among the first characters of some line; inside block scalars it is text."""
    escapes: bool = False
    """Whether there is a backslash, so that a scalar may hold characters that the file does not."""
    allowed: tuple[Allowed, ...] = ()


def scan(source: Source, problems: Problems) -> Scanned:
    """Look at one file; what is refused goes to `problems`."""
    content = source.content
    if source.data.startswith(_UTF16_MARKS):
        problems.add(UTF16, "the file is UTF-16 or UTF-32; save it as UTF-8", source.base)
        return Scanned(parse=False)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        at = source.base + len(content[: error.start].decode("utf-8"))
        detail = f"byte 0x{content[error.start]:02x} is not UTF-8 here ({error.reason}); save the file as UTF-8"
        problems.add(NOT_UTF8, detail, at)
        return Scanned(parse=False)
    parse = _is_clean(content) or _report_characters(source, text, problems)
    if "%TAG" in text and (match := _TAG.search(text)):
        detail = "tags are not read, so a %TAG line has no use; remove it"
        problems.add(TAG_DIRECTIVE, detail, source.base + match.start())
        parse = False  # libyaml takes quadratic time over many of them
    report_secrets(text, content, source.base, problems)
    tabs = "\t" in text and _INDENTING_TAB.search(text) is not None
    allowed = _allowed(source, text, problems) if "fleetctl:" in text else ()
    return Scanned(parse=parse, tabs=tabs, escapes="\\" in text, allowed=allowed)


def indenting_tabs(source: Source) -> Iterator[int]:
    """The places of tabs among the first characters of lines, in order."""
    return (source.base + match.start(1) for match in _INDENTING_TAB.finditer(source.text()))


def report_character(char: str, at: int, problems: Problems, *, escaped: bool = False) -> Code:
    """Report one character that FORBIDDEN matched; returns the code it was reported under."""
    how = "is written as an escape here" if escaped else "stands here"
    found, mend = next(((item, mend) for pattern, item, mend in _KINDS if pattern.match(char)), (CONTROL, "remove it"))
    problems.add(found, f"U+{ord(char):04X} {how}; {mend}", at)
    return found


def _is_clean(content: bytes) -> bool:
    """Whether the content is ASCII text without anything that FORBIDDEN matches: the common case, made cheap."""
    if content.translate(None, _CLEAN_ASCII):
        return False
    return b"\r" not in content or content.count(b"\r") == content.count(b"\r\n")


def _report_characters(source: Source, text: str, problems: Problems) -> bool:
    """Report forbidden characters; true when all of them are ones that the parser reads as plain text."""
    readable = True
    count = 0
    for match in islice(FORBIDDEN.finditer(text), _MAX_MATCHES):
        readable &= report_character(match[0], source.base + match.start(), problems) is INVISIBLE
        count += 1
    return readable and count < _MAX_MATCHES


def _allowed(source: Source, text: str, problems: Problems) -> tuple[Allowed, ...]:
    out: list[Allowed] = []
    below, line_at = len(text) + 1, len(text)
    for match in reversed(list(islice(_ALLOW.finditer(text), _MAX_MATCHES))):
        at = source.base + match.start(1)
        # Comments that stand one above the other are above the same line, which the lowest of them has found.
        position = match.end()
        while position < below and (blank := _BLANK_OR_COMMENT.match(text, position)) and blank.end() > position:
            position = blank.end()
        if position < below:
            line_at = position
        below = match.start()
        body = _ALLOW_BODY.fullmatch(match[2].rstrip())
        if body is None:
            problems.add(BAD_ALLOW, "write `# fleetctl: allow CODE reason`, with a reason for the reviewer", at)
        else:
            out.append(Allowed(code=body[1], reason=body[2], at=at, line_at=source.base + line_at))
    return tuple(reversed(out))
