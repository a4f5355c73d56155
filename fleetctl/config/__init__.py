"""Fleet files: YAML text → node tree with places → schema → declared fleet, with every problem said at its place.

Reading order: `load` (the whole way), then its steps: `discover` (which files), `sources` (their bytes and places in
them), `scan` and `credentials` (one look at the bytes), `nodes` and `reader` (the strict YAML reader), `merge` (all
documents as one), `convert` and `plain` (text to typed data), `schema` and `explain` (what fits, and why not),
`policies`, `references` and `build` (declared objects), `statements`, `rules` and `lints`.
"""
