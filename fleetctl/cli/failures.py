"""The one place where an exception becomes words and an exit code."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence

import click

from fleetctl.cli.output import json_text, note, write
from fleetctl.diagnostics import code
from fleetctl.errors import FleetctlError, Interrupted, Unreachable, Usage
from fleetctl.render.diagnostics import error_json, error_text

USAGE = code(
    "usage",
    "The command line is wrong",
    trigger="an unknown command or option, a missing argument, or a value that does not fit its option",
    exit_code=64,
)
INTERRUPTED = code(
    "interrupted",
    "Stopped before anything was committed",
    trigger="the command was interrupted from the keyboard",
    exit_code=130,
)
INTERNAL = code(
    "internal-error",
    "fleetctl failed in a way that it should not",
    trigger="an error that no rule foresees; `--debug` adds a traceback",
)
SYSTEM_REFUSED = code(
    "system-refused",
    "The operating system refused something",
    trigger="a path too long for the disk, too many open files, or another refusal that no other code names",
)
OUT_OF_MEMORY = code(
    "out-of-memory",
    "There is not enough memory",
    trigger="the machine, or a limit set on the process, has no more memory for the command",
)

FOLDER_GONE = code(
    "folder-gone",
    "The current folder was removed",
    trigger="the folder that the command runs in does not exist any more",
)

_NO_NUMBER = re.compile(r"is not a valid integer(?: range)?")


def report(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Say what happened and return the exit code: JSON on standard output, text on standard error."""
    known = translated(error)
    if debug:
        note("".join(traceback.format_exception(error)))
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        note(f"{error.format_message()}\n")
    elif as_json:
        try:
            write(json_text(error_json(known.diagnostics)))
        except Unreachable as unwritable:
            note(error_text(unwritable.diagnostics))
    else:
        note(error_text(known.diagnostics))
    return known.exit_code


def translated(error: BaseException) -> FleetctlError:
    """Our error for anything that a command may raise."""
    if isinstance(error, FleetctlError):
        return error
    if isinstance(error, click.ClickException):
        return Usage(USAGE.at(_usage_text(error)))
    if isinstance(error, (KeyboardInterrupt, EOFError, click.Abort)):
        return Interrupted(INTERRUPTED.at("nothing was done; run the command again"))
    if isinstance(error, FileNotFoundError) and _is_astray():
        return Unreachable(FOLDER_GONE.at("change into a folder that exists and run the command again"))
    if isinstance(error, MemoryError):
        return Unreachable(OUT_OF_MEMORY.at("nothing was committed; give the process more memory"))
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)[:200]}: " if isinstance(error.filename, (str, bytes)) else ""
        return Unreachable(SYSTEM_REFUSED.at(f"{where}{error.strerror}; check the path, permissions and limits"))
    text = " ".join(str(error).split())[:300]
    return Unreachable(
        INTERNAL.at(
            f"{type(error).__name__}{': ' if text else ''}{text}; this is a defect of fleetctl: report it with the "
            "output of the same command and --debug"
        )
    )


def _is_astray() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def wants(name: str, arguments: Sequence[str], environment: str | None) -> str | None:
    """The value of an option before anything is parsed, so that even usage errors are said in the right form."""
    found = environment
    for index, word in enumerate(arguments):
        if word == "--":
            break
        if word == name:
            found = arguments[index + 1] if index + 1 < len(arguments) else None
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def _usage_text(error: click.ClickException) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return "a command is missing; `--help` lists them"
    text = _NO_NUMBER.sub("is not a whole number", " ".join(error.format_message().split())).rstrip(".")
    ctx = getattr(error, "ctx", None)
    return f"{text}; see `{ctx.command_path} --help`" if ctx is not None else text


def prepare_streams() -> None:
    """What standard output cannot encode is written out rather than refused, and no file takes a closed stream's number.

    A closed standard output becomes one that cannot be written to, so that a lost result is said and not guessed.
    """
    if sys.stdin is None:
        _open_null(0, os.O_RDONLY)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        _open_null(1, os.O_RDONLY)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        _open_null(2, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _open_null(number: int, mode: int) -> None:
    handle = os.open(os.devnull, mode)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
