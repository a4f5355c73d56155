"""Fleet files: YAML text → node tree with places → schema → declared fleet, with every problem said at its place.

Reading order: `discover` (which files), `sources` (their bytes and places in them), `scan` (one look at the bytes),
`nodes` and `reader` (the strict YAML reader).
"""
