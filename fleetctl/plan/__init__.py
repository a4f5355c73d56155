"""From two descriptions of a fleet to a frozen list of operations.

Reading order: `resolve` (names to ids), `compare` (three-way, field by field), `planner` (operations in their total
order, each decided by `capacity`), `provenance`, `dangers`, `impact`, `planfile` (the plan as reviewed bytes), `drift`.
"""
