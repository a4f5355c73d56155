"""MIG profiles, layouts and geometry of the GPUs that have them (readings: "Hardware facts the cases rest on").

A GPU in MIG mode has memory slots (8; an A30 has 4) and compute slices (7; 4). An instance occupies a run of slots that
may start only at certain ones, so whether a set of instances fits is a search and not a sum: `3g,2g,2g` fits only with
the 3g instance at slot 4. The gigabytes in a profile's name are nominal: usable memory comes from inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from fleetctl.capacity.gpu_names import device_name
from fleetctl.frozen import dataclass

LAYOUT_BALANCED = "all-balanced"
LAYOUT_ENABLED = "all-enabled"
LAYOUT_DISABLED = "all-disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """A shape of GPU instance: `name` as in `1g.10gb`, the slots it may start at, the slots it covers, the compute slices it takes."""

    name: str
    compute: int
    slots: int
    starts: tuple[int, ...]
    most: int
    """How many of it one GPU holds when it holds nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigTable:
    """What one product offers. `name` is family and memory, such as `H100-80`; `family` is the pool's gpuModel."""

    name: str
    family: str
    compute: int
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile | None:
        """The profile of that name; a `+me` form (one instance with the media engines) is its plain shape, at most once."""
        return next((item for item in self.profiles if item.name == name), None)


_Shape = tuple[str, int, int, tuple[int, ...], int]
"""Name without memory, compute slices, memory slots, starts, most on one GPU."""

_EIGHTHS: tuple[_Shape, ...] = (
    ("1g", 1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
    ("1g", 1, 2, (0, 2, 4, 6), 4),
    ("2g", 2, 2, (0, 2, 4), 3),
    ("3g", 3, 4, (0, 4), 2),
    ("4g", 4, 4, (0,), 1),
    ("7g", 7, 8, (0,), 1),
)
_QUARTERS: tuple[_Shape, ...] = (
    ("1g", 1, 1, (0, 1, 2, 3), 4),
    ("2g", 2, 2, (0, 2), 2),
    ("4g", 4, 4, (0,), 1),
)


def _table(name: str, family: str, shapes: tuple[_Shape, ...], memory_gb: tuple[int, ...]) -> MigTable:
    """A table from one memory size per shape, in the order of `shapes`."""
    profiles = []
    for (slices, compute, size, starts, most), gigabytes in zip(shapes, memory_gb, strict=True):
        label = f"{slices}.{gigabytes}gb"
        profiles.append(MigProfile(name=label, compute=compute, slots=size, starts=starts, most=most))
        if size == 1 or (shapes is _QUARTERS and size == 2):
            profiles.append(MigProfile(name=f"{label}+me", compute=compute, slots=size, starts=starts, most=1))
    whole = shapes[-1]
    return MigTable(name=name, family=family, compute=whole[1], profiles=tuple(profiles))


TABLES: Mapping[str, MigTable] = {
    table.name: table
    for table in (
        _table("A100-40", "A100", _EIGHTHS, (5, 10, 10, 20, 20, 40)),
        _table("A100-80", "A100", _EIGHTHS, (10, 20, 20, 40, 40, 80)),
        _table("H100-80", "H100", _EIGHTHS, (10, 20, 20, 40, 40, 80)),
        _table("H100-NVL-94", "H100", _EIGHTHS, (12, 24, 24, 47, 47, 94)),
        _table("GH200-96", "GH200", _EIGHTHS, (12, 24, 24, 48, 48, 96)),
        _table("H20-96", "H20", _EIGHTHS, (12, 24, 24, 48, 48, 96)),
        _table("H200-141", "H200", _EIGHTHS, (18, 35, 35, 71, 71, 141)),
        _table("B200-180", "B200", _EIGHTHS, (23, 45, 45, 90, 90, 180)),
        _table("A30-24", "A30", _QUARTERS, (6, 12, 24)),
    )
}

_BY_MEMORY = {("A100", 40): "A100-40", ("A100", 80): "A100-80", ("H100", 80): "H100-80", ("H100", 94): "H100-NVL-94"}
_BY_FAMILY = {"H20": "H20-96", "H200": "H200-141", "B200": "B200-180", "A30": "A30-24"}


def table_of_product(product: str) -> MigTable | None:
    """The table of one NVML name; None where the name does not settle it or the product has no table here."""
    device = device_name(product)
    if device is None:
        return None
    if device.family == "H100":
        memory = 94 if "NVL" in device.tokens else device.memory_gb or 80
        return TABLES.get(_BY_MEMORY.get(("H100", memory), ""))
    if device.family == "GH200":
        # the 480 GB are the CPU's; the 144 GB product has another table
        return TABLES["GH200-96"] if device.memory_gb in (480, 96) else None
    if device.family == "A100" and device.memory_gb is not None:
        return TABLES.get(_BY_MEMORY.get(("A100", device.memory_gb), ""))
    return TABLES.get(_BY_FAMILY.get(device.family, ""))


def tables_of_family(family: str) -> tuple[MigTable, ...]:
    """Every table a pool of that gpuModel may need: the family alone does not settle the memory size."""
    return tuple(table for table in TABLES.values() if table.family == family)


def layout_instances(table: MigTable, layout: str) -> tuple[str, ...] | None:
    """The instances that a layout puts on each GPU of the table, as profile names; None when the table has no such layout.

    `all-disabled` and `all-enabled` put none. `all-balanced` is the vendor's mix.
    """
    if layout in (LAYOUT_ENABLED, LAYOUT_DISABLED):
        return ()
    if layout == LAYOUT_BALANCED:
        return _balanced(table)
    profile = table.profile(layout.removeprefix("all-")) if layout.startswith("all-") else None
    return (profile.name,) * profile.most if profile else None


def layout_profiles(tables: Iterable[MigTable]) -> list[str]:
    """The layout names that every one of the tables has, in table order."""
    found = list(tables)
    first = [f"all-{profile.name}" for profile in found[0].profiles] if found else []
    return [name for name in first if all(layout_instances(table, name) is not None for table in found)]


def placement(table: MigTable, instances: Sequence[str]) -> tuple[int, ...] | None:
    """A start slot for each instance, in the order given, or None when the set does not fit one GPU or names an unknown profile.

    Searched, largest first, and the lowest starts that work are taken, so the answer is the same on every run.
    """
    found = [table.profile(name) for name in instances]
    profiles = [profile for profile in found if profile is not None]
    if len(profiles) < len(found) or len(found) > table.compute:
        return None
    if sum(profile.compute for profile in profiles) > table.compute or _too_many_media(instances):
        return None
    order = sorted(range(len(profiles)), key=lambda index: (-profiles[index].slots, profiles[index].starts, index))
    shapes = tuple((profiles[index].slots, profiles[index].starts) for index in order)
    starts = _search(shapes, 0)
    if starts is None:
        return None
    at = dict(zip(order, starts, strict=True))
    return tuple(at[index] for index in range(len(profiles)))


@lru_cache(maxsize=4096)
def _search(shapes: tuple[tuple[int, tuple[int, ...]], ...], taken: int) -> tuple[int, ...] | None:
    """Start slots for `shapes` beside the slots in the bit set `taken`; at most seven shapes on eight slots."""
    if not shapes:
        return ()
    (size, starts), rest = shapes[0], shapes[1:]
    for start in starts:
        mask = ((1 << size) - 1) << start
        if taken & mask == 0:
            found = _search(rest, taken | mask)
            if found is not None:
                return (start, *found)
    return None


def _balanced(table: MigTable) -> tuple[str, ...]:
    plain = [profile for profile in table.profiles if "+" not in profile.name]
    small = plain[0].name
    two = next(profile.name for profile in plain if profile.compute == 2)
    three = next((profile.name for profile in plain if profile.compute == 3), None)
    return (three, two, small, small) if three else (two, small, small)


def _too_many_media(instances: Sequence[str]) -> bool:
    return sum("+me" in name for name in instances) > 1
