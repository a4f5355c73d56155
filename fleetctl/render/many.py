"""Plans of many operations, for people: the same facts in fewer lines, so that what is unlike the rest stands out.

Nothing is left out of the operations: each object is named, and neighbours that change alike share one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from fleetctl.frozen import dataclass
from fleetctl.model.ids import Kind
from fleetctl.model.operation import VERBS, Operation
from fleetctl.render.document import Block, Change, Column, Heading, Table
from fleetctl.render.words import verb_word

MANY = 40
"""Operations, or rows of impact, from which on a plan is shown in this way."""
_ALIKE = 3  # as many neighbours share a block


def summary(operations: Sequence[Operation]) -> Iterator[Block]:
    """How many operations there are of each verb on each kind."""
    found = Counter((item.kind, item.verb) for item in operations)
    verbs = [verb for verb in VERBS if any(item.verb == verb for item in operations)]
    kinds = list(dict.fromkeys(item.kind for item in operations))
    yield Heading("Summary")
    yield Table(
        (Column("kind"), *(Column(verb, right=True) for verb in verbs)),
        [(kind, *(str(found[kind, verb] or "-") for verb in verbs)) for kind in kinds],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What changes for a tenant: one figure of one object, or of as many as `subject` says. `unit` is `uj` for energies."""

    tenant: str
    subject: str
    resource: str
    unit: str
    before: int
    after: int
    in_use: int
    effect: str
    more: str = ""

    @property
    def queues(self) -> bool:
        """Whether something will wait that is not said by the figures."""
        return self.in_use > self.after and bool(self.more)


def added_up(figures: Sequence[Figure]) -> list[Figure]:
    """Figures of one tenant, resource and effect as one, in the order of the first of each."""
    sums: dict[tuple[str, str, str, str], list[Figure]] = {}
    for item in figures:
        sums.setdefault((item.tenant, item.resource, item.unit, item.effect), []).append(item)
    return [
        replace(
            items[0],
            subject=str(len(items)),
            before=sum(item.before for item in items),
            after=sum(item.after for item in items),
            in_use=sum(item.in_use for item in items),
            more="; ".join(dict.fromkeys(item.more for item in items if item.queues)),
        )
        for items in sums.values()
    ]


def shared_blocks(
    operations: Sequence[Operation], block_of: Callable[[Operation], Change], place_of: Callable[[Operation], str]
) -> Iterator[Change]:
    """The operations' blocks in their order. `block_of` gives one without its place, `place_of` the place or nothing."""
    made = [(item, block_of(item)) for item in operations]
    for _, group in groupby(made, lambda pair: (pair[0].verb, pair[0].kind, pair[1].note, tuple(pair[1].lines))):
        run = list(group)
        if len(run) < _ALIKE:
            yield from (_short(_placed(block, place_of(item))) for item, block in run)
            continue
        first, block = run[0]
        names = ", ".join(item.label for item, _ in run)
        title = f"{verb_word(first.verb, first.kind)} {len(run)} {plural(first.kind)} alike"
        yield replace(block, title=title, lines=(*block.lines, (" ", names)))


def plural(kind: Kind) -> str:
    """`offers`, `entitlements`, `market-pools`."""
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _placed(block: Change, place: str) -> Change:
    note = "; ".join(part for part in (place, block.note) if part)
    return Change(block.mark, block.title, note, block.lines, block.tone)


def _short(block: Change) -> Change:
    """A creation with its fields in one line, which wraps."""
    if len(block.lines) < _ALIKE or any(mark != "+" for mark, _ in block.lines):
        return block
    return Change(
        block.mark, block.title, block.note, (("+", "; ".join([text for _, text in block.lines])),), block.tone
    )
