"""Values to documents, and documents to text: what people and machines read of a result. Pure, and without formatting elsewhere.

Reading order: `document` (what can be shown), `inert` (text that can do nothing to a terminal), `text` (documents at a
width), `words` (fields and values as people write them), `diagnostics`, then one module for each kind of result
(`plan`, `outcome`, `drift`, `objects`, `ledger`, `records`). Modules with a `…_json` function give the machine's form.
"""
