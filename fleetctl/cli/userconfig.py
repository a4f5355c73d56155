"""The user's `config.toml`: one table for each engine, written by `init`. It is the user's own and is believed.

["eng_…"]
state = "sqlite:/…/state.db"
steward = "root-steward"
steward_key = "/…/steward.pem"
steward_public_key = "/…/steward.pub.pem"
witnesses = [{id = "…", url = "http://…", public_key = "/…/witness.pub.pem"}]
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from fleetctl.cli.files import PATH_UNWRITABLE, read_bytes, write_whole
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, Unreachable
from fleetctl.frozen import dataclass

MAX_CONFIG = 1024 * 1024

CONFIG_UNREADABLE = code(
    "config-unreadable",
    "The user's configuration cannot be used",
    trigger="`config.toml` in the user's configuration folder is not TOML, or a table in it lacks a field or has an unknown one",
)
CONFIG_PERMISSIONS = code(
    "config-permissions",
    "Others can write the user's configuration",
    trigger="`config.toml`, which says where keys and witnesses are, is writable for group or others",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessEntry:
    """A witness to ask. `url` is `http(s)://…`, or `file:ID` for one whose key lies here and never raises a grade."""

    id: str
    url: str
    public_key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEntry:
    """One engine as the configuration knows it. Paths are absolute, or relative to the configuration's folder."""

    id: str
    state: str
    steward: str
    steward_key: Path | None = None
    steward_public_key: Path | None = None
    witnesses: tuple[WitnessEntry, ...] = ()


def read_config(path: Path) -> dict[str, EngineEntry]:
    """The engines by id; none when there is no file. Raises BadInput, Unreachable."""
    if not path.exists():
        return {}
    _check_private(path)
    data = read_bytes(path, MAX_CONFIG)
    if len(data) > MAX_CONFIG:
        _refuse(path, f"it is over {MAX_CONFIG} bytes; take out what is no table of an engine")
    try:
        return _parsed(path, data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        _refuse(path, str(error))


def _parsed(path: Path, text: str) -> dict[str, EngineEntry]:
    """Raises ValueError for what is no TOML, BadInput for tables that are none of ours."""
    return {name: _engine(path, name, table) for name, table in tomllib.loads(text).items()}


def add_engine(path: Path, entry: EngineEntry) -> None:
    """Add a table; the rest of the file stays as it is. Raises BadInput when the engine has one already."""
    with _one_writer(path):
        known = read_config(path)
        if entry.id in known:
            _refuse(path, f"there is a table for engine {entry.id} already; remove it or choose another --engine")
        before = read_bytes(path, MAX_CONFIG).decode("utf-8") if path.exists() else ""
        gap = "\n" if before and not before.endswith("\n\n") else ""
        write_whole(path, f"{before}{gap}{_table(entry)}".encode())


def set_state(path: Path, engine: str, state: str) -> bool:
    """Point an engine's table to another state; the rest of the file stays. False when it has no table."""
    with _one_writer(path):
        return _set_state(path, engine, state)


def remember_witnesses(path: Path, engine: str, witnesses: Iterable[WitnessEntry]) -> bool:
    """Write where witnesses are into an engine's table, in the place of what is there of the same ids; the rest of the file stays.

    False when it has no table. Raises BadInput where the list cannot be changed in its place.
    """
    with _one_writer(path):
        entry = read_config(path).get(engine)
        if entry is None:
            return False
        known = {item.id: item for item in entry.witnesses}
        for item in witnesses:
            key = item.public_key or (known[item.id].public_key if item.id in known else None)
            known[item.id] = replace(item, public_key=key)
        wanted = replace(entry, witnesses=tuple(known.values()))
        lines = _lines(path)
        start = _table_line(lines, engine)
        first, last = _value_lines(lines, start, "witnesses")
        lines[first:last] = [f"{line}\n" for line in _witness_lines(wanted)]
        text = "".join(lines)
        try:
            same = _parsed(path, text) == read_config(path) | {engine: wanted}
        except ValueError:
            same = False
        if not same:
            _refuse(path, f"the list `witnesses` of `{engine}` is not on lines of its own; write it by hand")
        write_whole(path, text.encode())
        return True


def _value_lines(lines: list[str], start: int, name: str) -> tuple[int, int]:
    """From which line to before which a value of a table stands; where it would begin, twice, when there is none."""
    for index in range(start + 1, len(lines)):
        if lines[index].lstrip().startswith("["):
            return start + 1, start + 1
        if lines[index].partition("=")[0].strip() == name:
            for last in range(index + 1, len(lines) + 1):
                try:
                    tomllib.loads("".join(lines[index:last]))
                except tomllib.TOMLDecodeError:
                    continue
                return index, last
    return start + 1, start + 1


def _table_line(lines: list[str], engine: str) -> int:
    """The line that begins an engine's table, -1 when it is written in another way."""
    for index, line in enumerate(lines):
        if line.lstrip().startswith("[") and line.strip().endswith("]") and tomllib.loads(line).keys() == {engine}:
            return index
    return -1


def _lines(path: Path) -> list[str]:
    # TOML ends a line at a line feed alone; a value may hold what else `splitlines` takes for one.
    return [f"{line}\n" for line in read_bytes(path, MAX_CONFIG).decode("utf-8").removesuffix("\n").split("\n")]


@contextmanager
def _one_writer(path: Path) -> Iterator[None]:
    """Two commands that write the file at once must not lose what the other wrote. The lock ends with the process."""
    import fcntl

    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unreachable(PATH_UNWRITABLE.at(f"{path.parent}: {error.strerror}; check the folder")) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _set_state(path: Path, engine: str, state: str) -> bool:
    if engine not in read_config(path):
        return False
    lines = _lines(path)
    inside = False
    for index, line in enumerate(lines):
        if line.lstrip().startswith("["):
            inside = tomllib.loads(line + "\n").keys() == {engine} if line.strip().endswith("]") else False
        elif inside and line.partition("=")[0].strip() == "state":
            lines[index] = f"state = {_quoted(state)}\n"
            write_whole(path, "".join(lines).encode())
            return True
    _refuse(path, f"the line `state` of `{engine}` is not on a line of its own; write state = {_quoted(state)} by hand")


def _table(entry: EngineEntry) -> str:
    lines = [f"[{_quoted(entry.id)}]", f"state = {_quoted(entry.state)}", f"steward = {_quoted(entry.steward)}"]
    for name, path in (("steward_key", entry.steward_key), ("steward_public_key", entry.steward_public_key)):
        if path is not None:
            lines.append(f"{name} = {_quoted(str(path))}")
    return "\n".join([*lines, *_witness_lines(entry)]) + "\n"


def _witness_lines(entry: EngineEntry) -> list[str]:
    if not entry.witnesses:
        return []
    return ["witnesses = [", *(f"    {_witness_table(item)}," for item in entry.witnesses), "]"]


def _witness_table(item: WitnessEntry) -> str:
    key = f", public_key = {_quoted(str(item.public_key))}" if item.public_key is not None else ""
    return f"{{id = {_quoted(item.id)}, url = {_quoted(item.url)}{key}}}"


def _quoted(text: str) -> str:
    # A TOML basic string is a JSON string, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise Unreachable(CONFIG_PERMISSIONS.at(f"{path}: {error.strerror}")) from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unreachable(
            CONFIG_PERMISSIONS.at(f"{path} has mode {stat.S_IMODE(mode):04o}; run `chmod go-w {path}` and look at it")
        )


_ENGINE_FIELDS = frozenset({"state", "steward", "steward_key", "steward_public_key", "witnesses"})
_WITNESS_FIELDS = frozenset({"id", "url", "public_key"})


def _engine(path: Path, name: str, table: Any) -> EngineEntry:
    if not isinstance(table, dict) or not name.startswith("eng_"):
        _refuse(path, f'`{name}` is not a table of an engine; its tables are ["eng_…"]')
    _check_fields(path, name, table, _ENGINE_FIELDS, ("state", "steward"))
    witnesses = table.get("witnesses", [])
    if not isinstance(witnesses, list) or not all(isinstance(item, dict) for item in witnesses):
        _refuse(path, f"`witnesses` of `{name}` must be an array of tables")
    return EngineEntry(
        id=name,
        state=table["state"],
        steward=table["steward"],
        steward_key=_path(path, table, "steward_key"),
        steward_public_key=_path(path, table, "steward_public_key"),
        witnesses=tuple(_witness(path, name, item) for item in witnesses),
    )


def _witness(path: Path, name: str, table: dict[str, Any]) -> WitnessEntry:
    _check_fields(path, f"{name}.witnesses", table, _WITNESS_FIELDS, ("id", "url"))
    return WitnessEntry(id=table["id"], url=table["url"], public_key=_path(path, table, "public_key"))


def _check_fields(path: Path, name: str, table: dict[str, Any], known: frozenset[str], needed: tuple[str, ...]) -> None:
    if unknown := sorted(table.keys() - known):
        _refuse(path, f"`{unknown[0]}` in `{name}` is no setting; there are {', '.join(sorted(known))}")
    for field in needed:
        if field not in table:
            _refuse(path, f"`{name}` lacks `{field}`")
    for field, value in table.items():
        if field != "witnesses" and not isinstance(value, str):
            _refuse(path, f"`{field}` in `{name}` must be a string")


def _path(path: Path, table: dict[str, Any], name: str) -> Path | None:
    return path.parent / table[name] if name in table else None


def _refuse(path: Path, detail: str) -> NoReturn:
    raise BadInput(CONFIG_UNREADABLE.at(f"{path}: {detail}"))
