"""What is wrong with a fleet that its schema refuses, at its place and with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from fleetctl.capacity.policy import pool_words
from fleetctl.config import codes
from fleetctl.config.merge import DEFAULTS
from fleetctl.config.places import Places
from fleetctl.config.problems import MORE, Detail, Problems
from fleetctl.config.schema import Path, SchemaError, errors_of, failing_parts, in_policy
from fleetctl.diagnostics import Code
from fleetctl.units import UnitError, parse_count, parse_date, parse_duration, parse_energy, parse_signed, parse_time

_QUANTITIES: Mapping[str, Callable[[str], object]] = {
    "energy": parse_energy,
    "fleet-duration": parse_duration,
    "minute": parse_time,
    "day": parse_date,
}
_FORMS: Mapping[str, str] = {
    "fleet-name": "a name is lower-case letters, digits and hyphens, at most 63, and begins with a letter or digit",
    "idempotency-key": "a key is ASCII letters, digits and . _ # -, at most 128, and begins with a letter or digit",
    "reference": "a reference is a name in this fleet, or other-fleet/key",
    "object-name": "an object is written kind/key, such as pool/pool-fra1-h100",
    "object-id": "an id is a prefix and its characters, such as pool_01k2…",
    "danger-id": "a danger is written as the plan shows it, such as shrink-below-use:offer/pool-fra1-h100/acme",
    "field-path": "a field is a name or a dotted path, such as policy.telemetry",
    "word": "it is one word of ASCII letters, digits and @ . _ : / -",
    "identifier": "it is ASCII letters, digits and . _ : -, and begins with a letter or digit",
    "label": "a label's name is ASCII letters, digits and . _ / -, at most 127",
    "resource": "a resource is ASCII letters, digits and . _ / -, such as gpu or gpu.mig",
}
_TYPES: Mapping[str, str] = {
    "object": "a mapping is needed here; write `name: value` below it",
    "array": "a list is needed here; write `[a, b]`",
    "string": "text is needed here, not a mapping or a list",
    "boolean": "write `true` or `false`, without quotes",
    "integer": "a whole number is needed here",
    "number": "a number is needed here",
    "string or object": "a name or a mapping is needed here",
}

MAX_EXPLAINED = 1_000
"""Errors that are explained; in a file that is not about fleets at all everything is wrong."""

Found = tuple[Code, Detail, int]


class Explainer:
    """Turns schema errors into diagnostics. The policy's own validators speak first of what is inside a policy."""

    def __init__(self, places: Places, problems: Problems, *, alone: bool = False) -> None:
        """`alone`: the fleet's path is one file, which may be a part of a folder."""
        self.places = places
        self.problems = problems
        self._alone = alone
        self._room = MAX_EXPLAINED
        self._left_to_validators: list[SchemaError] = []
        self._kinds: Mapping[str, Callable[[SchemaError], Iterator[Found]]] = {
            "additionalProperties": self._unknown_fields,
            "required": self._missing_field,
            "type": self._wrong_type,
            "const": self._not_one_of,
            "enum": self._not_one_of,
            "pattern": self._pattern,
            "minimum": self._range,
            "maximum": self._range,
            "minItems": self._range,
            "maxLength": self._range,
            "oneOf": self._either_or,
        }

    def report(self, fleet: Mapping[str, Any], *, incomplete: bool) -> set[Path]:
        """Report what is wrong, and return the parts at fault: (section, name), (section, index), or less.

        Parts that are wrong only inside a policy are not among them. An incomplete fleet may well have its header and
        its defaults in the part that was not read.
        """
        at_fault: set[Path] = set()
        unexplained = 0
        for part in failing_parts(fleet):
            if self._room <= 0:
                unexplained += 1
                at_fault.add(part[:2])
            elif self._report_part(fleet, part, incomplete=incomplete):
                at_fault.add(part[:2])
        if unexplained:
            detail = f"{unexplained} more objects do not fit the schema; mend these first"
            self.problems.add(MORE, detail, self.places.value(()))
        return at_fault

    def _report_part(self, fleet: Mapping[str, Any], part: Path, *, incomplete: bool) -> bool:
        """Report one part; whether it is wrong outside of policies."""
        outside = False
        for error in islice(errors_of(fleet, part), self._room):
            self._room -= 1
            if in_policy(error.path) and not error.in_name:
                self._left_to_validators.append(error)
                continue
            outside = True
            if not (incomplete and error.keyword == "required" and _may_be_elsewhere(error)):
                self._report(error)
        return outside or self._room <= 0

    def report_rest(self) -> None:
        """Report what is wrong inside policies and nobody has spoken of."""
        for error in self._left_to_validators:
            spoken = self.problems.has_error_at(self._value(error)) or self.problems.has_error_at(self._key(error))
            if not spoken:
                self._report(error)

    def _report(self, error: SchemaError) -> None:
        for code, detail, at in self._explain(error):
            self.problems.add(code, detail, at)
            if self.problems.hopeless:
                return

    def _explain(self, error: SchemaError) -> Iterator[Found]:
        if error.in_name and error.keyword == "not":
            detail = f"`{error.instance}` is each object's own and has no default; remove it"
            yield codes.NO_DEFAULT, detail, self.places.key(error.path, error.instance)
        elif error.in_name:
            detail = f"{codes.shown(error.instance)}: {_form(error)}"
            yield codes.BAD_NAME, detail, self.places.key(error.path, error.instance)
        elif error.keyword in self._kinds:
            yield from self._kinds[error.keyword](error)
        else:
            yield codes.INVALID, f"{error.message[:200]}; see `fleetctl schema`", self._value(error)

    def _value(self, error: SchemaError) -> int:
        return self.places.value(error.path)

    def _key(self, error: SchemaError) -> int:
        """The place of the name that the error is about; of the value where it has none."""
        last = error.path[-1] if error.path else None
        return self.places.key(error.path[:-1], last) if isinstance(last, str) else self._value(error)

    def _unknown_fields(self, error: SchemaError) -> Iterator[Found]:
        known = error.part["properties"]
        for name in error.instance:
            if name not in known:
                yield codes.UNKNOWN_FIELD, partial(_unknown, name, known), self.places.key(error.path, name)

    def _missing_field(self, error: SchemaError) -> Iterator[Found]:
        # One error for each missing field, which jsonschema names only in its message.
        name = _missing(error)
        if not error.path:
            yield codes.MISSING_HEADER, self._header_detail(name), self._beside_header(error)
            return
        last = error.path[-1]
        where = " or under `defaults`" if _may_default(error, name) else ""
        if name == "idempotencyKey":
            where = f", such as `{name}: {_KEY_PREFIX.get(str(error.path[0]), '')}{last}`"
        what = codes.shown(last) if isinstance(last, str) else "the entry"
        yield codes.MISSING_FIELD, f"{what} needs `{name}`; write it here{where}", self._key(error)

    def _header_detail(self, name: str) -> str:
        if self._alone:
            return f"`{name}` is not in this file; write {_HEADER_EXAMPLE[name]}, or name the folder that the file is a part of"
        return f"`{name}` is in no file; write it in one of them, such as {_HEADER_EXAMPLE[name]}"

    def _beside_header(self, error: SchemaError) -> int:
        """Where the rest of the header is, if any of it is there."""
        given = next((name for name in _HEADER_EXAMPLE if name in error.instance), None)
        return self._value(error) if given is None else self.places.key((), given)

    def _wrong_type(self, error: SchemaError) -> Iterator[Found]:
        if error.wanted in ("integer", "number") and isinstance(error.instance, str):
            yield codes.BAD_QUANTITY, self._number_detail(error), self._value(error)
            return
        needed = _TYPES["string or object"] if isinstance(error.wanted, list) else _TYPES[error.wanted]
        given = f"{codes.shown(error.instance)}: " if isinstance(error.instance, str) else ""
        yield codes.WRONG_TYPE, given + needed, self._value(error)

    def _number_detail(self, error: SchemaError) -> str:
        text: str = error.instance
        if self.places.is_quoted(error.path):
            return f"{codes.shown(text)}: a number is written without quotes"
        if error.wanted == "number":
            example = (
                "dollars with at most six decimals, such as 20.00" if _format(error) == "rate" else "one such as 1.5"
            )
            return f"{codes.shown(text)} is not a decimal number; write {example}"
        parse = parse_signed if error.part.get("minimum", 0) < 0 else parse_count
        return _unit_error(parse, text) or f"{codes.shown(text)} is not a whole number; write one such as 8"

    def _not_one_of(self, error: SchemaError) -> Iterator[Found]:
        if error.path[0] == "pools" or error.path[:2] == (DEFAULTS, "pools"):
            yield from self._pool_word(error)
        elif isinstance(error.instance, str):
            words = error.wanted if isinstance(error.wanted, list) else [error.wanted]
            hint = codes.did_you_mean(error.instance, words) or f"; write {codes.one_of(words)}"
            yield codes.NOT_ONE_OF, f"{codes.shown(error.instance)} is not known{hint}", self._value(error)

    def _pattern(self, error: SchemaError) -> Iterator[Found]:
        text: str = error.instance
        if _format(error) in _QUANTITIES:
            detail = _unit_error(_QUANTITIES[_format(error)], text) or f"{codes.shown(text)} is malformed"
            yield codes.BAD_QUANTITY, detail, self._value(error)
        elif _format(error) in _FORMS:
            yield codes.BAD_NAME, f"{codes.shown(text)}: {_form(error)}", self._value(error)
        else:
            yield from self._pool_word(error)

    def _pool_word(self, error: SchemaError) -> Iterator[Found]:
        """class, sharing, agent and gpuModel have codes of their own, which the engine's API uses too."""
        argument = _POOL_WORDS[str(error.path[-1])]
        if isinstance(error.instance, str):
            for item in pool_words(**(_GOOD_WORDS | {argument: error.instance})):
                yield item.code, item.detail, self._value(error)

    def _range(self, error: SchemaError) -> Iterator[Found]:
        detail = {
            "minimum": f"`{error.instance}` is too small; the least is {error.wanted}",
            "maximum": f"`{error.instance}` is too large; the most is {error.wanted}",
            "minItems": "the list is empty; name at least one",
            "maxLength": f"the text is too long; write at most {error.wanted} characters",
        }[str(error.keyword)]
        yield codes.OUT_OF_RANGE, detail, self._value(error)

    def _either_or(self, error: SchemaError) -> Iterator[Found]:
        if not isinstance(error.instance, Mapping):
            return  # its type is reported
        both = "pool" in error.instance and "pools" in error.instance
        detail = (
            "an offer has `pool` or `pools`, not both; remove one"
            if both
            else "an offer needs `pool: NAME`, or `pools: [NAME, NAME]` for several"
        )
        yield codes.EITHER_OR, detail, self._key(error)


def _missing(error: SchemaError) -> str:
    """The field that a `required` error is about."""
    return str(next(item for item in error.wanted if error.message.startswith(repr(item))))


def _may_default(error: SchemaError, name: str) -> bool:
    return len(error.path) == 2 and isinstance(error.path[-1], str) and name not in _NO_DEFAULT


def _may_be_elsewhere(error: SchemaError) -> bool:
    """Whether another file may give the field that is missing: a header's, or one that has a default."""
    return not error.path or _may_default(error, _missing(error))


_KEY_PREFIX = {
    "pools": "pool-",
    "entitlements": "ent-",
    "marketPools": "market-",
    "orders": "order-",
    "transfers": "transfer-",
}
_NO_DEFAULT = frozenset({"idempotencyKey", "to", "pool", "pools"})
_POOL_WORDS = {"gpuModel": "gpu_model", "class": "pool_class", "sharing": "sharing", "agent": "agent"}
_GOOD_WORDS = {"gpu_model": "H100", "pool_class": "metal-host", "sharing": "exclusive", "agent": "none"}
_HEADER_EXAMPLE = {
    "apiVersion": "`apiVersion: fleetctl/v1`",
    "fleet": "`fleet: eu-prod`",
    "tenant": "`tenant: root`",
}


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    hint = codes.did_you_mean(name, known) or f"; known here: {', '.join(sorted(known))}"
    return f"{codes.shown(name)} is not known here{hint}"


def _format(error: SchemaError) -> str:
    return str(error.part.get("format", ""))


def _form(error: SchemaError) -> str:
    return _FORMS.get(_format(error), "it may not be written like this")


def _unit_error(parse: Callable[[str], object], text: str) -> str | None:
    try:
        parse(text)
    except UnitError as error:
        return str(error)
    return None
