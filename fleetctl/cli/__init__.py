"""The command line: parse to a typed value, make one call, hand the result to a view.

Reading order: `main` (the tree of commands, and the one place where errors become exit codes), `command` (options that
every command has), `output`, `wiring` (the only place that builds things), `commands/` (one file for each group).
"""
