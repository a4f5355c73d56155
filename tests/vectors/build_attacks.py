"""Builds `tests/cases/ledger/attacks/*.json`: one file for each row of the table of attacks, with the verdict that is right for it.

The verdicts are written here by hand, never taken from the verifier. Run it as a module from the root to write the files again:
`python -m tests.vectors.build_attacks`. A test rebuilds them and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fleetctl.ledger import chain, cose, receipts
from fleetctl.ledger.cbor import encode, encode_bytes, encode_text, head
from fleetctl.ledger.entries import Event, encode_core
from fleetctl.ledger.identifiers import LedgerId, ledger_id
from fleetctl.ledger.keys import SeedSigner
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    FIELD,
    SMALL_ORDER_POINTS,
    STEWARD,
    WITNESS,
    add_order,
    admitted,
    history,
    join,
    mixed_order,
    payload_of,
    released,
    seal_all,
    seed,
    sign_core,
    sign_header,
    sign_with_nonce,
    signer,
)

OUT = Path(__file__).parent.parent / "cases" / "ledger" / "attacks"

Case = dict[str, Any]

GOOD = seal_all(history(3))
N = len(GOOD)
ENTRIES = [item.data for item in GOOD]
CORES = [payload_of(entry) for entry in ENTRIES]
K = 2
"""The entry that most rows attack: the admission of c1. N is 6."""
MALLORY = signer("mallory")
OTHER_LEDGER = ledger_id("root-steward", "gpu-west")


# Bytes that honest code never makes.


def parts(data: bytes) -> list[Any]:
    """`data` as hex, long repetitions of one or two bytes shortened to `{"repeat": hex, "times": n}`."""
    out: list[Any] = []
    at = 0
    for run in re.finditer(rb"(..)\1{63,}", data, re.DOTALL):
        out += [data[at : run.start()].hex(), {"repeat": run[1].hex(), "times": len(run[0]) // 2}]
        at = run.end()
    return [part for part in (*out, data[at:].hex()) if part]


def replaced(index: int, entry: bytes, entries: Sequence[bytes] = ENTRIES) -> bytes:
    """The ledger with one entry's bytes exchanged."""
    return b"".join([*entries[:index], entry, *entries[index + 1 :]])


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]


def pairs(index: int = K) -> dict[str, bytes]:
    """An honest core as encoded values by key, in wire order."""
    import cbor2

    return {key: encode(value) for key, value in cbor2.loads(CORES[index]).items()}


def raw_map(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    found = list(items)
    return head(5, len(found)) + b"".join(key + value for key, value in found)


def core_with(changes: dict[str, bytes | None], index: int = K) -> bytes:
    """An honest core with some encoded values exchanged, added or (None) left out; keys in order."""
    found = {**pairs(index), **changes}
    kept = [(encode_text(key), value) for key, value in found.items() if value is not None]
    return raw_map(sorted(kept))


def core_of(event: Event, seq: int, prev: bytes, steward: str = "root-steward") -> bytes:
    return encode_core(event, seq=seq, prev=prev, steward=steward)


def envelope(*elements: bytes, tag: bytes = b"\xd2", array: bytes = b"\x84") -> bytes:
    return tag + array + b"".join(elements)


PROTECTED = cose.protected_header("root-steward")
KID = b"root-steward"


def elements(index: int = K) -> tuple[bytes, bytes, bytes, bytes]:
    """The four encoded elements of an honest envelope."""
    read = cose.read(ENTRIES[index], 0)
    return (encode_bytes(PROTECTED), b"\xa0", encode_bytes(read.payload), encode_bytes(read.signature))


def receipt(
    length: int,
    head_at: bytes | None = None,
    *,
    at_ms: int = AT_MS,
    key: SeedSigner = WITNESS,
    ledger: LedgerId = ENTITLEMENTS,
) -> bytes:
    address = head_at if head_at is not None else (GOOD[length - 1].address if length else chain.genesis(ledger))
    return receipts.issue(chain.Head(ledger=ledger, length=length, address=address), at_ms=at_ms, signer=key)


# What a case holds.


def case(name: str, data: bytes, faults: Sequence[str] = (), **more: Any) -> Case:
    """`faults` are all that must be listed, as `axis@index code`; the first of each axis is its verdict."""
    expected: dict[str, Any] = {"result": "failed" if faults else "ok", "faults": list(faults)}
    inputs: dict[str, Any] = {"file": parts(data)}
    for key in ("receipts", "roster", "bounds", "ledger", "now_ms", "other_steward_keys"):
        if key in more:
            inputs[key] = more.pop(key)
    if "receipts" in inputs:
        inputs["receipts"] = [item.hex() for item in inputs["receipts"]]
    return {"name": name, "input": inputs, "expected": {**expected, **more}}


def core_case(name: str, core: bytes, code: str) -> Case:
    """A core that the steward signed: authentic, refused on canonicity, unreadable in sequence, and the next entry's link is broken."""
    return case(
        name,
        replaced(K, sign_core(core)),
        [f"canonicity@{K} {code}", f"sequence@{K} unreadable", f"sequence@{K + 1} link"],
    )


def envelope_case(name: str, entry: bytes) -> Case:
    return case(name, replaced(K, entry), [f"authenticity@{K} bad-envelope", f"sequence@{K} unreadable"])


def header_case(name: str, entry: bytes) -> Case:
    return case(name, replaced(K, entry), [f"authenticity@{K} bad-header"])


def key_case(name: str, key: bytes) -> Case:
    return {"name": name, "input": {"key": key.hex()}, "expected": {"result": "error", "code": "unacceptable-key"}}


Row = tuple[str, str, str, list[Case]]
"""(row and slug, clause, why, cases)"""


def frame_rows() -> list[Row]:
    changed = flipped(ENTRIES[K], ENTRIES[K].index(b"\x6breserved_uj") + 14)
    last = flipped(ENTRIES[-1], ENTRIES[-1].index(b"\x68spent_uj") + 11)
    kid_at, alg_at = ENTRIES[K].index(KID) + 3, ENTRIES[K].index(b"\xa2\x01\x27\x04") + 2
    boundary = sum(map(len, ENTRIES[:3]))
    ten = seal_all([admitted("c0", reserved_uj=10), released("c0")])
    crlf = join(ten).replace(b"\n", b"\r\n")
    assert b"\n" in payload_of(ten[0].data)
    twice = ENTRIES + ENTRIES
    return [
        (
            "001-bit-of-a-core",
            "pool/1 §6.4, §6.5",
            "the changed core breaks its own signature and the link of the entry after it",
            [
                case(
                    "value in entry 2",
                    replaced(K, changed),
                    [f"authenticity@{K} bad-signature", f"sequence@{K + 1} link"],
                )
            ],
        ),
        (
            "002-bit-of-the-last-core",
            "pool/1 §6.8",
            "nothing links to the last entry; a receipt over it is not compared, because it is not the steward's entry",
            [
                case(
                    "value in entry 5",
                    replaced(N - 1, last),
                    [f"authenticity@{N - 1} bad-signature"],
                    receipts=[receipt(N)],
                    verdicts=["not-compared"],
                )
            ],
        ),
        (
            "004-bit-of-the-kid",
            "ledger.md: protected header exactly {1: -8, 4: kid}",
            "the header is the expected bytes or it is refused; the core is still read",
            [header_case("kid", flipped(ENTRIES[K], kid_at))],
        ),
        (
            "005-bit-of-the-algorithm",
            "ledger.md: protected header exactly {1: -8, 4: kid}",
            "refused before any cryptography",
            [header_case("-8 becomes -7", flipped(ENTRIES[K], alg_at))],
        ),
        (
            "007-torn-tail",
            "ledger.md: 1 frame (within bounds, whole)",
            "what lies before the tear is reported as verified, and the whole is not",
            [
                case(
                    f"{cut} bytes of entry 3",
                    join(GOOD)[: boundary + cut],
                    ["authenticity@3 bad-frame", "sequence@3 unreadable"],
                    length=3,
                    sound_length=3,
                )
                for cut in (1, 2, 20, 100, len(ENTRIES[3]) - 1)
            ],
        ),
        (
            "008-cut-on-a-boundary",
            "pool/1 §6.7",
            "nothing inside the file can tell; a receipt for more entries can",
            [
                case("no receipt", join(GOOD[:4]), length=4, grade="self-attested"),
                case(
                    "receipt for 6",
                    join(GOOD[:4]),
                    receipts=[receipt(6)],
                    verdicts=["ahead"],
                    result="failed",
                    reasons=["receipt-failed"],
                ),
            ],
        ),
        (
            "010-empty-file",
            "ledger.md: an empty ledger verifies",
            "length 0, head is the genesis address",
            [
                case("no receipt", b"", length=0, head=chain.genesis(ENTITLEMENTS).hex(), grade="self-attested"),
                case(
                    "receipt for 6",
                    b"",
                    receipts=[receipt(6)],
                    verdicts=["ahead"],
                    result="failed",
                    reasons=["receipt-failed"],
                ),
                case("receipt for 0", b"", receipts=[receipt(0)], verdicts=["witnessed"], grade="witnessed"),
            ],
        ),
        (
            "013-text-mode",
            "pins: a frame starts with a byte of major type 4, 5 or 6",
            "copies made as if the file were text",
            [
                case(
                    "byte order mark",
                    b"\xef\xbb\xbf" + join(GOOD),
                    ["authenticity@0 bad-frame", "sequence@0 unreadable"],
                ),
                case("line ends", crlf, ["authenticity@0 bad-frame", "sequence@0 unreadable"]),
                case(
                    "read and written as UTF-8",
                    join(GOOD).decode(errors="replace").encode(),
                    ["authenticity@0 bad-frame", "sequence@0 unreadable"],
                ),
            ],
        ),
        (
            "014-concatenated-with-itself",
            "pool/1 §6.5",
            "after the break the walk goes on from what it found, so the copy is one fault of sequence and not six",
            [
                case(
                    "twice",
                    b"".join(twice),
                    ["claims@6 duplicate-admit", "claims@7 double-release", "claims@8 duplicate-admit"]
                    + ["claims@9 double-release", "claims@10 duplicate-admit", "claims@11 double-release"]
                    + ["sequence@6 dup"],
                )
            ],
        ),
    ]


def canonicity_rows() -> list[Row]:
    items = [(encode_text(key), value) for key, value in pairs().items()]
    swapped = raw_map([items[1], items[0], *items[2:]])
    at_ms = pairs()["at_ms"]
    depth = b"\x81" * 400 + b"\x80"
    many = raw_map((encode_text(f"k{number:02}"), b"\x00") for number in range(65))
    one = encode_text("1")
    rows: list[tuple[str, str, str, list[tuple[str, bytes]]]] = [
        ("016-swapped-keys", "non-canonical", "keys ascend", [("first two", swapped)]),
        (
            "017-long-integers",
            "non-canonical",
            "shortest form only (A68)",
            [
                (f"1 as {raw.hex()}", core_with({"devices": raw}))
                for raw in (b"\x18\x01", b"\x19\x00\x01", b"\x1a\x00\x00\x00\x01", b"\x1b" + bytes(7) + b"\x01")
            ]
            + [("23 as 1817", core_with({"devices": b"\x18\x17"}))],
        ),
        (
            "019-indefinite-containers",
            "non-canonical",
            "no indefinite lengths",
            [
                ("the map", b"\xbf" + b"".join(key + value for key, value in items) + b"\xff"),
                ("an array", core_with({"class": b"\x9f" + one + b"\xff"})),
            ],
        ),
        (
            "020-chunked-strings",
            "non-canonical",
            "no indefinite lengths",
            [
                ("bytes", core_with({"prev": b"\x5f\x50" + bytes(16) + b"\x50" + bytes(16) + b"\xff"})),
                ("text", core_with({"claim": b"\x7f\x61c\x611\xff"})),
            ],
        ),
        (
            "022-duplicate-key",
            "non-canonical",
            "keys ascend strictly",
            [
                ("equal values", raw_map([items[0], *items])),
                ("other values", raw_map([(items[0][0], b"\x00"), *items])),
            ],
        ),
        ("023-byte-after-the-core", "non-canonical", "a core is one item", [("zero", CORES[K] + b"\x00")]),
        (
            "025-tags",
            "non-canonical",
            "no tags at all, even those that encode again as they were",
            [
                ("tag 0", core_with({"at_ms": b"\xc0\x74" + b"2026-12-07T08:00:00Z"})),
                ("tag 1", core_with({"at_ms": b"\xc1" + at_ms})),
                ("tag 24", core_with({"prev": b"\xd8\x18\x58\x20" + bytes(32)})),
                ("tag 32", core_with({"claim": b"\xd8\x20" + encode_text("http://c1")})),
                ("tag 37", core_with({"claim": b"\xd8\x25\x50" + bytes(16)})),
                ("tag 258", core_with({"class": b"\xd9\x01\x02\x80"})),
            ],
        ),
        (
            "026-regular-expression",
            "non-canonical",
            "refused by its tag; nothing is compiled",
            [("120 KB of alternatives", core_with({"class": b"\xd8\x23" + encode_text("a|" * 60_000)}))],
        ),
        (
            "028-references",
            "non-canonical",
            "no shared values, no string references",
            [
                ("28 and 29, a cycle", core_with({"class": b"\xd8\x1c\x81\xd8\x1d\x00"})),
                ("256 and 25", core_with({"class": b"\xd9\x01\x00\x82\x63aaa\xd8\x19\x00"})),
            ],
        ),
        (
            "029-floats",
            "non-canonical",
            "no floats, even those that encode again as they were",
            [
                (raw.hex(), core_with({"devices": raw}))
                for raw in (
                    b"\xf9\x3c\x00",
                    b"\xfa\x3f\x80\x00\x00",
                    b"\xfb\x3f\xf0" + bytes(6),
                    b"\xf9\x7e\x00",
                    b"\xf9\x80\x00",
                )
            ],
        ),
        (
            "031-null-and-undefined",
            "non-canonical",
            "an absent value is an absent key (A66)",
            [("null", core_with({"class": b"\xf6"})), ("undefined", core_with({"class": b"\xf7"}))]
            + [("false", core_with({"class": b"\xf4"})), ("true", core_with({"class": b"\xf5"}))],
        ),
        (
            "032-simple-values",
            "non-canonical",
            "none, well-formed or not",
            [
                (raw.hex(), core_with({"class": raw}))
                for raw in (b"\xf0", b"\xf8\x20", b"\xf8\xff", b"\xf8\x00", b"\xf8\x14", b"\xf8\x1f")
            ],
        ),
        (
            "034-reserved-lengths",
            "non-canonical",
            "additional information 28 to 30",
            [
                (raw.hex(), core_with({"devices": raw}))
                for raw in (b"\x1c", b"\x1d", b"\x1e", b"\x5c", b"\x9d", b"\xbe")
            ],
        ),
        ("035-bignum", "non-canonical", "tag 2 holding 1", [("1", core_with({"devices": b"\xc2\x41\x01"}))]),
        (
            "037-integers-too-large",
            "bad-schema",
            "every store can hold 0 to 2^63-1",
            [
                ("seq 2^63", core_with({"seq": b"\x1b\x80" + bytes(7)})),
                ("seq 2^64-1", core_with({"seq": b"\x1b" + b"\xff" * 8})),
            ],
        ),
        (
            "038-negative-integers",
            "bad-schema",
            "where an unsigned one is meant",
            [("-1", core_with({"devices": b"\x20"})), ("-2^64", core_with({"devices": b"\x3b" + b"\xff" * 8}))],
        ),
        (
            "040-keys-that-are-not-text",
            "bad-schema",
            "the two orderings of the RFCs agree for text alone (A65)",
            [
                ("bytes", raw_map([(b"\x41a", b"\x00"), *items])),
                ("integer", raw_map([(b"\x01", b"\x00"), *items])),
                ("array", raw_map([(b"\x80", b"\x00"), *items])),
                ("1 and true", raw_map([(b"\x01", b"\x00"), (b"\xf5", b"\x00")])),
            ],
        ),
        (
            "041-text-that-is-not-utf-8",
            "non-canonical",
            "RFC 3629: no stray bytes, no overlong forms, no surrogates",
            [
                (raw.hex(), core_with({"claim": head(3, len(raw)) + raw}))
                for raw in (b"\xc3\x28", b"\xc0\x80", b"\xed\xa0\x80")
            ],
        ),
        (
            "043-open-schema",
            "bad-schema",
            "a closed schema: an extension needs a new marker",
            [
                ("missing field", core_with({"devices": None})),
                ("unknown field", core_with({"note": one})),
                ("another marker", core_with({"pool_receipt": encode_text("2")})),
                ("another event", core_with({"event": encode_text("queued")})),
            ],
        ),
        (
            "044-not-a-map-of-fields",
            "bad-schema",
            "the core is a map",
            [("array", b"\x80"), ("integer", b"\x00"), ("empty map", b"\xa0"), ("nothing", b"")],
        ),
        (
            "046-deep-nesting",
            "non-canonical",
            "refused at depth 16, without recursion",
            [
                ("17 arrays", core_with({"class": b"\x81" * 16 + b"\x80"})),
                ("400 arrays", core_with({"class": depth})),
                ("5,000 arrays", core_with({"class": b"\x81" * 5_000 + b"\x80"})),
                ("1,000,000 arrays", core_with({"class": b"\x81" * 1_000_000 + b"\x80"})),
                ("5,000 arrays alone", b"\x81" * 5_000 + b"\x80"),
                ("5,000 tags", core_with({"class": b"\xc1" * 5_000 + b"\x00"})),
            ],
        ),
        (
            "047-many-keys",
            "bad-schema",
            "at most 64 in a map",
            [("65 keys", many), ("a head that promises 100,000", b"\xba\x00\x01\x86\xa0" + many[2:])],
        ),
    ]
    clause = "pool/1 §6.6; RFC 8949 §4.2.1"
    return [
        (slug, clause, why, [core_case(name, core, code) for name, core in found]) for slug, code, why, found in rows
    ]


def envelope_rows() -> list[Row]:
    protected, empty, payload, signature = elements()
    core = CORES[K]
    text_head = head(3, len(PROTECTED))
    without_kid = b"\xa1\x01\x27"
    kid = b"\x04" + encode_bytes(KID)
    alg = b"\x01\x27"
    other_core = core_of(history(3)[-1], N - 1, GOOD[N - 2].address, "other-steward")
    signed = b"\x84\x6aSignature1" + protected + b"\x43aad" + payload
    with_aad = envelope(protected, empty, payload, encode_bytes(STEWARD.sign(signed)))
    inner = envelope(protected, empty, signature, tag=b"", array=b"\x83")
    envelopes: list[tuple[str, str, list[Case]]] = [
        ("049-no-tag", "valid COSE; this profile is narrower", [envelope_case("untagged", ENTRIES[K][1:])]),
        (
            "050-tag-98",
            "COSE_Sign is another message",
            [
                envelope_case("over a Sign1 array", b"\xd8\x62" + ENTRIES[K][1:]),
                envelope_case(
                    "a real COSE_Sign", b"\xd8\x62" + envelope(protected, empty, payload, b"\x81" + inner, tag=b"")
                ),
            ],
        ),
        (
            "052-other-tags",
            "the one-byte form of tag 18, and no tag around it",
            [
                envelope_case("tag 18 in two bytes", b"\xd8\x12" + ENTRIES[K][1:]),
                envelope_case("outer 55799", b"\xd9\xd9\xf7" + ENTRIES[K]),
                envelope_case("outer 61", b"\xd8\x3d" + ENTRIES[K]),
            ],
        ),
        (
            "053-other-sizes",
            "an array of exactly four",
            [
                envelope_case("three", envelope(protected, empty, payload, array=b"\x83")),
                envelope_case("five", envelope(protected, empty, payload, signature, b"\x00", array=b"\x85")),
                case(
                    "three, the signature left behind",
                    replaced(K, b"\xd2\x83" + ENTRIES[K][2:]),
                    ["authenticity@2 bad-envelope", "authenticity@3 bad-frame"]
                    + ["sequence@2 unreadable", "sequence@3 unreadable"],
                ),
            ],
        ),
        (
            "055-not-deterministic",
            "the envelope is itself deterministic",
            [
                envelope_case(
                    "indefinite array", envelope(protected, empty, payload, signature, b"\xff", array=b"\x9f")
                ),
                envelope_case("chunked header", envelope(b"\x5f" + protected + b"\xff", empty, payload, signature)),
                envelope_case(
                    "long payload head",
                    envelope(protected, empty, b"\x5a" + len(core).to_bytes(4, "big") + core, signature),
                ),
                envelope_case("long empty map", envelope(protected, b"\xb8\x00", payload, signature)),
                envelope_case("indefinite empty map", envelope(protected, b"\xbf\xff", payload, signature)),
                envelope_case("chunked payload", envelope(protected, empty, b"\x5f" + payload + b"\xff", signature)),
            ],
        ),
        (
            "056-header-is-no-byte-string",
            "the protected header is a byte string",
            [
                envelope_case("map", envelope(PROTECTED, empty, payload, signature)),
                envelope_case("text", envelope(text_head + PROTECTED, empty, payload, signature)),
                envelope_case("detached payload", envelope(protected, empty, b"\xf6", signature)),
            ],
        ),
        (
            "070-signature-of-another-size",
            "its length is tested before any cryptography",
            [
                envelope_case(name, envelope(protected, empty, payload, raw))
                for name, raw in (
                    ("0 bytes", b"\x40"),
                    ("63 bytes", encode_bytes(bytes(63))),
                    ("65 bytes", encode_bytes(bytes(65))),
                    ("null", b"\xf6"),
                    ("integer", b"\x00"),
                )
            ],
        ),
    ]
    headers: list[tuple[str, str, list[tuple[str, bytes, bytes]]]] = [
        (
            "058-algorithm-twice",
            "the unprotected header is empty",
            [("both -8", PROTECTED, b"\xa1\x01\x27"), ("-8 and -7", PROTECTED, b"\xa1\x01\x26")],
        ),
        ("059-no-algorithm", "other libraries verify it", [("absent", b"\xa1" + kid, b"\xa0")]),
        ("061-algorithm-19", "Ed25519's newer number is no synonym here", [("-19", b"\xa2\x01\x32" + kid, b"\xa0")]),
        ("062-duplicate-algorithm", "pycose takes the last", [("-7, -8", b"\xa3\x01\x26\x01\x27" + kid, b"\xa0")]),
        (
            "064-further-labels",
            "the header is these bytes",
            [
                ("content type", b"\xa3" + alg + b"\x03\x00" + kid, b"\xa0"),
                ("x5chain", b"\xa3" + alg + kid + b"\x18\x21\x41\x00", b"\xa0"),
                ("CWT claims", b"\xa3" + alg + kid + b"\x0f\xa0", b"\xa0"),
                ("other order", b"\xa2" + kid + alg, b"\xa0"),
            ],
        ),
        (
            "065-unprotected-header",
            "nobody signs it",
            [
                ("note", PROTECTED, b"\xa1\x64note\x61x"),
                ("countersignature", PROTECTED, b"\xa1\x0b\x80"),
                ("countersignature 0", PROTECTED, b"\xa1\x0c\x58\x40" + bytes(64)),
                ("receipts", PROTECTED, b"\xa1\x19\x01\x8a\x80"),
                ("null", PROTECTED, b"\xf6"),
            ],
        ),
        (
            "067-kid",
            "kid is a byte string in the protected header",
            [
                ("absent", without_kid, b"\xa0"),
                ("unprotected", without_kid, b"\xa1" + kid),
                ("in both", PROTECTED, b"\xa1" + kid),
                ("text", b"\xa2" + alg + b"\x04" + encode_text("root-steward"), b"\xa0"),
                ("integer", b"\xa2" + alg + b"\x04\x01", b"\xa0"),
                ("empty", b"\xa2" + alg + b"\x04\x40", b"\xa0"),
                ("no header at all", b"", b"\xa0"),
            ],
        ),
    ]
    clause = "ledger.md: a sealed entry; RFC 9052"
    rows: list[Row] = [(slug, clause, why, cases) for slug, why, cases in envelopes]
    rows += [
        (slug, clause, why, [header_case(name, sign_header(raw, core, unprotected=bare)) for name, raw, bare in found])
        for slug, why, found in headers
    ]
    rows += [
        (
            "068-another-steward-in-the-core",
            "ledger.md: step 7",
            "a signature alone would pass",
            [case("last entry", replaced(N - 1, sign_core(other_core)), [f"authenticity@{N - 1} kid-mismatch"])],
        ),
        (
            "071-external-aad",
            clause,
            "cannot be told from a bad signature",
            [case("three bytes", replaced(K, with_aad), [f"authenticity@{K} bad-signature"])],
        ),
    ]
    return rows


def off_curve() -> bytes:
    """The least y that is on no point of the curve."""
    d = -121665 * pow(121666, -1, FIELD) % FIELD
    for y in range(2, 100):
        square = (y * y - 1) * pow(d * y * y + 1, -1, FIELD) % FIELD
        if pow(square, (FIELD - 1) // 2, FIELD) != 1:
            return y.to_bytes(32, "little")
    raise AssertionError


def key_rows() -> list[Row]:
    read = cose.read(ENTRIES[K], 0)
    before = ENTRIES[K][:-64]
    second = sign_with_nonce(seed("root-steward"), cose.to_be_signed("root-steward", CORES[K]), b"another nonce")
    no_r = (FIELD).to_bytes(32, "little") + read.signature[32:]
    identity_r = SMALL_ORDER_POINTS[0] + bytes(32)
    above = [(FIELD + offset).to_bytes(32, "little") for offset in (0, 1, 3)]
    clause = "ledger.md: Ed25519, said exactly"
    bad = [f"authenticity@{K} bad-signature"]
    return [
        (
            "073-s-not-reduced",
            clause,
            "S < L",
            [
                case(f"S + {times}L", replaced(K, before + add_order(read.signature, times)), bad)
                for times in range(1, 9)
            ],
        ),
        (
            "074-small-order-key",
            clause,
            "such a key verifies signatures that nobody made",
            [key_case(point.hex()[:8] + point.hex()[-2:], point) for point in SMALL_ORDER_POINTS]
            + [case("R is the identity and S is 0", replaced(K, before + identity_r), bad)],
        ),
        (
            "076-mixed-order-key",
            clause,
            "it verifies in every library; only a check of the point sees it",
            [
                key_case(f"good key + {point.hex()[:8]}", mixed_order(STEWARD.public_key, point))
                for point in SMALL_ORDER_POINTS[1:]
            ],
        ),
        (
            "077-not-a-key",
            clause,
            "off the curve, not canonical, not 32 bytes",
            [key_case("off the curve", off_curve())]
            + [key_case(f"not canonical {raw.hex()[:4]}", raw) for raw in above]
            + [
                key_case("31 bytes", bytes(STEWARD.public_key)[:31]),
                key_case("33 bytes", bytes(STEWARD.public_key) + b"\x00"),
            ],
        ),
        ("079-r-not-canonical", clause, "R is p", [case("edff..7f", replaced(K, before + no_r), bad)]),
        (
            "080-second-valid-signature",
            "ledger.md: content address",
            "the address is the core's, so it is the same entry and no fork",
            [case("another nonce", replaced(K, before + second), receipts=[receipt(N)], verdicts=["witnessed"])],
        ),
    ]


def chain_rows() -> list[Row]:
    renumbered = [
        ENTRIES[index].replace(b"\x63seq" + bytes((index,)), b"\x63seq" + bytes((index - 1,))) for index in (4, 5)
    ]
    changed_history = [*history(3)[:K], admitted("c1", reserved_uj=7), *history(3)[K + 1 :]]
    rewritten = seal_all(changed_history)
    stolen = core_of(history(3)[K], K, GOOD[K - 1].address, "mallory")
    sentinel = core_of(history(3)[K], K, chain.genesis(ENTITLEMENTS))
    wrong_start = core_of(history(3)[0], 0, bytes(32))
    foreign = seal_all(history(3), ledger=OTHER_LEDGER)
    twin = sign_core(core_of(admitted("c9"), K, GOOD[K - 1].address))
    sequence = "pool/1 §6.5: sequence"
    return [
        ("085-entry-deleted", sequence, "", [case("entry 3", b"".join(ENTRIES[:3] + ENTRIES[4:]), ["sequence@3 gap"])]),
        (
            "086-entry-repeated",
            sequence,
            "",
            [
                case(
                    "entry 3",
                    b"".join(ENTRIES[:4] + ENTRIES[3:]),
                    ["claims@4 double-release", "sequence@4 dup"],
                )
            ],
        ),
        (
            "088-deleted-and-renumbered",
            sequence,
            "without the key, renumbering breaks every signature and link from there on",
            [
                case(
                    "entry 3",
                    b"".join(ENTRIES[:3] + renumbered),
                    ["authenticity@3 bad-signature", "authenticity@4 bad-signature"]
                    + ["sequence@3 link", "sequence@4 link"],
                )
            ],
        ),
        (
            "089-history-rewritten",
            "pool/1 §6.7",
            "the steward can do it; only memory outside the file sees it",
            [
                case(
                    "from entry 2, receipts for 2 to 6",
                    join(rewritten),
                    receipts=[receipt(n) for n in (2, 3, 6)],
                    verdicts=["prefix", "fork", "fork"],
                    result="failed",
                    reasons=["receipt-failed"],
                    grade="witnessed-to",
                    witnessed_length=2,
                ),
                case("no receipts", join(rewritten), grade="self-attested"),
            ],
        ),
        (
            "091-another-signer",
            "pool/1 §6.5: authenticity; A74",
            "an entry this steward did not seal is refused, whoever wrote it",
            [
                case(
                    "steward in the core changed",
                    replaced(K, sign_core(stolen, MALLORY)),
                    [f"authenticity@{K} bad-header", f"sequence@{K + 1} link"],
                )
            ],
        ),
        (
            "092-another-key-under-the-same-kid",
            "pool/1 §6.5: authenticity",
            "",
            [
                case(
                    "entry 2",
                    replaced(K, sign_core(CORES[K], signer("root-steward", "a stranger"))),
                    [f"authenticity@{K} bad-signature"],
                )
            ],
        ),
        (
            "094-genesis",
            "ledger.md: genesis",
            "",
            [
                case("another start", replaced(0, sign_core(wrong_start)), ["sequence@0 genesis", "sequence@1 link"]),
                case(
                    "the start again in the middle",
                    replaced(K, sign_core(sentinel)),
                    [f"sequence@{K} link", f"sequence@{K + 1} link"],
                ),
            ],
        ),
        (
            "095-another-ledgers-entries",
            "ledger.md: genesis",
            "why the genesis address includes the ledger's id",
            [
                case("all", join(foreign), ["sequence@0 genesis"]),
                case("entry 0", replaced(0, foreign[0].data), ["sequence@0 genesis", "sequence@1 link"]),
            ],
        ),
        (
            "097-two-entries-of-one-seq",
            "pins: two authentic entries of one seq",
            "the steward signed two histories; no server is needed to see it",
            [
                case(
                    "after entry 2",
                    b"".join([*ENTRIES[: K + 1], twin, *ENTRIES[K + 1 :]]),
                    [f"sequence@{K + 1} dup", f"sequence@{K + 2} link"],
                )
            ],
        ),
        (
            "098-starts-in-the-middle",
            sequence,
            "no checkpoint given",
            [case("from entry 2", b"".join(ENTRIES[K:]), ["sequence@0 genesis"])],
        ),
        (
            "100-resumed",
            "ledger.md: --resume",
            "the best alarm of a rollback that an auditor owns",
            [
                case(
                    "truncated",
                    join(GOOD[:4]),
                    bounds={"resume": [6, GOOD[5].address.hex()]},
                    result="failed",
                    reasons=["resume-mismatch"],
                ),
                case(
                    "rewritten",
                    join(rewritten),
                    bounds={"resume": [4, GOOD[3].address.hex()]},
                    result="failed",
                    reasons=["resume-mismatch"],
                ),
                case("continued", join(GOOD), bounds={"resume": [4, GOOD[3].address.hex()]}, resumed_from=4),
                case("the same", join(GOOD), bounds={"resume": [6, GOOD[5].address.hex()]}, resumed_from=6),
            ],
        ),
    ]


def roster(*keys: SeedSigner) -> list[dict[str, Any]]:
    return [{"witness": key.kid, "key": key.public_key.hex()} for key in keys]


def witness_rows() -> list[Row]:
    renamed = signer("witness-b", "root-steward")
    retired = signer("witness-b", "an older key of the steward")
    failed = {"result": "failed", "reasons": ["receipt-failed"]}
    good = join(GOOD)
    day = 86_400_000
    sealed = receipt(6)
    forged = receipt(6, key=signer("witness-a", "a stranger"))
    return [
        (
            "101-the-stewards-own-key",
            "pool/1 §6.7",
            "the 32 bytes are compared, whatever the kid says",
            [
                case(
                    "in the roster under another name",
                    good,
                    receipts=[receipt(6, key=renamed)],
                    roster=roster(renamed),
                    verdicts=["not-independent"],
                    grade="self-attested",
                    **failed,
                ),
                case(
                    "a retired key",
                    good,
                    receipts=[receipt(6, key=retired)],
                    roster=roster(retired),
                    other_steward_keys=[retired.public_key.hex()],
                    verdicts=["not-independent"],
                    grade="self-attested",
                    **failed,
                ),
                case(
                    "not in the roster",
                    good,
                    receipts=[receipt(6, key=renamed)],
                    verdicts=["not-independent"],
                    grade="self-attested",
                    **failed,
                ),
                case(
                    "under the steward's own name",
                    good,
                    receipts=[receipt(6, key=STEWARD)],
                    verdicts=["not-independent"],
                    grade="self-attested",
                    **failed,
                ),
                case(
                    "under a good witness's name",
                    good,
                    receipts=[receipt(6, key=signer("witness-a", "root-steward"))],
                    verdicts=["not-independent"],
                    grade="self-attested",
                    **failed,
                ),
            ],
        ),
        (
            "103-prefix",
            "pool/1 §6.8; A64",
            "witnessed to 4, self-attested after; not an error",
            [
                case(
                    "4 of 6", good, receipts=[receipt(4)], verdicts=["prefix"], grade="witnessed-to", witnessed_length=4
                ),
                case("0 of 6", good, receipts=[receipt(0)], verdicts=["prefix"], grade="self-attested"),
            ],
        ),
        (
            "104-witnessed",
            "pool/1 §6.7",
            "",
            [case("6 of 6", good, receipts=[sealed], verdicts=["witnessed"], grade="witnessed", witnessed_length=6)],
        ),
        (
            "106-ahead",
            "ledger.md: ahead(n)",
            "a valid receipt covering a longer ledger: this copy lacks entries",
            [case("6 of 4", join(GOOD[:4]), receipts=[sealed], verdicts=["ahead"], grade="self-attested", **failed)],
        ),
        (
            "107-length-off-by-one",
            "ledger.md: length and head are always compared together",
            "",
            [
                case("7", good, receipts=[receipt(7, GOOD[5].address)], verdicts=["ahead"], **failed),
                case("5", good, receipts=[receipt(5, GOOD[5].address)], verdicts=["fork"], **failed),
            ],
        ),
        (
            "109-old-beside-new",
            "ledger.md: grades",
            "the greatest length that holds counts; replay is harmless",
            [
                case(
                    "4 and 6",
                    good,
                    receipts=[receipt(4), sealed],
                    verdicts=["prefix", "witnessed"],
                    grade="witnessed",
                    witnessed_length=6,
                )
            ],
        ),
        (
            "110-full-rollback",
            "ledger.md: what the files cannot show",
            "an older prefix with its older receipt; only a bound from outside sees it",
            [
                case("nothing known", join(GOOD[:4]), receipts=[receipt(4)], verdicts=["witnessed"], grade="witnessed"),
                case(
                    "length known",
                    join(GOOD[:4]),
                    receipts=[receipt(4)],
                    bounds={"min_length": 6},
                    verdicts=["witnessed"],
                    result="failed",
                    reasons=["below-min-length"],
                ),
                case(
                    "last run known",
                    join(GOOD[:4]),
                    receipts=[receipt(4)],
                    bounds={"resume": [6, GOOD[5].address.hex()]},
                    verdicts=["witnessed"],
                    result="failed",
                    reasons=["resume-mismatch"],
                ),
                case(
                    "age known",
                    join(GOOD[:4]),
                    receipts=[receipt(4, at_ms=AT_MS - 2 * day)],
                    bounds={"max_receipt_age_ms": day},
                    verdicts=["stale"],
                    grade="self-attested",
                ),
            ],
        ),
        (
            "112-another-ledgers-receipt",
            "ledger.md: wrong-ledger",
            "not counted",
            [
                case(
                    "other stream",
                    good,
                    receipts=[receipt(6, GOOD[5].address, ledger=OTHER_LEDGER)],
                    verdicts=["wrong-ledger"],
                    grade="self-attested",
                ),
            ],
        ),
        (
            "113-unknown-witness",
            "ledger.md: unknown-witness",
            "ignored and listed; nothing is downgraded",
            [
                case(
                    "alone",
                    good,
                    receipts=[receipt(6, key=MALLORY)],
                    verdicts=["unknown-witness"],
                    grade="self-attested",
                ),
                case(
                    "beside a good one",
                    good,
                    receipts=[receipt(6, key=MALLORY), sealed],
                    verdicts=["unknown-witness", "witnessed"],
                    grade="witnessed",
                ),
            ],
        ),
        (
            "114-bad-signature",
            "pool/1 §6.8",
            "does not verify at all, which is another thing than covering another head",
            [
                case("another key under the name", good, receipts=[forged], verdicts=["bad-signature"], **failed),
                case(
                    "a flipped bit",
                    good,
                    receipts=[flipped(sealed, len(sealed) - 40)],
                    verdicts=["bad-signature"],
                    **failed,
                ),
            ],
        ),
        (
            "115-time-falls",
            "readings: witness inconsistent, warn",
            "not a failure, but somebody should look",
            [
                case(
                    "later length, earlier time",
                    good,
                    receipts=[receipt(4, at_ms=AT_MS), receipt(6, at_ms=AT_MS - 1_000)],
                    verdicts=["prefix", "witnessed"],
                    grade="witnessed",
                    note="witness witness-a is inconsistent",
                )
            ],
        ),
        (
            "116-time",
            "ledger.md: stale, future",
            "neither counts",
            [
                case(
                    "beyond the skew",
                    good,
                    receipts=[receipt(6, at_ms=AT_MS + 300_001)],
                    verdicts=["future"],
                    grade="self-attested",
                ),
                case(
                    "within the skew",
                    good,
                    receipts=[receipt(6, at_ms=AT_MS + 300_000)],
                    verdicts=["witnessed"],
                    grade="witnessed",
                ),
                case(
                    "too old",
                    good,
                    receipts=[receipt(6, at_ms=AT_MS - day - 1)],
                    bounds={"max_receipt_age_ms": day},
                    verdicts=["stale"],
                    grade="self-attested",
                ),
                case(
                    "just in time",
                    good,
                    receipts=[receipt(6, at_ms=AT_MS - day)],
                    bounds={"max_receipt_age_ms": day},
                    verdicts=["witnessed"],
                    grade="witnessed",
                ),
            ],
        ),
        (
            "117-equivocation",
            "ledger.md: witness-equivocation",
            "one witness, one length, two heads: both are kept",
            [
                case(
                    "at 4",
                    good,
                    receipts=[receipt(4), receipt(4, GOOD[5].address), sealed],
                    verdicts=["witness-equivocation", "witness-equivocation", "witnessed"],
                    **failed,
                )
            ],
        ),
        (
            "118-malformed",
            "ledger.md: malformed",
            "",
            [
                case(name, good, receipts=[raw], verdicts=["malformed"], **failed)
                for name, raw in (
                    ("nothing", b""),
                    ("an entry", ENTRIES[0]),
                    ("a byte after it", sealed + b"\x00"),
                    ("torn", sealed[:-1]),
                    ("another kid", sign_core(payload_of(sealed), MALLORY)),
                    ("another marker", sign_core(payload_of(sealed).replace(b"\x61\x31", b"\x61\x32"), WITNESS)),
                )
            ],
        ),
    ]


def claim_rows() -> list[Row]:
    def events(*found: Event) -> bytes:
        return join(seal_all(found))

    composed, decomposed = b"\xc3\xa9", b"\x65\xcc\x81"
    last = len(history(3)) - 1
    clause = "pool/1 §6.4"
    return [
        (
            "120-release-without-admission",
            clause,
            "not a shorter history; a history that did not happen",
            [case("c9", events(admitted("c0"), released("c9")), ["claims@1 unadmitted-release"])],
        ),
        (
            "121-released-twice",
            clause,
            "",
            [case("c0", events(admitted("c0"), released("c0"), released("c0")), ["claims@2 double-release"])],
        ),
        (
            "122-admitted-twice",
            "pool/1 §6.4; A62",
            "whether or not it was released between",
            [
                case("still open", events(admitted("c0"), admitted("c0")), ["claims@1 duplicate-admit"]),
                case("released", events(admitted("c0"), released("c0"), admitted("c0")), ["claims@2 duplicate-admit"]),
            ],
        ),
        (
            "125-identifiers",
            "ledger.md: identifiers are ASCII",
            "refused on entry, never normalised silently",
            [
                core_case(name, core_with({"claim": head(3, len(raw)) + raw}), "bad-schema")
                for name, raw in (
                    ("composed", b"caf" + composed),
                    ("decomposed", b"caf" + decomposed),
                    ("empty", b""),
                    ("129 characters", b"c" * 129),
                    ("starts with a dot", b".c"),
                    ("a slash", b"a/b"),
                    ("a newline at the end", b"c\n"),
                )
            ],
        ),
        (
            "127-figures",
            "ledger.md: the field's range",
            "zero energy is legal, zero devices is not",
            [
                core_case("no devices", core_with({"devices": b"\x00"}), "bad-schema"),
                core_case("reserved 2^63", core_with({"reserved_uj": b"\x1b\x80" + bytes(7)}), "bad-schema"),
                core_case("another grade", core_with({"grade": encode_text("Guess")}), "bad-schema"),
                case("no energy", events(admitted("c0", reserved_uj=0), released("c0", spent_uj=0)), length=2),
                case("the greatest", events(admitted("c0", reserved_uj=2**63 - 1, devices=2**63 - 1)), length=1),
            ],
        ),
        (
            "128-first-fault",
            "pool/1 §6.4; A61",
            "each axis has its own first index; the lowest of them is the first fault",
            [
                case(
                    "entry 3 of 6",
                    replaced(3, flipped(ENTRIES[3], ENTRIES[3].index(b"\x68spent_uj") + 11)),
                    ["authenticity@3 bad-signature", "sequence@4 link"],
                    first_fault=["authenticity", 3, "bad-signature"],
                ),
                case(
                    "claims before authenticity",
                    b"".join(
                        item if index < last else flipped(item, len(item) - 1)
                        for index, item in enumerate(
                            entry.data for entry in seal_all([*history(2), released("c0"), admitted("c2")])
                        )
                    ),
                    ["authenticity@5 bad-signature", "claims@4 double-release"],
                    first_fault=["claims", 4, "double-release"],
                ),
            ],
        ),
    ]


def build() -> dict[str, str]:
    """Every case file's text by its name."""
    rows = [
        *frame_rows(),
        *canonicity_rows(),
        *envelope_rows(),
        *key_rows(),
        *chain_rows(),
        *witness_rows(),
        *claim_rows(),
    ]
    out = {}
    for slug, clause, why, cases in rows:
        content = {"row": int(slug[:3]), "clause": clause, "why": why, "cases": cases}
        out[f"{slug}.json"] = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    assert len(out) == len(rows)
    return out


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for name, text in build().items():
        (OUT / name).write_text(text)
