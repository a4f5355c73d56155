"""The sealed ledger: deterministic CBOR, one exact COSE_Sign1 envelope, a hash chain, a witness, and their verification.

It knows bytes, not fleets, and does no I/O (`keyfiles` apart). Where to look:

- `identifiers`  names and ledger ids; `ledger_id("root-steward", "entitlements")`
- `keys`         `Signer`, `SeedSigner`, `public_key`; `keyfiles` for PEM and COSE_Key
- `entries`      `Admitted`, `Released`, and the journal's `Applied`, `Called`, `Rotated`, `Reported`, `Migrated`, `Recovered`
- `chain`        `empty(ledger)`, `seal(event, head, signer)`
- `verify`       `verify(data, ledger=…, key=…)` raises; `examine(…)` answers the full report
- `usage`        the fold of entitlement entries into usage, open claims and evidence
- `windows`      what a rotation makes of open claims, and whether windows follow from each other
- `checkpoint`   the sealed cache of that fold, and resuming from it
- `receipts`     witness receipts: `issue`, `judge`, `grading`
- `witness`      `advance`, the whole decision of `POST /v1/witness`; `build_request`, `chunks`, `parse_refusal` for its clients
- `audit`        streams, receipts and bounds into the one report that `fleetctl ledger verify` prints
- `crosscheck`   pycose's second opinion

`statement` holds single signed statements. `cbor`, `cose` and `fields` are the encoding beneath. `schemas/ledger.cddl` is the same format for other readers.
"""
