"""The engine: one runner that authorises, takes a snapshot, decides, commits and journals.

Reading order: `context` (an open engine), `state` (snapshots and digests), `streams` (the ledgers as they stand),
`journal` (one entry per change), `apply` (a plan, in numbered steps), `calls` (single commands), `claims`,
`rotating` (the next window of the ledger, with `windows` and `continuing` beside it), `reservations`, `witnessing`, `verify`, `history`, `rebuild`, `initial`.
"""
