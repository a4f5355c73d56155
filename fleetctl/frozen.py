"""Frozen dataclasses that cost little to define and to make.

The standard decorator compiles six functions for each class, which is a third of the time in which a small plan is
made. This one compiles a constructor, when the first object is made, and shares the rest. `dataclasses.fields` and
`dataclasses.replace` work as always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar

_T = TypeVar("_T")


def _dataclass(*, frozen: Literal[True], slots: Literal[True], kw_only: bool = False) -> Callable[[type[_T]], type[_T]]:
    """`dataclasses.dataclass` with these arguments: equal and hashable by its fields, checked in `__post_init__`.

    Setting or deleting an attribute raises `dataclasses.FrozenInstanceError`.
    """

    def made(plain: type[_T]) -> type[_T]:
        plain.__doc__ = plain.__doc__ or plain.__name__  # without one the standard decorator asks for a signature
        own = frozenset(plain.__dict__)
        cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
        cls._compared = attrgetter(*_names(cls, "compare") or ("__class__",))
        for name, shared in _SHARED.items():
            if name not in own:
                setattr(cls, name, shared)
        return cls  # type: ignore[no-any-return]  # the class that came in, with slots

    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _names(cls: Any, which: str) -> list[str]:
    return [item.name for item in dataclasses.fields(cls) if getattr(item, which)]


def _init(self: Any, /, *args: Any, **values: Any) -> None:
    """The first object of a class: its constructor is compiled now, and takes this one's place."""
    cls: Any = next(base for base in type(self).__mro__ if base.__dict__.get("__init__") is _init)
    cls.__init__ = made = _constructor(cls)
    made(self, *args, **values)


def _constructor(cls: Any) -> Callable[..., None]:
    names: dict[str, Any] = {"_Missing": _MISSING}
    positional, keywords, lines = list[str](), list[str](), list[str]()
    for item in dataclasses.fields(cls):
        name, value = item.name, item.name
        if item.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = item.default_factory
            value = f"_make_{name}() if {name} is _Missing else {name}" if item.init else f"_make_{name}()"
        if item.init:
            given = name
            if item.default is not dataclasses.MISSING:
                names[f"_default_{name}"] = item.default
                given = f"{name}=_default_{name}"
            elif item.default_factory is not dataclasses.MISSING:
                given = f"{name}=_Missing"
            (keywords if item.kw_only else positional).append(given)
        elif item.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = item.default
            value = f"_default_{name}"
        elif item.default_factory is dataclasses.MISSING:
            continue
        names[f"_set_{name}"] = getattr(cls, name).__set__
        lines.append(f"  _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    given = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({given}):\n" + ("\n".join(lines) or "  pass"), names)  # names of fields, which are identifiers
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self, "repr"))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _getstate(self: Any) -> list[object]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


def _setattr(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_MISSING: Final = object()
_SHARED: Final[dict[str, Any]] = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
