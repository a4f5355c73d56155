"""What fleetctl costs beside other tools, both measured in the same run.

Absolute times on shared machines mean little, so every figure is a ratio: both sides alternate, five times each, and
medians are compared. `python -m benchmarks` runs all rows, `python -m benchmarks plan-create drift` some; each writes
its raw samples into `results.json`, and `RESULTS.md` is made from that file.

Reading order: `process` (one child process, measured), `series` (samples, ratios, targets), `workspace` (a fleet, an
engine and a git repository in a folder of their own), `peers` (the other side), `rows` (one script per row), `report`.
"""
