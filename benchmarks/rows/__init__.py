"""One script per row of the table of performance targets. Each has `WHAT` and `measure(folder)`."""

ROWS = (
    "plan-create",
    "plan-nothing",
    "plan-unchanged",
    "apply-create",
    "small",
    "memory",
    "growth",
    "history",
    "ledger-verify",
    "ledger-append",
    "pool1-decide",
    "drift",
)
"""In the order in which they run and are reported."""
