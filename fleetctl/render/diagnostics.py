"""Diagnostics as text, as JSON and as annotations of a GitHub workflow run."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any

from fleetctl.diagnostics import Code, Diagnostic
from fleetctl.render.document import Document, Facts, Lines, Paragraph, Tone, Verdict
from fleetctl.render.inert import inert
from fleetctl.render.words import counted


def diagnostics_document(diagnostics: Sequence[Diagnostic]) -> Document:
    """One line each, unwrapped, so that tools can find the places: `file:line:column: severity: code: detail`."""
    return [Lines([(_line(item), _tone(item)) for item in diagnostics])] if diagnostics else []


def error_text(diagnostics: Iterable[Diagnostic]) -> str:
    """The lines that an error writes on standard error."""
    return "".join(f"{inert(_line(item))}\n" for item in diagnostics)


def error_json(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """`{"result": "error", "diagnostics": […]}`."""
    return {"result": "error", "diagnostics": [item.to_json() for item in diagnostics]}


def validation_json(diagnostics: Sequence[Diagnostic], *, failed: bool, external: int) -> dict[str, Any]:
    """The answer of `validate`: `result` is `ok` or `error`, `diagnostics` has the warnings too.

    `external` counts the references to other fleets, which only a plan can resolve.
    """
    if failed:
        return error_json(diagnostics)
    return {"result": "ok", "diagnostics": [item.to_json() for item in diagnostics], "external": external}


def validation_verdict(
    diagnostics: Sequence[Diagnostic], *, failed: bool, objects: int, files: int, external: int
) -> Verdict:
    """The line under the diagnostics of `validate`; `external` as in `validation_json`."""
    errors = sum(1 for item in diagnostics if item.severity == "error")
    warnings = len(diagnostics) - errors
    noted = f", {counted(warnings, 'warning')}" if warnings else ""
    if failed:
        return Verdict(f"Not valid: {counted(errors, 'error')}{noted}", "bad")
    unresolved = f", {counted(external, 'reference')} to other fleets that a plan resolves" if external else ""
    return Verdict(f"Valid: {counted(objects, 'object')} in {counted(files, 'file')}{unresolved}{noted}", "good")


def github_annotations(diagnostics: Iterable[Diagnostic], path: str = "") -> str:
    """Workflow commands, `::error file=…,line=…,col=…,title=…::detail`, one a line.

    `path` is the folder that the diagnostics' files are relative to, as the workflow's own folder sees it.
    """
    return "".join(f"{_annotation(item, path)}\n" for item in diagnostics)


def explanation(code: Code) -> Document:
    """What a code means, for `explain`."""
    facts: list[tuple[str, str]] = [("severity", code.severity)]
    if code.severity == "error":
        facts.append(("exit", str(code.exit_code)))
    if code.engine_code is not None:
        facts.append(("engine code", code.engine_code))
    return [
        Verdict(code.name),
        Paragraph(f"{code.summary}."),
        Paragraph(f"Reported when: {code.trigger}"),
        Facts(facts),
    ]


def explanation_json(code: Code) -> dict[str, Any]:
    out: dict[str, Any] = {
        "result": "ok",
        "code": code.name,
        "summary": code.summary,
        "trigger": code.trigger,
        "severity": code.severity,
    }
    if code.severity == "error":
        out["exit"] = code.exit_code
    if code.engine_code is not None:
        out["engineCode"] = code.engine_code
    return out


def _line(item: Diagnostic) -> str:
    place = f"{item.span}: " if item.span is not None else ""
    told = item.span is not None or not item.subject or _names(item.detail, item.subject)
    subject = "" if told else f" [{item.subject}]"
    return f"{place}{item.severity}: {item.code.name}: {item.detail}{subject}"


def _names(detail: str, subject: str) -> bool:
    """Whether a detail says which object it is about, as kind/key or by the key alone."""
    key = subject.partition("/")[2]
    return subject in detail or any(word.strip("`.,;:()") == key for word in detail.split())


def _file(file: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(path, file)) if path else file


def _tone(item: Diagnostic) -> Tone:
    return "bad" if item.severity == "error" else "warn"


def _annotation(item: Diagnostic, path: str) -> str:
    properties = []
    if item.span is not None:
        properties += [
            f"file={_property(_file(item.span.file, path))}",
            f"line={item.span.line}",
            f"col={item.span.column}",
        ]
    properties.append(f"title={_property(item.code.name)}")
    return f"::{item.severity} {','.join(properties)}::{_data(f'{item.summary}: {item.detail}')}"


def _data(text: str) -> str:
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
