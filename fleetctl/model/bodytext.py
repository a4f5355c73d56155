"""A body as canonical text with holes where its references stand: filled with keys or with ids, it needs no decoding."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import cast

from fleetctl.canonical import canonical_json
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body
from fleetctl.model.codec import decode, encode
from fleetctl.model.ids import Kind


@dataclass(frozen=True, slots=True)
class BodyText:
    """`holed` is the canonical JSON of a body with a hole for each of its references; `references` are those, by field."""

    holed: str
    references: Mapping[str, str]

    def filled(self, references: Mapping[str, str]) -> str:
        """The canonical JSON of the body with these references."""
        text = self.holed
        for field, name in references.items():
            text = text.replace(_hole(field), encode_basestring(name), 1)
        return text

    def body(self, kind: Kind) -> Body:
        """The typed body. Raises CodecError when the text is not a body of this kind."""
        return decode(kind, json.loads(self.filled(self.references)))


def body_text(kind: Kind, body: Body) -> BodyText:
    """A typed body as text. Raises ValueError for a body with a text that is a hole."""
    data = encode(kind, body)
    references = {field: cast(str, data[field]) for field in body.REFERENCES if field in data}
    data.update({field: f"\0{field}" for field in references})
    holed = canonical_json(data)
    if any(holed.count(_hole(field)) != 1 for field in references):
        raise ValueError(f"a {kind} holds NUL, which no text may")
    return BodyText(holed, references)


def _hole(field: str) -> str:
    """NUL and the field's name, as canonical JSON writes that: nothing else in a body is written so."""
    return f'"\\u0000{field}"'
