"""Pool policies: named ones, inline ones, and `from`, expanded to canonical form with the places of their fields.

`from` replaces whole top-level fields (pins: "YAML"). The form of each field is the table of `model.policy_fields`.
"""

from __future__ import annotations

from fleetctl.canonical import Json
from fleetctl.config.codes import did_you_mean, printable, shown
from fleetctl.config.nodes import Mapping, Node, Scalar, Sequence, is_absent
from fleetctl.config.plain import as_plain
from fleetctl.config.problems import Problems
from fleetctl.config.references import UNKNOWN_REFERENCE
from fleetctl.diagnostics import code
from fleetctl.frozen import dataclass
from fleetctl.model.policy_fields import DURATION_NAMES, POLICY, Field, Kind, Path, canonical_name, field_at
from fleetctl.model.policy_forms import Misfit, scalar_from_text
from fleetctl.units import UnitError

POLICY_CYCLE = code(
    "policy-cycle", "Policies start from each other", trigger="`from` that leads back to its own policy"
)

FROM = "from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy in canonical form. `misfits` did not convert and are missing from `body`; `layers` begin with the nearest."""

    body: dict[str, Json]
    misfits: tuple[Misfit, ...]
    layers: tuple[Mapping, ...]

    def place(self, path: Path) -> int | None:
        """Where a field is written: its key, an item of a list, or the nearest thing around it that is written."""
        for layer in self.layers:
            if path and not is_absent(layer.entries.get(str(path[0]))):
                return _place_in(layer, path)
        return self.layers[0].at if self.layers else None


EMPTY = Policy(body={}, misfits=(), layers=())


class Policies:
    """The named policies of a fleet, and what a pool's `policy` comes to. Each named one is expanded once."""

    def __init__(self, section: Mapping | None, problems: Problems, *, incomplete: bool) -> None:
        self._nodes = section.entries if section is not None else {}
        self._problems = problems
        self._incomplete = incomplete
        self._named: dict[str, Policy] = {}
        self._open: list[str] = []

    def of_pool(self, node: Node | None) -> Policy:
        """The policy of a pool whose `policy` field is `node`."""
        if node is None:
            return EMPTY
        if isinstance(node, Scalar):
            return self._reference(node)
        return self._expand(node) if isinstance(node, Mapping) else EMPTY

    def named(self) -> list[Policy]:
        """Every named policy, used or not."""
        return [self._of_name(name) for name in self._nodes]

    def _reference(self, node: Scalar) -> Policy:
        if node.text in self._nodes:
            return self._of_name(node.text)
        if not self._incomplete:
            hint = did_you_mean(node.text, self._nodes)
            detail = f"no policy {shown(node.text)} is declared{hint or '; declare it under `policies`'}"
            self._problems.add(UNKNOWN_REFERENCE, detail, node.at)
        return EMPTY

    def _of_name(self, name: str) -> Policy:
        if name not in self._named:
            node = self._nodes[name]
            self._open.append(name)
            self._named[name] = self._expand(node) if isinstance(node, Mapping) else EMPTY
            self._open.pop()
        return self._named[name]

    def _expand(self, node: Mapping) -> Policy:
        base = self._base(node.entries.get(FROM))
        misfits: list[Misfit] = []
        own = _object(POLICY, node, (), misfits, self._problems)
        kept = {name: value for name, value in base.body.items() if name not in own}
        below = [item for item in base.misfits if is_absent(node.entries.get(str(item.path[0])))]
        return Policy(body=kept | own, misfits=(*misfits, *below), layers=(node, *base.layers))

    def _base(self, node: Node | None) -> Policy:
        if not isinstance(node, Scalar) or is_absent(node):
            return EMPTY
        if node.text in self._open:
            chain = " → ".join(map(printable, [*self._open[self._open.index(node.text) :], node.text]))
            self._problems.add(POLICY_CYCLE, f"{chain}: a policy cannot start from itself; break the circle", node.at)
            return EMPTY
        return self._reference(node)


def _object(known: Field, node: Mapping, path: Path, misfits: list[Misfit], problems: Problems) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for name, item in node.entries.items():
        if is_absent(item) or (path == () and name == FROM):
            continue
        here = (*path, name)
        inner = known.fields.get(name)
        if path == () and name in DURATION_NAMES:
            detail = f"`{name}` is a reserved name; write `{DURATION_NAMES[name]}: 6h`"
            misfits.append(Misfit(path=here, detail=detail))
        elif inner is None:
            out[name] = as_plain(item, problems)
        else:
            value = _value(inner, item, here, misfits, problems)
            if value is not None:
                out[canonical_name(name, inner)] = value
    return out


def _value(known: Field, node: Node, path: Path, misfits: list[Misfit], problems: Problems) -> Json | None:
    """The canonical value of a known field, or None with a misfit."""
    kind = known.kind
    if kind is Kind.OPEN:
        return as_plain(node, problems)
    if kind in (Kind.OBJECT, Kind.MAP):
        if isinstance(node, Mapping):
            return _mapping(known, node, path, misfits, problems)
        misfits.append(Misfit(path=path, detail="a mapping is needed here; write {name: value}"))
    elif kind is Kind.LIST:
        if isinstance(node, Sequence):
            return _list(known, node, path, misfits, problems)
        misfits.append(Misfit(path=path, detail="a list is needed here; write [a, b]"))
    elif isinstance(node, Scalar):
        try:
            return scalar_from_text(known, node.text, plain=node.plain)
        except UnitError as error:
            misfits.append(Misfit(path=path, detail=str(error)))
    else:
        misfits.append(Misfit(path=path, detail=f"a {kind.value} is needed here"))
    return None


def _mapping(known: Field, node: Mapping, path: Path, misfits: list[Misfit], problems: Problems) -> Json:
    if known.kind is Kind.OBJECT:
        return _object(known, node, path, misfits, problems)
    assert known.item is not None
    out: dict[str, Json] = {}
    for name, item in node.entries.items():
        if is_absent(item):
            continue
        value = _value(known.item, item, (*path, name), misfits, problems)
        if value is not None:
            out[name] = value
    return out


def _list(known: Field, node: Sequence, path: Path, misfits: list[Misfit], problems: Problems) -> Json:
    assert known.item is not None
    given = [item for item in node.items if not is_absent(item)]
    values = [_value(known.item, item, (*path, index), misfits, problems) for index, item in enumerate(given)]
    out = [value for value in values if value is not None]
    # Sets are compared as sets; only text is ever declared unordered.
    return sorted(out, key=str) if known.unordered else out


def _place_in(node: Node, path: Path) -> int:
    """The place of a scalar, or of the key of a mapping or list."""
    at = node.at
    for depth, step in enumerate(path):
        if isinstance(node, Mapping) and step in node.entries:
            at, node = node.key_at(str(step)), node.entries[str(step)]
        elif isinstance(node, Sequence) and isinstance(step, int):
            known = field_at(path[:depth])
            given = [item for item in node.items if not is_absent(item)]
            if step >= len(given) or (known is not None and known.unordered):
                return at
            node = given[step]
            at = node.at
        else:
            return at
    return node.at if isinstance(node, Scalar) else at
