"""A path to a declared fleet, with every problem that its files have. Works offline; writes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fleetctl.config.build import Builder, Written
from fleetctl.config.discover import FileBytes, read_files
from fleetctl.config.explain import Explainer
from fleetctl.config.lints import Lints, lint, lint_ignored
from fleetctl.config.loaded import Inventory, KnownPools, LoadResult
from fleetctl.config.merge import DEFAULTS, LISTS, SECTIONS, merge
from fleetctl.config.nodes import Mapping as MappingNode
from fleetctl.config.places import Places
from fleetctl.config.policies import Policies
from fleetctl.config.problems import Problems
from fleetctl.config.reader import collector_paused
from fleetctl.config.references import References
from fleetctl.config.rules import Rules
from fleetctl.config.schema import Path, converter, is_valid
from fleetctl.config.statements import Statements
from fleetctl.config.tree import FleetTree, grow_tree
from fleetctl.diagnostics import Diagnostic, code
from fleetctl.model.declared import Fleet
from fleetctl.model.ids import FleetName, TenantId

NO_OBJECTS = code(
    "no-objects",
    "The fleet files declare no object",
    trigger="files without any tenant, site, pool, offer, entitlement, market pool, order or transfer",
    exit_code=3,
)
PLAN_GIVEN = code(
    "plan-not-fleet",
    "The file is a plan, not a fleet",
    trigger="`validate` or `plan` of a file that `plan -o` wrote",
)
_PLAN_FIELDS = {"formatVersion", "body", "digest"}
_PLAN_DETAIL = "this is a saved plan; `fleetctl show` shows it and `fleetctl apply` applies it, a fleet is a folder or a *.yaml file"


def load_fleet(path: str | os.PathLike[str], *, inventory: Inventory | None = None) -> LoadResult:
    """Read and check every fleet file of `path`. Never raises for what is in them.

    `inventory` is asked once, and only for a fleet without errors: lints compare it with what is declared.
    """
    return load_files(*read_files(path), inventory=inventory, alone=os.path.isfile(path))


def load_files(
    files: Sequence[FileBytes], unreadable: Sequence[Diagnostic], *, alone: bool, inventory: Inventory | None = None
) -> LoadResult:
    """As `load_fleet`, of files that are read already. `alone`: the path is one file and no folder."""
    with collector_paused():
        return _Load(grow_tree(files, unreadable), inventory, alone=alone).result()


class _Load:
    """The steps from tree to fleet, each seeing what the one before has left."""

    def __init__(self, tree: FleetTree, inventory: Inventory | None, *, alone: bool) -> None:
        self.tree = tree
        self.alone = alone
        self.inventory = inventory
        self.problems: Problems = tree.problems
        self.externals: tuple[tuple[str, str], ...] = ()

    def result(self) -> LoadResult:
        fleet = self._fleet()
        return LoadResult(
            fleet=None if self.problems.any_error else fleet,
            diagnostics=self.problems.sorted(),
            files={source.name: source.digest() for source in self.tree.sources.files()},
            externals=self.externals,
        )

    def _fleet(self) -> Fleet | None:
        if not self.tree.documents:
            self._report_nothing()
            return None
        if self.alone and _PLAN_FIELDS <= self.tree.documents[0].entries.keys():
            self.problems.add(PLAN_GIVEN, _PLAN_DETAIL, self.tree.documents[0].at)
            return None
        root = merge(self.tree.documents, self.problems)
        places = Places(root)
        data = _with_defaults(converter()(root, self.problems))
        explainer = Explainer(places, self.problems, alone=self.alone)
        at_fault: set[Path] = set()
        if not is_valid(data):
            at_fault = explainer.report(data, incomplete=self.tree.incomplete)
        fleet = self._declared(root, places, data, at_fault)
        explainer.report_rest()
        return fleet

    def _declared(self, root: MappingNode, places: Places, data: dict[str, Any], at_fault: set[Path]) -> Fleet:
        name, tenant = str(data.get("fleet", "")), str(data.get("tenant", ""))
        incomplete = self.tree.incomplete
        references = References(root, self.problems, fleet=name, tenant=tenant, incomplete=incomplete)
        named = root.entries.get("policies")
        policies = Policies(named if isinstance(named, MappingNode) else None, self.problems, incomplete=incomplete)
        builder = Builder(
            places=places, references=references, policies=policies, problems=self.problems, tenant=tenant
        )
        objects: list[Written] = []
        for section in SECTIONS:
            if section != "policies" and section in data:
                objects += builder.objects(section, _fitting(section, data[section], at_fault))
        if not objects:
            self._report_nothing()
        lints = Lints(self.problems, self.tree.allowed)
        Rules(objects, places, self.problems, lints, tenant=tenant).check(policies)
        lint(objects, places, lints, self._known(FleetName(name)))
        self.externals = tuple(sorted(references.externals))
        labels = {item.declared.label for item in objects}
        statements = Statements(
            {section: data[section] for section in LISTS if section in data and not _fails(section, at_fault)},
            places,
            self.problems,
        )
        ignored = list(statements.ignore_drift())
        if not at_fault:
            lint_ignored(ignored, [item.declared for item in objects], lints)
        return Fleet(
            name=FleetName(name),
            tenant=TenantId(tenant),
            objects=tuple(item.declared for item in objects),
            accept=tuple(statements.accept()),
            ignore_drift=tuple(entry for entry, _ in ignored),
            release=tuple(statements.release(labels)),
        )

    def _known(self, fleet: FleetName) -> KnownPools:
        return {} if self.inventory is None or self.problems.any_error else self.inventory(fleet)

    def _report_nothing(self) -> None:
        if not self.tree.incomplete and not self.problems.any_error:
            detail = "nothing is declared in these files; an empty fleet is never taken to mean that all shall go"
            if self.alone:
                detail += "; if the file is a part of a fleet, name its folder"
            self.problems.add_at(NO_OBJECTS, detail, None)


def _with_defaults(data: dict[str, Any]) -> dict[str, Any]:
    """Fill whole top-level fields that objects leave out."""
    for section, fields in data.get(DEFAULTS, {}).items():
        content = data.get(section)
        if isinstance(fields, dict) and isinstance(content, dict):
            for item in content.values():
                if isinstance(item, dict):
                    for name, value in fields.items():
                        item.setdefault(name, value)
    return data


def _fitting(section: str, content: Any, at_fault: set[Path]) -> dict[str, Any]:
    """The objects of a section that the schema takes."""
    if not isinstance(content, dict):
        return {}
    return {name: item for name, item in content.items() if (section, name) not in at_fault}


def _fails(section: str, at_fault: set[Path]) -> bool:
    return any(path[:1] == (section,) for path in at_fault)
