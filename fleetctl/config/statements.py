"""What a fleet says beside its objects: `accept`, `ignoreDrift`, `release`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from fleetctl.config.codes import BAD_QUANTITY, UNKNOWN_FIELD, did_you_mean, shown
from fleetctl.config.places import Places
from fleetctl.config.problems import Problems
from fleetctl.config.schema import Path
from fleetctl.diagnostics import code
from fleetctl.model.codec import field_names
from fleetctl.model.declared import Acceptance, IgnoredDrift
from fleetctl.model.ids import Kind
from fleetctl.model.live import PROTECTABLE
from fleetctl.model.policy_fields import DURATION_NAMES
from fleetctl.units import UnitError, parse_date

RELEASED = code(
    "released-and-declared",
    "An object is declared and released",
    trigger="an entry of `release` that is still in the files",
)

_CANONICAL: Final[Mapping[str, str]] = {
    "guarantee.energy": "guarantee.energyUj",
    "limit.energy": "limit.energyUj",
    "period": "periodMs",
    "window": "windowMs",
    "startAt": "startAtMin",
    "endAt": "endAtMin",
    "maxRate": "maxRateMicrousd",
    "minRate": "minRateMicrousd",
    **{f"policy.{name}": f"policy.{canonical}" for canonical, name in DURATION_NAMES.items()},
}
"""Field paths as files write them to what canonical JSON calls them."""


class Statements:
    """Reads the three lists of a converted fleet."""

    def __init__(self, fleet: Mapping[str, Any], places: Places, problems: Problems) -> None:
        self._fleet = fleet
        self._places = places
        self._problems = problems

    def accept(self) -> Iterator[Acceptance]:
        for path, data in self._entries("accept"):
            yield Acceptance(
                danger=data["danger"],
                reason=data.get("reason"),
                until=self._date(path, data),
                span=self._problems.sources.span(self._places.value(path)),
            )

    def ignore_drift(self) -> Iterator[tuple[IgnoredDrift, int]]:
        """Each entry with the place of its object."""
        for path, data in self._entries("ignoreDrift"):
            entry = IgnoredDrift(
                object=data["object"],
                field=self._field(path, data),
                owner=data["owner"],
                reason=data["reason"],
                until=self._date(path, data),
                span=self._problems.sources.span(self._places.value(path)),
            )
            yield entry, self._places.value((*path, "object"))

    def release(self, declared: set[str]) -> Iterator[str]:
        for index, label in enumerate(self._fleet.get("release", ())):
            if label in declared:
                detail = f"{shown(label)} is still declared; take it out of the files, or out of `release`"
                self._problems.add(RELEASED, detail, self._places.value(("release", index)))
            yield label

    def _entries(self, section: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for index, data in enumerate(self._fleet.get(section, ())):
            yield (section, index), data

    def _date(self, path: Path, data: Mapping[str, Any]) -> str | None:
        return self._checked(parse_date, (*path, "until"), data["until"]) if "until" in data else None

    def _checked(self, parse: Callable[[str], str], path: Path, text: str) -> str:
        try:
            return parse(text)
        except UnitError as error:
            self._problems.add(BAD_QUANTITY, str(error), self._places.value(path))
            return text

    def _field(self, path: Path, data: Mapping[str, Any]) -> str:
        """The canonical path of a field; reports one that the object's kind does not have."""
        kind = cast(Kind, data["object"].partition("/")[0])
        text: str = data["field"]
        canonical = _CANONICAL.get(text, text)
        known = {"name", *field_names(kind)}
        known |= {"protect"} if kind in PROTECTABLE else set()
        known |= {"explicitOnly"} if kind == "market-pool" else set()
        if canonical.partition(".")[0] not in known:
            hint = did_you_mean(text, known) or f"; known: {', '.join(sorted(known))}"
            self._problems.add(
                UNKNOWN_FIELD, f"{kind} has no field {shown(text)}{hint}", self._places.value((*path, "field"))
            )
        return canonical
