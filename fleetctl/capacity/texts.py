"""Text that objects hold. What fleet files refuse, no command and no forged plan brings in either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fleetctl.capacity.refusals import INVALID_INPUT, refuse
from fleetctl.model.operation import Operation
from fleetctl.model.texts import FORBIDDEN, IDENTIFIER, MAX_LABEL, MAX_TEXT, RESOURCE, WORD
from fleetctl.units import shown

_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "region": (WORD, "one word of ASCII letters, digits and @ . _ : / -"),
    "providerAccountId": (IDENTIFIER, "ASCII letters, digits and . _ : -, beginning with a letter or digit"),
    "instanceSku": (IDENTIFIER, "ASCII letters, digits and . _ : -, beginning with a letter or digit"),
}


def refuse_bad_text(operation: Operation, name: str, body: Mapping[str, Any], body_json: str) -> None:
    """Refuse characters that nobody sees, words that are none, and text beyond what fleet files may hold.

    `body_json` is the canonical JSON of `body`: what it holds unescaped and in ASCII needs no second look.
    """
    label = operation.label
    plain = body_json.isascii() and name.isascii() and not any(char in body_json for char in "\\\x7f")
    if not plain or not name.isprintable():
        for text in (name, *_strings(body)):
            if (found := FORBIDDEN.search(text)) is not None:
                char = ord(found[0])
                refuse(INVALID_INPUT, f"the text {shown(text)} holds U+{char:04X}, which nobody sees; remove it", label)
    for field, (form, wanted) in _FORMS.items():
        value = body.get(field)
        if isinstance(value, str) and not form.fullmatch(value):
            refuse(INVALID_INPUT, f"{field} {shown(value)}: write {wanted}", label)
    description = body.get("description")
    if isinstance(description, str) and len(description) > MAX_TEXT:
        refuse(INVALID_INPUT, f"the description is too long; write at most {MAX_TEXT} characters", label)
    labels = body.get("labels")
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if not RESOURCE.fullmatch(str(key)) or len(str(value)) > MAX_LABEL:
            refuse(
                INVALID_INPUT,
                f"the label {shown(str(key))} needs a name of ASCII letters, digits and . _ / -, and at most {MAX_LABEL} "
                "characters",
                label,
            )


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
