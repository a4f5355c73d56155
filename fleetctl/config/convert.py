"""Nodes to plain typed data, guided by the schema: a field's own type converts the text, so YAML 1.1 traps cannot bite.

A text field takes any scalar as written; a boolean is a plain `true` or `false`; a number is a plain decimal. What does
not convert stays text, and the schema then refuses it. Nulls are absent, but an unknown field is not: `{maxRate: 20,50}` is
a rate of 20 and a field `50`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from fleetctl.config.nodes import Mapping as MappingNode
from fleetctl.config.nodes import Node, Scalar, Sequence, is_absent
from fleetctl.config.plain import as_plain, check_keys, report_not_ascii
from fleetctl.config.problems import Problems
from fleetctl.units import UnitError, parse_count, parse_decimal, parse_signed

Converter = Callable[[Node, Problems], Any]
Schema = Mapping[str, Any]

ANY_LETTERS = frozenset({"text", "energy"})
"""Formats of text that need not be ASCII: descriptions, reasons, and `µJ`."""


class Converters:
    """Converters compiled from a schema, each once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._by_ref: dict[str, Converter] = {}

    def of(self, part: Schema | bool) -> Converter:
        """The converter for a part of the schema."""
        if isinstance(part, bool):
            return as_plain
        if "$ref" in part:
            return self._of_ref(part["$ref"])
        if "if" in part:
            return _text_or(self.of(part["then"]), self.of(part["else"]))
        makers = {"object": self._object, "array": self._array, "string": _string, "integer": _integer}
        make = makers.get(part.get("type", ""))
        if make is not None:
            return make(part)
        return {"boolean": _boolean, "number": _number}.get(part.get("type", ""), as_plain)

    def _of_ref(self, ref: str) -> Converter:
        if ref not in self._by_ref:
            name = ref.removeprefix("#/$defs/")
            self._by_ref[ref] = self.of(self._schema["$defs"][name])
        return self._by_ref[ref]

    def _object(self, part: Schema) -> Converter:
        fields = {name: self.of(inner) for name, inner in part.get("properties", {}).items()}
        rest = self.of(part.get("additionalProperties", True))
        # Keys of free content have no pattern of their own to hold them to ASCII.
        closed = part.get("additionalProperties") is False
        free_keys = "propertyNames" not in part and not closed

        def convert(node: Node, problems: Problems) -> Any:
            if type(node) is not MappingNode:
                return as_plain(node, problems)
            if free_keys:
                check_keys(node, problems)
            return {
                key: fields.get(key, rest)(item, problems)
                for key, item in node.entries.items()
                if not is_absent(item) or (closed and key not in fields)
            }

        return convert

    def _array(self, part: Schema) -> Converter:
        item_of = self.of(part.get("items", True))

        def convert(node: Node, problems: Problems) -> Any:
            if type(node) is not Sequence:
                return as_plain(node, problems)
            return [item_of(item, problems) for item in node.items if not is_absent(item)]

        return convert


def _string(part: Schema) -> Converter:
    ascii_only = "pattern" not in part and part.get("format") not in ANY_LETTERS

    def convert(node: Node, problems: Problems) -> Any:
        if type(node) is not Scalar:
            return as_plain(node, problems)
        if ascii_only and not node.text.isascii():
            report_not_ascii(node.at, problems)
        return node.text

    return convert


def _text_or(text: Converter, other: Converter) -> Converter:
    def convert(node: Node, problems: Problems) -> Any:
        return (text if type(node) is Scalar else other)(node, problems)

    return convert


def _boolean(node: Node, problems: Problems) -> Any:
    if type(node) is Scalar:
        return node.text == "true" if node.plain and node.text in ("true", "false") else node.text
    return as_plain(node, problems)


def _integer(part: Schema) -> Converter:
    """Figures that may be below zero have a sign, counts none (fleet-files: "Values")."""
    parse = parse_signed if part.get("minimum", 0) < 0 else parse_count

    def convert(node: Node, problems: Problems) -> Any:
        if type(node) is not Scalar:
            return as_plain(node, problems)
        try:
            return parse(node.text) if node.plain else node.text
        except UnitError:
            return node.text

    return convert


def _number(node: Node, problems: Problems) -> Any:
    if type(node) is not Scalar:
        return as_plain(node, problems)
    try:
        text = parse_decimal(node.text) if node.plain else ""
    except UnitError:
        text = ""
    if not text:
        return node.text
    return Decimal(text) if "." in text else int(text)


def plain_number(value: int | Decimal) -> str:
    """The text of a converted number, without exponent."""
    return format(value, "f") if isinstance(value, Decimal) else str(value)
