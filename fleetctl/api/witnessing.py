"""What a witness over HTTP and one in process share: answering over a state, and asking for a receipt in chunks.

The decision itself is `ledger.witness.advance`. Here it meets a state that keeps it, and its refusals become errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from fleetctl.clock import Clock
from fleetctl.diagnostics import Code, code
from fleetctl.errors import Busy, NotVerified, Unreachable
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.chain import Head, address_of
from fleetctl.ledger.fetching import fetched, seal_fetch, split
from fleetctl.ledger.identifiers import LedgerId, is_ledger_id, parse_ledger_id, steward_of
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.receipts import read_receipt
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.witness import BUSY, Outcome, advance, build_request, chunks, parse_refusal
from fleetctl.ports import WitnessContradicts, WitnessElsewhere, WitnessState

NOTHING_WITNESSED = code(
    "witness-nothing-witnessed",
    "The witness has signed nothing for this ledger",
    trigger="the head of a ledger is asked of a witness that knows its steward but was never shown an entry",
)
UNKNOWN_LEDGER = code(
    "witness-unknown-ledger",
    "The witness does not know this ledger's steward",
    trigger="404 of a witness that was given no key of the ledger's steward",
    exit_code=3,
)
REFUSED = code(
    "witness-refused",
    "The witness refused without a reason that is known here",
    trigger="a witness answers with a refusal of a kind that this version does not know",
    exit_code=3,
)
UNREACHABLE = code(
    "witness-unreachable",
    "The witness does not answer",
    trigger="no connection, no answer in time, or an answer that is not a witness's",
)
BAD_ANSWER = code(
    "witness-bad-answer",
    "The witness's answer is not a receipt for what was asked",
    trigger="a receipt that is malformed, not signed by the witness's key, or about another head",
    exit_code=3,
)
WITNESS_BUSY = code(
    "witness-busy",
    "The witness is busy",
    trigger="429 of a witness, after some tries",
)

REFUSALS: Final[dict[str, Code]] = {
    "unreadable": code(
        "witness-unreadable",
        "The witness cannot read the request",
        trigger="400 of a witness: the body is not the CBOR map of ledger, old_length, old_head, entries",
        exit_code=3,
    ),
    "too-large": code(
        "witness-too-large",
        "The request is larger than a witness reads at once",
        trigger="413 of a witness: over 1,000 entries or 1 MiB",
        exit_code=3,
    ),
    "unknown-ledger": UNKNOWN_LEDGER,
    "not-authentic": code(
        "witness-not-authentic",
        "The witness does not accept an entry as the steward's",
        trigger="403 of a witness: an entry is not sealed under the key it was given for the steward",
        exit_code=3,
    ),
    "not-linked": code(
        "witness-not-linked",
        "The entries do not link from where they are said to",
        trigger="422 of a witness: the entries do not follow from `old_head`",
        exit_code=3,
    ),
    "contradiction": code(
        "witness-contradiction",
        "The witness has signed another head at this length",
        trigger="422 of a witness: two histories of one ledger; the witness keeps both heads as evidence",
        exit_code=3,
    ),
    "not-from-known": code(
        "witness-not-from-known",
        "The witness knows the ledger at another place",
        trigger="409 of a witness: `old_length` and `old_head` are not what it last signed",
        exit_code=3,
    ),
    "busy": WITNESS_BUSY,
    "nothing-witnessed": NOTHING_WITNESSED,
}
"""By the name in a refusal's body."""

_ADVICE: Final[dict[str, str]] = {
    "unknown-ledger": "give the steward's public key to the witness (`fleetctl witness init --steward-key`)",
    "not-authentic": "check that the witness has this steward's key; then `fleetctl ledger verify`",
    "contradiction": "this state was rewritten or rolled back: `fleetctl ledger recover`",
    "not-from-known": "`fleetctl ledger witness` asks again from there; if the heads differ, this state was rolled back: `fleetctl ledger recover`",
}

_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1)
_MAX_FETCHED: Final = 1024**3
"""Bytes of entries that are taken back from a witness at once."""
_RESUMES: Final = 3
"""Others may move the same ledger meanwhile, but not for ever."""

Post = Callable[[bytes], tuple[int, bytes]]
"""Sends the body of a request and returns status and body of the answer. Raises Unreachable."""


def answer(body: bytes, *, state: WitnessState, signer: Signer, clock: Clock) -> Outcome:
    """The witness's answer to a request, durable before it is given.

    Never raises for anything in the body; raises Unreachable when the state cannot be written.
    """
    now_ms = clock.now_ms()
    try:
        outcome = advance(body, stewards=state.stewards, known=state.known, signer=signer, now_ms=now_ms)
        if outcome.ledger is None:
            return outcome
        if outcome.evidence is not None:
            state.keep_evidence(outcome.ledger, outcome.evidence, now_ms)
        if outcome.after is not None and not state.move(
            outcome.ledger, outcome.before, outcome.after, start=outcome.start, entries=outcome.entries
        ):
            return BUSY
    except Busy:
        return BUSY
    return outcome


def newest(ledger: str, *, state: WitnessState) -> Outcome:
    """The answer to who asks for the newest receipt of a ledger."""
    if not is_ledger_id(ledger) or not state.stewards.get(steward_of(LedgerId(ledger))):
        return _refusal(404, "unknown-ledger", "no key of this ledger's steward was given to this witness")
    known = state.known(ledger)
    if known is None:
        return _refusal(404, "nothing-witnessed", "this witness has signed nothing for this ledger")
    return Outcome(status=200, code="receipt", body=known.receipt)


def kept(body: bytes, *, witness: str, state: WitnessState, clock: Clock) -> Outcome:
    """The answer to a steward who asks for entries again. Raises Unreachable when the state cannot be read."""
    return fetched(body, witness=witness, stewards=state.stewards, kept=state.entries, now_ms=clock.now_ms())


def fetch(post: Post, *, witness: str, ledger: str, start: int, stop: int, signer: Signer, clock: Clock) -> list[bytes]:
    """The entries `start <= seq < stop` that a witness gives back to the steward, in as many requests as they need.

    Unverified, and never more than were asked for. Raises Unreachable, NotVerified for a refusal or an answer that is none.
    """
    id, found, size = parse_ledger_id(ledger), list[bytes](), 0
    while start + len(found) < stop:
        at = start + len(found)
        status, body = post(seal_fetch(id, start=at, witness=witness, at_ms=clock.now_ms(), signer=signer))
        if status != 200:
            raise_refusal(witness, status, body)
        try:
            more = split(body)
        except (cose.BadEnvelope, IndexError) as error:
            raise NotVerified(BAD_ANSWER.at(f"{witness}: its answer is no sequence of entries: {error}")) from None
        size += len(body)
        if not more:
            break
        if size > _MAX_FETCHED:
            raise Unreachable(UNREACHABLE.at(f"{witness} gives back entries without end; check its URL"))
        found += more[: stop - at]
    return found


def receipt_of(witness: str, status: int, body: bytes) -> bytes | None:
    """What an answer to who asks for the newest receipt holds: None when there is none yet.

    Raises Unreachable, or NotVerified for a refusal.
    """
    if status == 200:
        return body
    if status == 404 and _name(body) == "nothing-witnessed":
        return None
    raise_refusal(witness, status, body)


def ask(
    post: Post, *, key: PublicKey, witness: str, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]
) -> bytes:
    """Show a witness the entries after `old_length`, in as many requests as they need; the receipt for the last.

    A witness that is further than `old_length`, at an entry given here (the asker lost a receipt), is asked again from
    there; a busy one is asked some times more. Raises Unreachable, WitnessElsewhere when it is anywhere else, or NotVerified for a refusal or for an answer
    that is no receipt of this witness for the head that was shown to it.
    """
    head = Head(ledger=parse_ledger_id(ledger), length=old_length, address=old_head)
    for _ in range(_RESUMES):
        try:
            return _show(post, head, entries, witness, key)
        except WitnessElsewhere as elsewhere:
            ahead = elsewhere.length - head.length
            if not 0 < ahead <= len(entries):
                raise
            there = _after(head, entries[:ahead])
            if there.address != elsewhere.head:
                raise
            head, entries = there, entries[ahead:]
    return _show(post, head, entries, witness, key)


def _show(post: Post, head: Head, entries: Sequence[bytes], witness: str, key: PublicKey) -> bytes:
    receipt = b""
    for run in chunks(entries):
        status, receipt = _patiently(post, build_request(head, run))
        if status != 200:
            raise_refusal(witness, status, receipt)
        head = _after(head, run)
        _check(receipt, head, witness, key)
    return receipt


def _patiently(post: Post, body: bytes) -> tuple[int, bytes]:
    """Ask a busy witness some times more: another request may have moved the same ledger first."""
    for pause_s in _PAUSES_S:
        status, received = post(body)
        if status != 429:
            return status, received
        time.sleep(pause_s)
    return post(body)


def raise_refusal(witness: str, status: int, body: bytes) -> NoReturn:
    """The error for a status other than 200."""
    try:
        refusal = parse_refusal(body)
    except ValueError:
        raise Unreachable(
            UNREACHABLE.at(f"{witness} answers {status} and not as a witness does; check its URL")
        ) from None
    kind = REFUSALS.get(refusal.error, REFUSED)
    advice = _ADVICE.get(refusal.error, "look at the witness's side")
    diagnostic = kind.at(f"{witness} answers {status}: {_shown(refusal.detail)}; {advice}")
    if status == 429 or status >= 500:
        raise Unreachable(diagnostic)
    if status == 409 and refusal.length is not None and refusal.head is not None:
        raise WitnessElsewhere(diagnostic, length=refusal.length, head=refusal.head, receipt=refusal.receipt)
    raise NotVerified(diagnostic)


def _name(body: bytes) -> str:
    try:
        return parse_refusal(body).error
    except ValueError:
        return ""


def _refusal(status: int, name: str, detail: str) -> Outcome:
    return Outcome(status=status, code=name, body=encode({"error": name, "detail": detail}))


def _after(head: Head, entries: Sequence[bytes]) -> Head:
    if not entries:
        return head
    try:
        core = cose.read(entries[-1], 0).payload
    except cose.BadEnvelope:
        core = b""  # the witness has let an entry pass that is none: the comparison will fail
    return Head(ledger=head.ledger, length=head.length + len(entries), address=address_of(core))


def _check(sealed: bytes, head: Head, witness: str, key: PublicKey) -> None:
    try:
        receipt, statement = read_receipt(sealed)
    except BadStatement as error:
        raise NotVerified(BAD_ANSWER.at(f"{witness}: {_shown(str(error))}; check its URL")) from None
    own = receipt.witness == witness and statement.signed_by(key)
    if (receipt.ledger, receipt.length, receipt.head) != (head.ledger, head.length, head.address):
        another = "another head" if (receipt.ledger, receipt.length) == (head.ledger, head.length) else "something else"
        said = BAD_ANSWER.at(
            f"{witness} signs {another}: {receipt.ledger} at {receipt.length}, asked was {head.ledger} at {head.length}"
        )
        raise WitnessContradicts(said, receipt=sealed) if own else NotVerified(said)
    if not own:
        raise NotVerified(
            BAD_ANSWER.at(f"the receipt is not signed by {witness} under the key that is configured for it; check both")
        )


def _shown(text: str) -> str:
    """A witness's words are somebody else's: no control characters on a terminal, no page of text."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= 300 else clean[:297] + "..."
