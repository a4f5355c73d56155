"""Values without a schema type: YAML 1.2 core types, as canonical JSON (fleet-files: "Values")."""

from __future__ import annotations

import re

from fleetctl.canonical import Json
from fleetctl.config.codes import NOT_ASCII
from fleetctl.config.nodes import Mapping, Node, Scalar, is_absent
from fleetctl.config.problems import Problems
from fleetctl.diagnostics import code
from fleetctl.model.policy_forms import portable
from fleetctl.units import MAX_QUANTITY, UnitError, parse_decimal

NOT_STORABLE = code(
    "number-not-storable",
    "A number has no exact stored form",
    trigger="`.inf`, `.nan`, a number of more than 40 digits or beyond 2^63-1, or `{$decimal: …}`, where no type rules",
)

_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"([-+]?)(?:\.([0-9]+)|([0-9]+)(?:\.([0-9]*))?)(?:[eE]([-+]?[0-9]+))?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAYBE_NUMBER = frozenset("0123456789+-.")
_MAX_DIGITS = 40


def as_plain(node: Node, problems: Problems) -> Json:
    """A node of no known type. Nulls in it are absent; text must be ASCII; what cannot be stored is reported."""
    if isinstance(node, Scalar):
        return _scalar(node, problems)
    if isinstance(node, Mapping):
        check_keys(node, problems)
        if node.entries.keys() == {"$decimal"}:
            problems.add(
                NOT_STORABLE, "`$decimal` is how a decimal is stored; write the number itself, such as 1.5", node.at
            )
        return {key: as_plain(item, problems) for key, item in node.entries.items() if not is_absent(item)}
    return [as_plain(item, problems) for item in node.items if not is_absent(item)]


def check_keys(node: Mapping, problems: Problems) -> None:
    """Report the keys of free content that are not ASCII."""
    if not all(map(str.isascii, node.entries)):
        for key, at, _ in node.items_at():
            if not key.isascii():
                report_not_ascii(at, problems)


def report_not_ascii(at: int, problems: Problems) -> None:
    """Report text that is not ASCII where it must be."""
    detail = "only descriptions and reasons may hold other letters than ASCII; write this in ASCII"
    problems.add(NOT_ASCII, detail, at)


def core_scalar(text: str) -> Json:
    """A plain scalar in YAML 1.2 core types; a decimal is `{"$decimal": "1.5"}`. Raises UnitError for numbers without exact form."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if not text or text[0] not in _MAYBE_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return _stored(text, 10)
    if _OCTAL.fullmatch(text):
        return _stored(text[2:], 8)
    if _HEX.fullmatch(text):
        return _stored(text[2:], 16)
    if match := _FLOAT.fullmatch(text):
        sign, bare, whole, fraction, exponent = match.groups()
        return {"$decimal": _decimal(sign, whole or "0", bare or fraction or "", exponent or "0")}
    if _NOT_FINITE.fullmatch(text):
        raise UnitError(f"`{text}` is no number that can be stored; leave the field out, or quote it to store the text")
    return text


def _scalar(node: Scalar, problems: Problems) -> Json:
    if not node.text.isascii():
        report_not_ascii(node.at, problems)
    if not node.plain:
        return node.text
    try:
        return core_scalar(node.text)
    except UnitError as error:
        problems.add(NOT_STORABLE, str(error), node.at)
        return node.text


def _stored(digits: str, base: int) -> Json:
    if len(digits) <= _MAX_DIGITS:
        value = int(digits, base)
        if abs(value) <= MAX_QUANTITY:
            return portable(value)
    raise UnitError("this number is beyond 2^63-1; quote it to store the text")


def _decimal(sign: str, whole: str, fraction: str, exponent: str) -> str:
    shift = int(exponent) if len(exponent) <= 4 else _MAX_DIGITS + 1
    digits = whole + fraction
    point = len(whole) + shift
    if abs(shift) > _MAX_DIGITS or len(digits) > _MAX_DIGITS:
        raise UnitError("this number has more than 40 digits; quote it to store the text")
    if point <= 0:
        digits, point = "0" * (1 - point) + digits, 1
    digits = digits.ljust(point, "0")
    left = digits[:point].lstrip("0") or "0"
    right = digits[point:]
    return parse_decimal(("-" if sign == "-" else "") + left + (f".{right}" if right else ""))
