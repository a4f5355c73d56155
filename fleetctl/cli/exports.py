"""What leaves an engine as files, and what is read of its own ledgers."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetctl.cli.audits import Known, bounds_of, roster_of
from fleetctl.cli.bundles import read_receipts
from fleetctl.cli.files import PATH_UNWRITABLE, make_folder, write_whole
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.render.document import Document, Verdict
from fleetctl.render.words import counted

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine
    from fleetctl.ledger.entries import Event
    from fleetctl.ledger.report import Report

FOLDER_NOT_EMPTY = code(
    "folder-not-empty",
    "The folder has something in it",
    trigger="`ledger export --bundle` into a folder that is not empty: nothing is overwritten",
)
NO_STREAM = code(
    "no-such-stream",
    "The engine has no such ledger",
    trigger="--stream names no ledger of the engine",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written where."""

    path: Path
    files: tuple[str, ...]
    size: int

    def document(self) -> Document:
        return [Verdict(f"Wrote {self.path}: {counted(len(self.files), 'file')}, {counted(self.size, 'byte')}", "good")]

    def to_json(self) -> dict[str, Any]:
        return {"result": "ok", "path": str(self.path), "files": list(self.files), "bytes": self.size}


def export_file(engine: Engine, stream: str | None, path: Path) -> Written:
    """One ledger as a CBOR sequence. Raises BadInput, Unreachable."""
    data = ledger_bytes(engine, stream)
    write_whole(path, data)
    return Written(path=path, files=(path.name,), size=len(data))


def ledger_bytes(engine: Engine, stream: str | None) -> bytes:
    """One ledger as a CBOR sequence. Raises BadInput."""
    from fleetctl.engine.ledgers import export_stream

    _check_stream(engine, stream)
    return export_stream(engine, stream)


def export_bundle(engine: Engine, folder: Path) -> Written:
    """Everything an auditor needs, in a new or empty folder. Raises BadInput, Unreachable."""
    from fleetctl.engine.ledgers import bundle

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(FOLDER_NOT_EMPTY.at(f"{folder}: name a new folder, nothing is overwritten"))
    files, size = [], 0
    for name, data in bundle(engine):
        target = folder / name
        if ".." in Path(name).parts or target.is_absolute() and folder not in target.parents:
            raise BadInput(PATH_UNWRITABLE.at(f"{name} would leave the folder; nothing more is written"))
        make_folder(target.parent)
        write_whole(target, data)
        files.append(name)
        size += len(data)
    return Written(path=folder, files=tuple(files), size=size)


def audit_own(engine: Engine, known: Known) -> Report:
    """Both ledgers of the engine, with its receipts and keys and those that are given, and what its witnesses say now.

    Raises BadInput, Tampered, Usage.
    """
    from fleetctl.engine.ledgers import Given, audit_engine
    from fleetctl.engine.windows import spans_of
    from fleetctl.ledger.keyfiles import load_public_key

    with engine.store.read() as reader:
        windows = [span.ledger for span in spans_of(engine, reader)[:-1]]
    given = Given(
        key=load_public_key(known.steward_key) if known.steward_key is not None else None,
        steward=known.steward,
        receipts=tuple(read_receipts(known.receipts)),
        roster=tuple(roster_of(known.witness_keys)),
        required=known.required_witnesses,
        bounds=lambda ledger, beside: bounds_of(known, ledger, beside=beside, windows=() if beside else windows),
    )
    return audit_engine(engine, given, cross_check=known.cross_check)


def shown_entries(engine: Engine, stream: str | None, since: int, limit: int) -> tuple[str, list[tuple[int, Event]]]:
    """The ledger's id and its entries from `since` on, after a verification. Raises BadInput, Tampered."""
    from fleetctl.engine.context import check_identity, journal_stream, usage_stream
    from fleetctl.engine.streams import events, verify_stream

    _check_stream(engine, stream)
    with engine.store.read() as reader:
        check_identity(engine, reader)
        actual = {None: usage_stream(reader), "journal": journal_stream(reader)}.get(stream, stream or "")
        verify_stream(engine, reader, actual)
        return str(engine.ledger(actual)), list(islice(events(engine, reader, actual, since), limit))


def _check_stream(engine: Engine, stream: str | None) -> None:
    """Raises BadInput when the engine has no such stream."""
    with engine.store.read() as reader:
        known = {item.stream for item in reader.streams()} | {"journal"}
    if stream is not None and stream not in known:
        raise BadInput(NO_STREAM.at(f"there is no ledger `{stream[:80]}`; there are {', '.join(sorted(known))}"))
