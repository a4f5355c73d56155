"""Names to keys: what a reference in a fleet file means, and what every object is keyed by."""

from __future__ import annotations

from collections.abc import Callable

from fleetctl.config.codes import did_you_mean, shown
from fleetctl.config.merge import SECTIONS
from fleetctl.config.nodes import Mapping, Scalar, is_absent
from fleetctl.config.problems import Problems
from fleetctl.diagnostics import code
from fleetctl.model.ids import ANY_TENANT, ROOT_TENANT

UNKNOWN_REFERENCE = code(
    "unknown-reference",
    "A reference names nothing that is declared",
    trigger="a pool, site, tenant, policy, parent or market pool that this fleet does not declare",
)
OWN_FLEET_REFERENCE = code(
    "own-fleet-reference",
    "An object of the same fleet is referred to by fleet and key",
    trigger="`this-fleet/key` where the object's name belongs",
)

KEY = "idempotencyKey"

Place = Callable[[], int]
"""Where a reference is written; asked only when it is wrong."""


class References:
    """The names of a merged fleet and what they stand for. `externals` counts references to other fleets' objects."""

    def __init__(self, root: Mapping, problems: Problems, *, fleet: str, tenant: str, incomplete: bool) -> None:
        self._problems = problems
        self._fleet = fleet
        self._implicit = {ROOT_TENANT, tenant}
        self._incomplete = incomplete
        self._keys = {section: _keys(root.entries.get(section)) for section in SECTIONS if section != "policies"}
        self.externals: set[tuple[str, str]] = set()
        """(section, `other-fleet/key`)."""

    def key(self, section: str, name: str) -> str:
        """The key of an object of this fleet."""
        return self._keys[section][name]

    def resolve(self, section: str, text: str, at: Place) -> str:
        """The key that `text` stands for, or `other-fleet/key`; reports what names nothing and returns it as it is."""
        if "/" in text:
            return self._external(section, text, at)
        found = self._keys[section].get(text)
        if found is None:
            self._unknown(section, text, at)
        return text if found is None else found

    def resolve_tenant(self, text: str, at: Place, *, or_any: bool = False) -> str:
        """The id of a tenant: declared here, the acting one, root, or another fleet's."""
        if "/" in text:
            return self._external("tenants", text, at).partition("/")[2] or text
        found = self._keys["tenants"].get(text)
        if found is not None:
            return found
        if text not in self._implicit and not (or_any and text == ANY_TENANT):
            self._unknown("tenants", text, at)
        return text

    def _external(self, section: str, text: str, at: Place) -> str:
        fleet, _, key = text.partition("/")
        if fleet == self._fleet:
            name = next((name for name, known in self._keys[section].items() if known == key), None)
            mend = f"write `{name}`" if name else "write the object's name"
            self._problems.add(OWN_FLEET_REFERENCE, f"{shown(text)} is an object of this fleet; {mend}", at())
        else:
            self.externals.add((section, text))
        return text

    def _unknown(self, section: str, text: str, at: Place) -> None:
        if self._incomplete:  # it may be in the part that could not be read, which is reported
            return
        known = set(self._keys[section]) | (self._implicit if section == "tenants" else set())
        hint = did_you_mean(text, known) or "; declare it, or write other-fleet/key for an object of another fleet"
        self._problems.add(UNKNOWN_REFERENCE, f"`{section}` has no {shown(text)}{hint}", at())


def _keys(section: object) -> dict[str, str]:
    if not isinstance(section, Mapping):
        return {}
    return {name: _key(node, name) for name, node in section.entries.items()}


def _key(node: object, name: str) -> str:
    if isinstance(node, Mapping):
        given = node.entries.get(KEY)
        if isinstance(given, Scalar) and not is_absent(given):
            return given.text
    return name
