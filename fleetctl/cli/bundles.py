"""An exported bundle, read: both ledgers, receipts, documents, keys. Everything in it is somebody's word until it verifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetctl.canonical import is_digest, sha256_hex
from fleetctl.cli.files import read_regular
from fleetctl.cli.jsonio import MAX_DOCUMENT, parse_json
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass

if TYPE_CHECKING:
    from fleetctl.ledger.identifiers import LedgerId

NOT_A_BUNDLE = code(
    "bundle-unreadable",
    "The folder is not an exported bundle",
    trigger="a folder without `entitlements.cborseq` and `journal.cborseq`, or with more in it than a bundle has",
)
MAX_LEDGER = 4 * 1024**3
_MAX_SMALL = 64 * 1024
_MAX_RECEIPTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle's folder. Its ledgers are read at once; documents when they are asked for."""

    folder: Path
    entitlements: bytes = field(repr=False)
    journal: bytes = field(repr=False)
    receipts: Sequence[bytes] = field(repr=False)

    def document(self, digest: str) -> bytes | None:
        """A document whose content has the digest that its name says; None when there is none such."""
        if not is_digest(digest):
            return None
        path = self.folder / "documents" / f"{digest}.json"
        if not path.is_file():
            return None
        content = read_regular(path, MAX_DOCUMENT)
        return content if sha256_hex(content) == digest else None

    def window(self, number: int, ledger: LedgerId) -> bytes | None:
        """The `number`th closed window; None when it is not there. Raises Unreachable, BadInput."""
        from fleetctl.ledger.windows import file_of

        path = self.folder / file_of(number, ledger)
        return read_ledger(path) if path.is_file() else None

    def journals(self) -> list[str]:
        """The ids of the journals, oldest first, as the bundle says; the last is in force. Raises Unreachable, BadInput."""
        data = self._names()
        found = data.get("journals")
        return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []

    def steward(self) -> str | None:
        """The steward's id, as the bundle says; nothing signed says it where both ledgers are empty."""
        from fleetctl.ledger.identifiers import is_identifier

        found = self._names().get("steward")
        id = found.get("id") if isinstance(found, dict) else None
        return id if isinstance(id, str) and is_identifier(id) else None

    def earlier_journal(self, number: int) -> bytes | None:
        """The `number`th journal that a recovery closed; None when it is not there. Raises Unreachable, BadInput."""
        from fleetctl.ledger.audit import journal_file

        path = self.folder / journal_file(number)
        return read_ledger(path) if path.is_file() else None

    def _names(self) -> dict[str, Any]:
        path = self.folder / "names.json"
        data = parse_json(read_regular(path, MAX_DOCUMENT), where=str(path)) if path.is_file() else {}
        return data if isinstance(data, dict) else {}

    def names(self) -> dict[str, str]:
        """Ids with `kind/key`, as the bundle says; a tenant's id is what people know it by. For people only. Raises BadInput."""
        objects = self._names().get("objects")
        out: dict[str, str] = {}
        for id, item in objects.items() if isinstance(objects, dict) else ():
            if not isinstance(item, dict) or item.get("kind") == "tenant":
                continue
            if isinstance(item.get("kind"), str) and isinstance(item.get("key"), str):
                out[id] = f"{item['kind']}/{item['key']}"
        return out


def read_bundle(folder: Path) -> Bundle:
    """Raises BadInput, Unreachable."""
    if not (folder / "journal.cborseq").is_file() or not (folder / "entitlements.cborseq").is_file():
        raise BadInput(
            NOT_A_BUNDLE.at(
                f"{folder} lacks entitlements.cborseq or journal.cborseq; name what `ledger export --bundle` wrote"
            )
        )
    return Bundle(
        folder=folder,
        entitlements=read_ledger(folder / "entitlements.cborseq"),
        journal=read_ledger(folder / "journal.cborseq"),
        receipts=read_receipts(sorted((folder / "receipts").glob("*"))),
    )


def read_ledger(path: Path) -> bytes:
    """A ledger's bytes. Raises Unreachable, BadInput beyond any size that is read at once."""
    data = read_regular(path, MAX_LEDGER)
    if len(data) > MAX_LEDGER:
        raise BadInput(NOT_A_BUNDLE.at(f"{path} is over {MAX_LEDGER} bytes; verify it in parts, after a rotation"))
    return data


def read_receipts(paths: Sequence[Path]) -> list[bytes]:
    """Receipt files, each cut where no receipt is that long. Raises Unreachable, BadInput for too many."""
    if len(paths) > _MAX_RECEIPTS:
        raise BadInput(NOT_A_BUNDLE.at(f"{len(paths)} receipts; give those that matter with --receipt"))
    return [read_regular(path, _MAX_SMALL) for path in paths]
