"""Verification of exported files and bundles: what the auditor was given, what the auditor knows, one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fleetctl.cli.bundles import Bundle, read_bundle, read_ledger, read_receipts
from fleetctl.cli.files import read_bytes
from fleetctl.cli.jsonio import MAX_DOCUMENT, parse_json
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, NotVerified, Unreachable, Usage
from fleetctl.frozen import dataclass

if TYPE_CHECKING:
    from fleetctl.ledger.identifiers import LedgerId
    from fleetctl.ledger.receipts import WitnessKey
    from fleetctl.ledger.report import Bounds, Report

KEY_NEEDED = code(
    "steward-key-needed",
    "A file cannot be verified without the steward's public key",
    trigger="`ledger verify FILE` without --steward-key, or of an empty ledger without --steward",
    exit_code=64,
)
BAD_WITNESS_KEY = code(
    "witness-key-argument",
    "A witness's key is not given as ID=PUB",
    trigger="`--witness-key` without an `=` between the witness's id and its public key file",
    exit_code=64,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the auditor knows from elsewhere than the files. Ages in milliseconds."""

    steward_key: Path | None = None
    steward: str | None = None
    receipts: Sequence[Path] = ()
    witness_keys: Sequence[str] = ()
    required_witnesses: int = 1
    min_length: int | None = None
    max_receipt_age_ms: int | None = None
    resume: Path | None = None
    cross_check: bool = False
    stream: str | None = None
    witness: str | None = None
    """`URL` or `ID=URL` of a witness to ask for what it signed last; its key is among `witness_keys`."""


def audit_path(path: Path, known: Known, now_ms: int) -> Report:
    """Verify a file or a bundle. Raises Usage, Unreachable, BadInput; nothing for what is in it."""
    from fleetctl.ledger.audit import journal_events, with_earlier, with_journal
    from fleetctl.ledger.identifiers import ledger_id, stream_of
    from fleetctl.ledger.receipts import apart
    from fleetctl.ledger.windows import succession

    if known.steward_key is None:
        raise Usage(KEY_NEEDED.at("give the steward's public key, got from its owner, with --steward-key PUB"))
    if not path.is_dir():
        data = read_ledger(path)
        ledger = ledger_id(known.steward or first_steward(data) or _unnamed(), known.stream or "entitlements")
        report = _audit(data, ledger, known, now_ms, read_receipts(known.receipts))
        if known.stream is None and not report.ok and _is_journal(data):
            report = replace(report, notes=(*report.notes, "its entries are those of a journal: give --stream journal"))
        return report
    found = read_bundle(path)
    # An entitlement ledger may be empty while the journal beside it already names their one steward.
    steward = known.steward or first_steward(found.entitlements) or first_steward(found.journal)
    known = replace(known, steward=steward)
    if steward is None:
        _unnamed(found.steward())
    *before, journal_id = _journals(found, steward)
    gone = list(succession(journal_events(found.journal)))
    current = ledger_id(steward, known.stream or (stream_of(gone[-1]) if gone else "entitlements"))
    windows = [
        (item, held)
        for number, item in enumerate(item for item in gone if item != current)
        if (held := found.window(number, item)) is not None
    ]
    earlier = [
        (item, held) for number, item in enumerate(before) if (held := found.earlier_journal(number)) is not None
    ]
    ids = [item for item, _ in windows]
    beside = [*windows, *earlier]
    speaking, own, *others = apart(
        [*found.receipts, *read_receipts(known.receipts)], journal_id, *(item for item, _ in beside)
    )
    usage = _audit(found.entitlements, current, known, now_ms, speaking, windows=ids)
    journal = _audit(found.journal, journal_id, known, now_ms, own, beside=True)
    closed = [
        (_audit(held, item, known, now_ms, receipts, beside=True), held)
        for (item, held), receipts in zip(beside, others, strict=True)
    ]
    journal = with_earlier(journal, found.journal, closed[len(windows) :], found.document)
    windows_only = closed[: len(windows)]
    return with_journal(usage, journal, found.journal, found.document, data=found.entitlements, windows=windows_only)


def _journals(found: Bundle, steward: str) -> list[LedgerId]:
    """The journals that a bundle says it has, oldest first. Its word: what they are comes out when they are verified."""
    from fleetctl.ledger.identifiers import LedgerId, is_ledger_id, kind_of, ledger_id, steward_of

    said = [LedgerId(item) for item in found.journals() if is_ledger_id(item)]
    own = [item for item in said if steward_of(item) == steward and kind_of(item) == "journal"]
    return own or [ledger_id(steward, "journal")]


def _is_journal(data: bytes) -> bool:
    """Whether entry 0 reads as one of a journal."""
    from fleetctl.ledger import cose
    from fleetctl.ledger.entries import BadCore, decode_core

    try:
        decode_core(cose.read(data, 0).payload, "journal")
    except (cose.BadEnvelope, BadCore):
        return False
    return True


def bounds_of(known: Known, ledger: LedgerId, *, beside: bool = False, windows: Sequence[LedgerId] = ()) -> Bounds:
    """The bounds for one ledger; `beside` are the journal and closed windows, which `--min-length` and a resume file without them leave
    alone. A resume file without `ledger` must know one of the `windows` before it.
    """
    from fleetctl.ledger.report import Bounds, parse_resume

    resume = None
    if known.resume is not None:
        document = parse_json(read_bytes(known.resume, MAX_DOCUMENT), where=str(known.resume))
        for at in (ledger, *windows):
            try:
                found = parse_resume(document, at)
            except BadInput:
                if not beside and at == (ledger, *windows)[-1]:
                    raise
            else:
                resume = found if at == ledger else None
                break
    return Bounds(
        min_length=None if beside else known.min_length,
        max_receipt_age_ms=known.max_receipt_age_ms,
        resume=resume,
    )


def roster_of(arguments: Iterable[str]) -> list[WitnessKey]:
    """`ID=PUB` arguments as keys. Raises Usage, Unreachable, BadInput."""
    from fleetctl.ledger.identifiers import check_identifier
    from fleetctl.ledger.keyfiles import load_public_key
    from fleetctl.ledger.receipts import WitnessKey

    out = []
    for text in arguments:
        id, equals, path = text.partition("=")
        if not equals:
            raise Usage(
                BAD_WITNESS_KEY.at(f"`{text[:100]}`: write --witness-key ID=PUB, such as audit-1=audit-1.pub.pem")
            )
        out.append(WitnessKey(witness=check_identifier(id, "witness"), key=load_public_key(Path(path))))
    return out


def _unnamed(said: str | None = None) -> NoReturn:
    """`said` is what a bundle says beside its ledgers, where anybody can write: only the auditor can know better."""
    whose = f"the bundle names `{said}`, which nothing signs: if that is the steward you expect, add `--steward {said}`"
    raise Usage(
        KEY_NEEDED.at(
            "nothing was sealed yet, so no signed entry says whose ledger it is; "
            + (whose if said else "give its steward's id with --steward")
        )
    )


def _audit(
    data: bytes,
    ledger: LedgerId,
    known: Known,
    now_ms: int,
    receipts: Sequence[bytes],
    *,
    beside: bool = False,
    windows: Sequence[LedgerId] = (),
) -> Report:
    from fleetctl.ledger.audit import audit
    from fleetctl.ledger.keyfiles import load_public_key
    from fleetctl.ledger.receipts import MAX_RECEIPTS

    assert known.steward_key is not None, "checked before anything was read"
    roster = roster_of(known.witness_keys)
    answers, notes = _answers(known.witness, roster, ledger)
    report = audit(
        data,
        ledger=ledger,
        key=load_public_key(known.steward_key),
        now_ms=now_ms,
        receipts=[*receipts, *answers][-MAX_RECEIPTS:] if answers else receipts,
        roster=roster,
        required=known.required_witnesses,
        bounds=bounds_of(known, ledger, beside=beside, windows=windows),
        cross_check=known.cross_check,
    )
    return replace(report, notes=(*report.notes, *notes))


def _answers(
    witness: str | None, roster: Sequence[WitnessKey], ledger: LedgerId
) -> tuple[Sequence[bytes], Sequence[str]]:
    """What a witness signed last for a ledger, and a note when it does not say. Without a key nothing it says is asked for.

    Raises BadInput when `--witness` names none of the keys.
    """
    if witness is None or not roster:
        return (), ()
    from fleetctl.api.witness_client import HttpWitness
    from fleetctl.cli.witnesses import WITNESS_AMBIGUOUS, named

    id, url = named(witness)
    found = [item for item in roster if item.witness == id or not id and len(roster) == 1]
    if not found:
        raise BadInput(WITNESS_AMBIGUOUS.at("write --witness ID=URL, and give its key with --witness-key ID=PUB"))
    client = HttpWitness(id=found[0].witness, url=url, key=found[0].key)
    try:
        sealed = client.head(ledger)
    except (Unreachable, NotVerified) as error:
        return (), [f"witness {found[0].witness} was asked for its head: {error.diagnostics[0].detail}"]
    finally:
        client.close()
    return (sealed,) if sealed is not None else (), ()


def first_steward(data: bytes) -> str | None:
    """The key id of entry 0; a name that is nobody's when it cannot be read, None for an empty ledger."""
    from fleetctl.ledger import cose
    from fleetctl.ledger.identifiers import is_identifier

    if not data:
        return None
    try:
        header = cose.read(data, 0).protected
    except cose.BadEnvelope:
        return _NOBODY
    kid = header[6:] if header[4:5] == b"\x78" else header[5:]
    name = kid.decode("ascii", "replace")
    return name if is_identifier(name) and header == cose.protected_header(name) else _NOBODY


_NOBODY = "unknown-steward"
