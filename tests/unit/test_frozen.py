"""`fleetctl.frozen.dataclass` is the standard decorator in all that its users see, and nothing keeps that true but this."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import subprocess
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import fleetctl
from fleetctl.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    KIND: ClassVar[str] = "base"

    a: int
    b: tuple[int, ...] = ()
    c: dict[str, int] = field(default_factory=dict)
    secret: str = field(default="s", repr=False)
    noise: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Base):
    d: int = 4
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.a + self.d)


@dataclass(frozen=True, slots=True)
class Placed:
    x: int
    y: int = 2

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]  # what a class says itself stays


@dataclass(frozen=True, slots=True)
class Empty:
    pass


def test_construction_takes_what_the_fields_say() -> None:
    made = Base(a=1)
    assert (made.a, made.b, made.c, made.secret, made.KIND) == (1, (), {}, "s", "base")
    assert made.c is not Base(a=1).c
    assert (Placed(1), Placed(1, 3).y, Derived(a=1).total) != (None, 2, 0) and Placed(1, 3).y == 3
    assert Derived(a=1, d=6).total == 7


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Base(),  # type: ignore[call-arg]  # the errors are what is tested
        lambda: Base(1),  # type: ignore[misc]  # so is this
        lambda: Base(a=1, z=2),  # type: ignore[call-arg]  # and this
        lambda: Derived(a=1, total=3),  # type: ignore[call-arg]  # and this
    ],
)
def test_wrong_arguments_are_a_type_error(wrong: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_checks_run_before_anybody_has_the_object() -> None:
    with pytest.raises(ValueError, match="negative"):
        Base(a=-1)
    with pytest.raises(ValueError, match="negative"):
        replace(Base(a=1), a=-1)


def test_nothing_can_be_set_deleted_or_added() -> None:
    made: Any = Base(a=1)
    for change in (lambda: setattr(made, "a", 2), lambda: setattr(made, "new", 2), lambda: delattr(made, "a")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert not hasattr(made, "__dict__")


def test_equality_and_hash_are_those_of_the_compared_fields_in_one_class() -> None:
    assert Base(a=1, noise=1) == Base(a=1, noise=2) != Base(a=2)
    assert Base(a=1, secret="x") != Base(a=1)
    assert Base(a=1) != Derived(a=1) and Base(a=1) != (1, (), {}, "s")
    assert Empty() == Empty() and hash(Empty()) == hash(Empty())
    assert len({frozenset(), Empty(), Empty()}) == 2
    assert Placed(1) != Placed(1)
    with pytest.raises(TypeError):
        hash(Base(a=1))  # its dict has none
    with pytest.raises(TypeError):
        hash(Placed(1))


def test_the_shown_form_is_the_standard_one() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Standard:
        a: int
        b: tuple[int, ...] = ()

    @dataclass(frozen=True, slots=True)
    class Ours:
        a: int
        b: tuple[int, ...] = ()

    assert repr(Ours(1)) == repr(Standard(1)).replace("Standard", "Ours")
    assert "secret" not in repr(Base(a=1))


def test_fields_replace_match_pickle_and_signature_work() -> None:
    made = Derived(a=1, b=(2,))
    assert [item.name for item in dataclasses.fields(made)] == ["a", "b", "c", "secret", "noise", "d", "total"]
    assert replace(made, a=3).total == 7
    assert pickle.loads(pickle.dumps(made)) == made
    match Placed(5):
        case Placed(x, y):
            assert (x, y) == (5, 2)
    assert list(inspect.signature(Placed(1).__class__).parameters) == ["x", "y"]


def test_every_frozen_dataclass_of_the_package_is_made_this_way() -> None:
    """One that is not would cost every start as much as five that are."""
    folder = Path(fleetctl.__file__).parent
    found = subprocess.run(
        [
            "grep",
            "-rnE",
            r"dataclasses\.dataclass\(.*frozen|from dataclasses import .*\bdataclass\b",
            "--include=*.py",
            ".",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    odd = [line for line in found if "order=True" not in line and not line.startswith("./frozen.py")]
    assert [line for line in odd if "statusfile" not in line] == []
