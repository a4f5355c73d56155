"""Where something in a merged and converted fleet is written: in its object, or in the defaults that filled it in."""

from __future__ import annotations

from fleetctl.config.merge import DEFAULTS
from fleetctl.config.nodes import Mapping, Node, Scalar, Sequence, is_absent
from fleetctl.config.schema import Path


class Places:
    """Paths of the converted fleet to places in its files."""

    def __init__(self, root: Mapping) -> None:
        self._root = root

    def node(self, path: Path) -> Node | None:
        """What is written at a path, in the object or in the defaults; None when nothing is."""
        node: Node | None = self._root
        for depth, step in enumerate(path):
            inner = _step(node, step)
            node = self._default(path[0], step) if inner is None and depth == 2 else inner
        return node

    def value(self, path: Path) -> int:
        """The place of a value; of the name of the nearest thing around it when it is not written anywhere."""
        node, key_at = self._find(path)
        return node.at if key_at is None else key_at

    def key(self, path: Path, name: str) -> int:
        """The place of a key of the mapping at `path`."""
        node, _ = self._find(path)
        if isinstance(node, Mapping) and name in node.entries:
            return node.key_at(name)
        return self.value(path)

    def is_quoted(self, path: Path) -> bool:
        """Whether the value is a quoted or block scalar."""
        node, _ = self._find(path)
        return isinstance(node, Scalar) and not node.plain

    def _find(self, path: Path) -> tuple[Node, int | None]:
        """The node at a path; or the last one on the way to it, with the place of that one's key."""
        node: Node = self._root
        at = node.at
        for depth, step in enumerate(path):
            inner = _step(node, step)
            if inner is None and depth == 2:
                inner = self._default(path[0], step)
            if inner is None:
                return node, at
            at = node.key_at(str(step)) if isinstance(node, Mapping) and str(step) in node.entries else inner.at
            node = inner
        return node, None

    def _default(self, section: str | int, field: str | int) -> Node | None:
        node: Node | None = self._root
        for step in (DEFAULTS, section, field):
            node = _step(node, step)
        return node


def _step(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, Mapping):
        found = node.entries.get(str(step))
        return None if is_absent(found) else found
    if isinstance(node, Sequence) and isinstance(step, int):
        given = [item for item in node.items if not is_absent(item)]
        return given[step] if step < len(given) else None
    return None
