"""The pool/1 decision core (Pool v0.1): may this claim start, what is reserved against whom, and who yields in what order.

Pure and exact: integers only, no clock, no I/O. Reading order: `grade`, `claim`, `tree`, `admission` (§4), `preemption` (§5),
`attribution` (§2.5), `estimates` (§2.6), `idle` (§2.7), and `wire`, the JSON form that an auditor re-runs. References such as
A13 name readings of the standard's gaps; tests/cases/pool1 holds an example of each.
"""
