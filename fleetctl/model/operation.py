"""What a plan does to one object: a verb, a kind, before and after. The engine and every renderer read this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from json.encoder import encode_basestring as _quoted
from typing import Any, Final, Literal, cast, get_args

from fleetctl.canonical import Json, canonical_json
from fleetctl.frozen import dataclass
from fleetctl.model.ids import KINDS, Kind, ObjectId, is_key, is_key_of, object_name
from fleetctl.model.live import State
from fleetctl.units import shown

Verb = Literal["create", "update", "rename", "adopt", "release", "remove"]
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)


class OperationError(ValueError):
    """The JSON is not an operation; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What the operation was planned against. Exactly one of `version` (the live one) and `absent` is set.

    `absent` is the version the object had when it was last removed, 0 if it never was: two creations of one
    object are never confused. `requires` are ids of objects of other fleets that must still be there.
    """

    version: int | None = None
    absent: int | None = None
    requires: tuple[ObjectId, ...] = ()

    def __post_init__(self) -> None:
        if (self.version is None) == (self.absent is None):
            raise ValueError("a precondition is either a version or an absence")

    def to_json(self) -> dict[str, Json]:
        out: dict[str, Json] = {}
        if self.version is not None:
            out["version"] = self.version
        if self.absent is not None:
            out["absent"] = self.absent
        if self.requires:
            out["requires"] = cast(Json, list(self.requires))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step of a plan. `before` and `after` are flat states; a creation has no before, a removal no after.

    `reason` is a short word for why (`declared`, `changed`, `drifted`, `left the files`, ...).
    """

    verb: Verb
    kind: Kind
    key: str
    id: ObjectId
    precondition: Precondition
    before: State | None = None
    after: State | None = None
    reversible: bool = True
    reason: str = ""
    _after_json: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def label(self) -> str:
        """`kind/key`."""
        return object_name(self.kind, self.key)

    def after_json(self) -> str:
        """The canonical JSON of `after`, made once: last-applied, and a part of the plan's digest."""
        if self._after_json is None:
            object.__setattr__(self, "_after_json", canonical_json(self.after))
        return cast(str, self._after_json)

    def canonical(self) -> str:
        """The canonical JSON of `to_json()`."""
        parts = [
            f'"after":{self.after_json()}' if self.after is not None else "",
            f'"before":{canonical_json(self.before)}' if self.before is not None else "",
            f'"id":{_quoted(self.id)},"key":{_quoted(self.key)},"kind":{_quoted(self.kind)}',
            f'"precondition":{canonical_json(self.precondition.to_json())},"reason":{_quoted(self.reason)}',
            f'"reversible":{"true" if self.reversible else "false"},"verb":{_quoted(self.verb)}',
        ]
        return f"{{{','.join(filter(None, parts))}}}"

    def to_json(self) -> dict[str, Json]:
        """The operation as the plan file's body holds it."""
        out: dict[str, Json] = {
            "verb": self.verb,
            "kind": self.kind,
            "key": self.key,
            "id": self.id,
            "precondition": self.precondition.to_json(),
            "reversible": self.reversible,
            "reason": self.reason,
        }
        if self.before is not None:
            out["before"] = self.before
        if self.after is not None:
            out["after"] = self.after
        return out


_FIELDS: Final = frozenset({"verb", "kind", "key", "id", "precondition", "reversible", "reason", "before", "after"})
_PRECONDITION_FIELDS: Final = frozenset({"version", "absent", "requires"})


def operation_from_json(data: Mapping[str, Any]) -> Operation:
    """The operation that `Operation.to_json` wrote. Raises OperationError for anything else, unknown fields included."""
    if not isinstance(data, Mapping) or set(data) - _FIELDS:
        raise OperationError("an operation holds other fields than an operation has")
    verb, kind = data.get("verb"), data.get("kind")
    if verb not in VERBS or kind not in KINDS:
        raise OperationError(f"{shown(str(verb))} {shown(str(kind))} is no operation that this version knows")
    before, after = _state(data, "before"), _state(data, "after")
    if (before is None) != (verb == "create") or (after is None) != (verb == "remove"):
        raise OperationError(f"a {verb} has the wrong ones of `before` and `after`")
    key, id, precondition = _string(data, "key"), _string(data, "id"), _precondition(data.get("precondition"))
    if not is_key_of(kind, key) or not is_key(id):
        raise OperationError(f"{shown(key)} and {shown(id)} are no key and id of a {kind}")
    if (precondition.version is None) != (verb == "create"):
        raise OperationError(f"a {verb} has the wrong precondition")
    if type(data.get("reversible")) is not bool:
        raise OperationError("`reversible` must be true or false")
    return Operation(
        verb=verb,
        kind=kind,
        key=key,
        id=ObjectId(id),
        precondition=precondition,
        before=before,
        after=after,
        reversible=data["reversible"],
        reason=_string(data, "reason"),
    )


def _precondition(data: Any) -> Precondition:
    if not isinstance(data, Mapping) or set(data) - _PRECONDITION_FIELDS:
        raise OperationError("`precondition` must be an object of `version` or `absent`, and `requires`")
    requires = data.get("requires", [])
    if not isinstance(requires, list) or not all(type(item) is str and is_key(item) for item in requires):
        raise OperationError("`precondition.requires` must be a list of ids")
    for name in ("version", "absent"):
        if name in data and (type(data[name]) is not int or data[name] < 0):
            raise OperationError(f"`precondition.{name}` must be a whole number")
    try:
        return Precondition(
            version=data.get("version"), absent=data.get("absent"), requires=tuple(ObjectId(item) for item in requires)
        )
    except ValueError as error:
        raise OperationError(str(error)) from None


def _state(data: Mapping[str, Any], name: str) -> State | None:
    value = data.get(name)
    if value is not None and not isinstance(value, dict):
        raise OperationError(f"`{name}` must be an object")
    return value


def _string(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if type(value) is not str:
        raise OperationError(f"`{name}` must be a string")
    return value
