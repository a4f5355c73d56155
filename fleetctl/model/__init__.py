"""What a fleet is: typed objects, their identities, and the one canonical form of each.

Reading order: `ids` (kinds, keys, derived ids), `bodies` (what each kind holds), `codec` (bodies to canonical JSON
and back), `declared` (a fleet as its files say it), `live` (an object and a snapshot of the engine),
`operation` (what a plan does to one object), `usage` (what is in use).
"""
