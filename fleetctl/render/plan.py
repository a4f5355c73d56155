"""A plan for people, made from its file alone: what will be done is read from the digested body, what it means from its context.

Dangers come first, then who gains and loses, then every operation in the order in which it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fleetctl.model.operation import VERBS, Operation
from fleetctl.plan.compare import changed_paths
from fleetctl.plan.dangers import NOBODY, Danger, unaccepted
from fleetctl.plan.planfile import PlanFile
from fleetctl.plan.policylists import explained, is_policy_list
from fleetctl.render.actors import NOBODY_DID, mover_words
from fleetctl.render.document import (
    Block,
    Change,
    Column,
    Document,
    Facts,
    Heading,
    Items,
    Paragraph,
    Table,
    Tone,
    Verbatim,
    Verdict,
)
from fleetctl.render.loose import Loose
from fleetctl.render.many import MANY, Figure, added_up, shared_blocks, summary
from fleetctl.render.words import (
    CAUSES,
    MARKS,
    Names,
    counted,
    field_and_value,
    in_order,
    leaves,
    leaves_below,
    plain,
    shown_field,
    shown_value,
    verb_word,
)
from fleetctl.units import format_energy


def plan_json(file: PlanFile) -> dict[str, Any]:
    """The plan file with `result` beside `body`; apply takes it as it is."""
    return {"result": plan_result(file), **file.to_json()}


def plan_result(file: PlanFile) -> str:
    return "planned" if file.body.operations else "nothing-to-do"


def unaccepted_dangers(file: PlanFile, now_ms: int) -> list[tuple[Danger, str]]:
    """The dangers of a plan, as planned, that its own acceptances do not cover at this moment, each with why.

    Raises BadInput for a context whose dangers cannot be read.
    """
    planned = file.planned_figures()
    return unaccepted(planned_dangers(file), file.body.acceptances, planned, now_ms)


def planned_dangers(file: PlanFile) -> list[Danger]:
    """The dangers that the plan was made with."""
    figures = file.planned_figures()
    return [
        Danger(
            kind=item.text("kind"),  # type: ignore[arg-type]  # shown as it stands; apply computes its own
            subject=item.text("object"),
            detail=item.text("detail"),
            figures=figures[item.text("id")],
        )
        for item in Loose(file.context).objects("dangers")
        if item.text("id") in figures
    ]


def plan_document(file: PlanFile, *, now_ms: int, apply_with: Sequence[str]) -> Document:
    """The whole plan. `apply_with` are the exact commands that would apply it. Raises BadInput as `unaccepted_dangers`."""
    context = Loose(file.context)
    open_dangers = {danger.id: why for danger, why in unaccepted_dangers(file, now_ms)}
    dangers = planned_dangers(file)
    return [
        _verdict(file, len(dangers), len(open_dangers)),
        *_tampered(context),
        *_dangers(dangers, open_dangers),
        *(summary(file.body.operations) if len(file.body.operations) > MANY else ()),
        *_impact(context),
        *_operations(file, context),
        *_ignored(context),
        *_warnings(context),
        *_footer(
            file,
            context,
            apply_with if file.body.operations and not any(_tampered(context)) else (),
            refused=bool(open_dangers),
        ),
    ]


def counts(operations: Sequence[Operation]) -> str:
    """`3 to create, 1 to update`, verbs in their order; `nothing to do`."""
    found = Counter(item.verb for item in operations)
    return ", ".join(f"{found[verb]} to {verb}" for verb in VERBS if found[verb]) or "nothing to do"


def _verdict(file: PlanFile, dangers: int, open_dangers: int) -> Verdict:
    text = f"Plan for fleet {file.body.fleet}: {counts(file.body.operations)}"
    if dangers:
        text += f"; {counted(dangers, 'danger')}, {open_dangers or 'none'} not accepted"
    return Verdict(text, "bad" if open_dangers else "warn" if dangers else "good")


def _dangers(dangers: Sequence[Danger], open_dangers: Mapping[str, str]) -> Iterator[Block]:
    if not dangers:
        return
    yield Heading("Dangers")
    points: list[tuple[str, Tone | None]] = []
    for danger in dangers:
        why = open_dangers.get(danger.id)
        state = "accepted" if why is None else "not accepted" if why == NOBODY else f"not accepted: {why}"
        points.append((f"{danger.id} ({state}): {danger.detail}", "bad" if why else "warn"))
    yield Items(points)
    if open_dangers:
        first = next(danger.id for danger in dangers if danger.id in open_dangers)
        yield Paragraph(
            f"Apply refuses these until they are accepted: in the fleet files under `accept` (danger: {first}), or with "
            f"`--accept {first}`.",
            "dim",
        )


def _impact(context: Loose) -> Iterator[Block]:
    figures = [_figure(row) for row in context.objects("impact")]
    added = len(figures) > MANY
    if figures:
        yield Heading("Impact, added up by tenant" if added else "Impact")
        columns = (
            Column("tenant"),
            Column("objects" if added else "object", right=added),
            Column("resource"),
            Column("before → after", right=True),
            Column("in use", right=True),
            Column("effect"),
        )
        shown = added_up(figures) if added else figures
        rows = [
            (
                item.tenant,
                item.subject,
                item.resource,
                f"{_amount(item, item.before)} → {_amount(item, item.after)}",
                _amount(item, item.in_use),
                item.effect,
            )
            for item in shown
        ]
        yield Table(columns, rows, ["warn" if item.queues else None for item in shown])
    points: list[tuple[str, Tone | None]] = [
        (f"{item.tenant}, {item.resource} of {item.subject}: {item.more}", "warn") for item in figures if item.queues
    ]
    if points:
        yield Items(points)
    yield from _offered(context)


def _offered(context: Loose) -> Iterator[Block]:
    pools = list(context.objects("oversubscription"))
    over = [row for row in pools if row.integer("offeredAfter") > row.integer("inventoryGpus")]
    listed = over if len(pools) > MANY else pools
    points: list[tuple[str, Tone | None]] = [(_offers_of(row), None) for row in listed]
    if len(listed) < len(pools):
        points.append(
            (f"{counted(len(pools) - len(listed), 'more pool')} with no more offered than in inventory", None)
        )
    if points:
        yield Heading("GPUs offered to other tenants")
        yield Items(points)


def _offers_of(row: Loose) -> str:
    before, after, there = (row.integer(name) for name in ("offeredBefore", "offeredAfter", "inventoryGpus"))
    return f"{row.text('pool')}: {before} → {after} GPUs offered, {there} in inventory"


def _figure(row: Loose) -> Figure:
    effect, _, more = row.text("effect").partition("; ")
    return Figure(
        tenant=row.text("tenant"),
        subject=row.text("object"),
        resource=row.text("resource"),
        unit=row.text("unit"),
        before=row.integer("before"),
        after=row.integer("after"),
        in_use=row.integer("inUse"),
        effect=effect,
        more=more,
    )


def _amount(item: Figure, value: int) -> str:
    return format_energy(value) if item.unit == "uj" else str(value)


def _operations(file: PlanFile, context: Loose) -> Iterator[Block]:
    if not file.body.operations:
        return
    yield Heading("Operations, in the order in which they are done")
    # The body's own names come last: nothing in the context can give one of its ids another name.
    own = {str(item.id): item.label for item in file.body.operations if item.kind != "tenant"}
    names = {**context.texts("names"), **own}
    spans = context.texts("spans")
    removed, fields = context.nested("removed"), context.nested("fields")
    yield from operation_blocks(
        file.body.operations, names, lambda item: spans.get(item.label, ""), lambda item: _causes(removed, fields, item)
    )


def operation_blocks(
    operations: Sequence[Operation],
    names: Names,
    place_of: Callable[[Operation], str] = lambda _: "",
    causes_of: Callable[[Operation], Mapping[str, str]] = lambda _: {},
) -> Iterator[Change]:
    """Every operation, in order; where there are many, those that are alike in one block."""
    if len(operations) <= MANY:
        yield from (operation_block(item, names, place_of(item), causes_of(item)) for item in operations)
    else:
        yield from shared_blocks(
            operations, lambda item: operation_block(item, names, "", causes_of(item), whole_lists=True), place_of
        )


def operation_block(
    item: Operation,
    names: Names,
    place: str = "",
    causes: Mapping[str, str] | None = None,
    *,
    whole_lists: bool = False,
) -> Change:
    """One operation with the fields that it changes. `whole_lists`: the lists of a policy are not taken apart, which takes time."""
    notes = [place] if place else []
    if item.verb in ("remove", "release", "adopt") and item.reason:
        notes.append(item.reason)
    if item.verb == "create" and item.reason not in ("declared", "called", ""):
        notes.append(": ".join(part for part in (item.reason, (causes or {}).get("", "")) if part))
    if not item.reversible:
        notes.append("cannot be undone")
    return Change(
        MARKS[item.verb],
        f"{verb_word(item.verb, item.kind)} {item.label}",
        "; ".join(notes),
        tuple(_lines(item, names, causes or {}, whole_lists)),
    )


def _lines(item: Operation, names: Names, causes: Mapping[str, str], whole_lists: bool) -> Iterator[tuple[str, str]]:
    if item.after is None or item.verb == "release":
        return
    if item.before is None:
        for path, value in leaves(in_order(item.kind, item.after)):
            if value or type(value) is int or type(value) is str:
                yield "+", ": ".join(field_and_value(path, value, names))
        return
    for path, after, before in sorted(changed_paths(item.after, item.before), key=lambda entry: entry[0]):
        cause = causes.get(path, "")
        for inner, was, now in _unfolded(path, before, after, whole_lists):
            shown = f"{shown_value(inner, was, names)} → {shown_value(inner, now, names)}"
            yield "~", f"{shown_field(inner)}: {shown}{f' ({cause})' if cause else ''}"


def _unfolded(path: str, before: Any, after: Any, whole_lists: bool) -> Iterator[tuple[str, Any, Any]]:
    """A change as (path, before, after); a mapping that appears or goes as a whole, and a list of a policy, entry by entry."""
    if isinstance(before, list) and isinstance(after, list) and not whole_lists and is_policy_list(path):
        yield from explained(path, before, after) or [(path, before, after)]
        return
    whole = after if before is None else before if after is None else None
    if not isinstance(whole, Mapping) or not whole or "$decimal" in whole:
        yield path, before, after
        return
    for inner, value in leaves_below(path, whole):
        yield (inner, None, value) if before is None else (inner, value, None)


def _causes(removed: Loose, fields: Loose, item: Operation) -> dict[str, str]:
    """What moved each field; under the empty name who removed an object that is made again."""
    if item.verb == "create":
        gone = removed.nested(item.label)
        return {"": _by(gone)} if gone.text("who") else {}
    return {entry.text("field"): _cause(entry) for entry in fields.objects(item.label)}


def _cause(entry: Loose) -> str:
    """Which side moved the field and, for the live side, who did it and when."""
    cause = entry.text("cause")
    if cause not in ("drift", "both"):
        return CAUSES.get(cause, "")
    return f"{CAUSES[cause]}: {_by(entry) if entry.text('who') else NOBODY_DID}"


def _by(entry: Loose) -> str:
    return f"by {mover_words(entry.text('who'), entry.text('when'), entry.integer('entry'))}"


def _ignored(context: Loose) -> Iterator[Block]:
    points: list[tuple[str, Tone | None]] = []
    for row in context.objects("ignored"):
        field = row.text("field")
        declared, live = shown_value(field, row.value("declared"), {}), shown_value(field, row.value("live"), {})
        until = f", until {row.text('until')}" if row.text("until") else ""
        why = f"{row.text('owner')}: {row.text('reason')}{until}"
        points.append((f"{row.text('object')} {shown_field(field)}: stays {live}, declared {declared} ({why})", None))
    if points:
        yield Heading("Left as it is live (ignoreDrift)")
        yield Items(points)


_TAMPERED = "state-tampered"


def _tampered(context: Loose) -> Iterator[Block]:
    """The one warning that makes all the rest worthless."""
    for row in context.objects("warnings"):
        if row.text("code") == _TAMPERED:
            yield Paragraph(f"Tampered, and refused by apply: {row.text('detail')}", "bad")


def _warnings(context: Loose) -> Iterator[Block]:
    points: list[tuple[str, Tone | None]] = []
    for row in context.objects("warnings"):
        if row.text("code") == _TAMPERED:
            continue
        place = f"{row.text('file')}:{row.integer('line')}:{row.integer('column')}: " if row.text("file") else ""
        points.append((f"{place}{row.text('code')}: {row.text('detail')}", "warn"))
    if points:
        yield Heading("Warnings")
        yield Items(points)


def _footer(file: PlanFile, context: Loose, apply_with: Sequence[str], *, refused: bool) -> Iterator[Block]:
    body = file.body
    facts = [
        ("digest", file.digest),
        ("context", file.context_digest),
        ("engine", str(body.engine)),
        ("fleet", f"{body.fleet}, as tenant {body.tenant}"),
        ("commit", context.text("commit") or "none"),
        ("planned", f"{context.text('time')} by {context.text('tool')} on {context.text('host')}"),
        ("journal", counted(context.nested("journal").integer("length"), "entry", "entries")),
        (
            "live",
            f"{context.integer('owned')} owned by this fleet, {counted(context.integer('unowned'), 'other')} left alone",
        ),
    ]
    if body.acceptances:
        facts.append(("accepted", ", ".join(_acceptance(item.danger, item.until) for item in body.acceptances)))
    if file.signatures:
        facts.append(("signatures", str(len(file.signatures))))
    yield Facts(facts)
    if apply_with:
        yield Paragraph("Apply exactly this, once its dangers are accepted:" if refused else "Apply exactly this:")
        yield Verbatim(apply_with)


def _acceptance(danger: str, until: str | None) -> str:
    return f"{plain(danger, {})}{f' until {until}' if until else ''}"
