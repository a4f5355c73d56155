"""A plan for people, from its file alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.plan.context import Culprit
from fleetctl.plan.planfile import PlanFile
from fleetctl.render.many import MANY
from fleetctl.render.plan import plan_document, plan_json, unaccepted_dangers
from fleetctl.render.text import to_text
from fleetctl.units import UnixMs, format_ms
from tests.support.worlds import NOW, World, fleet

BEFORE: dict[str, dict[str, Any]] = {
    "tenant/acme": {},
    "tenant/beta": {},
    "site/fra1": {},
    "pool/p1": {"policy": {"maxPendingMs": 21_600_000}},
    "pool/p2": {},
    "offer/p1/acme": {"quota": {"gpu": 32}},
    "offer/p2/acme": {"quota": {"gpu": 8}},
    "entitlement/ent": {"tenant": "acme", "guarantee": {"energyUj": 40 * 10**12, "devices": 8}},
}
AFTER = {
    **{label: fields for label, fields in BEFORE.items() if label not in ("pool/p2", "offer/p2/acme")},
    "pool/p1": {"policy": {"maxPendingMs": 43_200_000}, "name": "frankfurt"},
    "pool/p3": {"description": "new one", "ownerQuota": {"gpu": 0}},
    "offer/p1/acme": {"quota": {"gpu": 16}},
    "offer/p1/beta": {"quota": {"gpu": 4}},
    "entitlement/ent": {
        "tenant": "acme",
        "guarantee": {"energyUj": 20 * 10**12, "devices": 8},
        "limit": {"energyUj": 60 * 10**12},
    },
}


def a_plan(**changes: Any) -> PlanFile:
    world = World()
    world.converge(fleet(BEFORE), commit="a" * 40)
    world.use(booked={("pool/p1", "acme"): {"reservations": 3, "gpu": 24}}, inventory={"pool/p1": 64})
    wanted = fleet(AFTER, **changes)
    return world.file(world.plan(wanted), wanted, commit="b" * 40)


def text(file: PlanFile, now: UnixMs = NOW) -> str:
    return to_text(plan_document(file, now_ms=now, apply_with=["fleetctl apply plan.json"]), columns=100)


def test_the_whole_page() -> None:
    """plan-apply.md: verdict with counts, dangers first, impact, operations in apply order, footer with digest and commit."""
    file = a_plan()
    assert text(file) == PAGE.format(digest=file.digest, context=file.context_digest)


def test_a_changed_list_of_a_policy_is_explained_entry_by_entry() -> None:
    """pins.md, "deepdiff": changed policy bodies are explained to people. Past `MANY` operations lists are shown whole."""
    before, after = (
        {"policy": {"acceptance": [{"kind": "diag.nvml"}, {"kind": "nccl", "with": {"minGbps": floor}}]}}
        for floor in (300, 400)
    )

    def page(pools: int) -> str:
        world = World()
        world.converge(fleet({"site/fra1": {}, **{f"pool/p{number}": before for number in range(pools)}}))
        wanted = fleet({"site/fra1": {}, **{f"pool/p{number}": after for number in range(pools)}})
        return text(world.file(world.plan(wanted), wanted))

    assert "  ~ update pool/p0\n      ~ policy.acceptance[1].with.minGbps: 300 → 400 (changed)\n" in page(1)
    assert "~ policy.acceptance: [{kind: diag.nvml}, {kind: nccl, with: {minGbps: 300}}] → [{kind:" in page(MANY + 1)


PAGE = """\
Plan for fleet eu: 2 to create, 3 to update, 2 to remove; 2 dangers, 2 not accepted

Dangers

- share:fleet/eu (not accepted): removes 1 of the fleet's 8 objects and 0 of its 64 GPUs in
  inventory: more than 10 %
- shrink-below-use:offer/p1/acme (not accepted): gpu 32 → 16 with 24 in use; what runs keeps
  running, nothing new fits until use falls

Apply refuses these until they are accepted: in the fleet files under `accept` (danger:
share:fleet/eu), or with `--accept share:fleet/eu`.

Impact

tenant  object           resource          before → after  in use  effect
acme    entitlement/ent  guarantee.energy   40 MJ → 20 MJ     0 J  loses
acme    offer/p1/acme    gpu                      32 → 16      24  loses
acme    offer/p2/acme    gpu                        8 → 0       0  loses
beta    offer/p1/beta    gpu                        0 → 4       0  gains

- acme, gpu of offer/p1/acme: what runs keeps running, new work queues until use falls by 8

GPUs offered to other tenants

- pool/p1: 32 → 20 GPUs offered, 64 in inventory

Operations, in the order in which they are done
  - withdraw offer/p2/acme  (left the files)
  ~ update pool/p1
      ~ name: p1 → frankfurt (changed)
      ~ policy.maxPending: 6h → 12h (changed)
  + create pool/p3
      + name: p3
      + site: site/fra1
      + class: metal-host
      + gpuModel: H100
      + sharing: exclusive
      + agent: bcd
      + ownerQuota.gpu: 0
      + description: new one
  ~ update offer/p1/acme
      ~ quota.gpu: 32 → 16 (changed)
  + create offer/p1/beta
      + name: beta
      + pool: pool/p1
      + to: beta
      + quota.gpu: 4
      + priority: 0
  ~ update entitlement/ent
      ~ guarantee.energy: 40 MJ → 20 MJ (changed)
      ~ limit.energy: absent → 60 MJ (changed)
  - archive pool/p2  (left the files; cannot be undone)

Warnings

- pool-key-changed: pool/p2 is archived and pool/p3 is created in its place; if it is the same pool
  under another name, write `idempotencyKey: p2`, and it keeps its machines and what runs on them

digest   {digest}
context  {context}
engine   eng_test
fleet    eu, as tenant root
commit   {commit}
planned  2026-11-30T00:00:00.000Z by test on test
journal  0 entries
live     8 owned by this fleet, 0 others left alone

Apply exactly this, once its dangers are accepted:

  fleetctl apply plan.json
""".replace("{commit}", "b" * 40)


def test_what_a_forged_plan_hides_is_written_out() -> None:
    """No fleet file brings such text in, and decide refuses it; whoever reads the plan before apply does has to see it."""
    file = a_plan()
    made = next(item for item in file.body.operations if item.label == "pool/p3")
    assert made.after is not None
    hidden = replace(made, after={**made.after, "description": "new \u202eone"})
    forged = replace(file.body, operations=tuple(hidden if item is made else item for item in file.body.operations))
    assert '+ description: "new \\u{202e}one"' in text(replace(file, body=forged))


def test_json_is_the_file_with_its_result() -> None:
    file = a_plan()
    assert plan_json(file) == {"result": "planned", **file.to_json()}


def test_acceptances_hold_to_the_end_of_their_day() -> None:
    danger = "shrink-below-use:offer/p1/acme"
    file = a_plan(accept=[{"danger": danger, "until": "2026-11-30"}, "share:fleet/eu"])
    day = 86_400_000
    assert [item.id for item, _ in unaccepted_dangers(file, NOW + day - 1)] == []
    assert [item.id for item, _ in unaccepted_dangers(file, NOW + day)] == [danger]
    assert f"{danger} (accepted)" in text(file)
    assert f"{danger} (not accepted: its acceptance is past its `until`)" in text(file, UnixMs(NOW + day))


def test_drift_is_told_from_change() -> None:
    from fleetctl.engine.builders import change
    from fleetctl.model.bodies import OfferBody

    world = World()
    world.converge(fleet(BEFORE))

    def edit(_snapshot: object, live: Any) -> OfferBody:
        return replace(live.body(), quota={"gpu": 40}, priority=5)

    world.call(change("offer", world.live("offer/p1/acme").id, edit))
    wanted = fleet({**BEFORE, "offer/p1/acme": {"quota": {"gpu": 16}}})
    eve = Culprit(actor="local:eve@desk", at_ms=NOW, entry=7)
    file = world.file(world.plan(wanted), wanted, culprits={("offer/p1/acme", "priority"): eve})
    shown = to_text(plan_document(file, now_ms=NOW, apply_with=[]), columns=200)
    assert (
        f"~ priority: 5 → 0 (drifted: by local:eve@desk (self-declared) at {format_ms(NOW)}, journal entry 7)" in shown
    )
    assert "~ quota.gpu: 40 → 16 (changed and drifted: nobody did it through the engine)" in shown


def many(quota: int, **odd: int) -> dict[str, dict[str, Any]]:
    """Fifty tenants with one offer each, of `quota` GPUs where `odd` does not say another figure."""
    tenants: dict[str, dict[str, Any]] = {f"tenant/t{number}": {} for number in range(50)}
    offers = {f"offer/p1/t{number}": {"quota": {"gpu": odd.get(f"t{number}", quota)}} for number in range(50)}
    return {"site/fra1": {}, "pool/p1": {}, **tenants, **offers}


def test_many_operations_that_are_alike_share_a_block_and_the_odd_one_stands_out() -> None:
    world = World()
    world.converge(fleet(many(8)))
    wanted = fleet(many(9, t20=90))
    page = text(world.file(world.plan(wanted), wanted))
    operations = page.partition("Operations, ")[2]
    assert "kind   update\noffer      50\n" in page
    assert "~ update offer/p1/t20\n      ~ quota.gpu: 8 → 90 (changed)\n" in operations
    assert operations.count("quota.gpu: 8 → 9 (changed)") == 2  # before and after the odd one: the order is kept
    for number in range(50):
        assert operations.count(f"offer/p1/t{number}") >= 1
    assert len(page.splitlines()) < 110


def test_many_creations_take_a_line_for_their_fields() -> None:
    world = World()
    wanted = fleet(many(8))
    page = text(world.file(world.plan(wanted), wanted))
    assert "  + create offer/p1/t7\n      + name: t7; pool: pool/p1; to: t7; quota.gpu: 8; priority: 0\n" in page


def test_the_impact_of_many_operations_is_added_up_by_tenant() -> None:
    world = World()
    before: dict[str, dict[str, Any]] = {"site/fra1": {}, "tenant/acme": {}, "tenant/beta": {}}
    before |= {f"pool/p{number}": {} for number in range(50)}
    world.converge(fleet(before))
    wanted = fleet(before | {f"offer/p{number}/acme": {"quota": {"gpu": number}} for number in range(50)})
    page = text(world.file(world.plan(wanted), wanted))
    assert "Impact, added up by tenant" in page
    assert "acme         49  gpu             0 → 1225       0  gains\n" in page


def test_ignored_drift_and_warnings_are_listed() -> None:
    world = World()
    world.converge(fleet(BEFORE))
    changed = {**BEFORE, "pool/p1": {"policy": {"maxPendingMs": 43_200_000}}}
    ignored = {"object": "pool/p1", "field": "policy.maxPendingMs", "until": "2027-01-31"}
    wanted = fleet(changed, ignore=[ignored], release=["pool/none"])
    shown = text(world.file(world.plan(wanted), wanted))
    assert "- pool/p1 policy.maxPending: stays 6h, declared 12h (sre: tuned live, until 2027-01-31)" in shown
    assert "release-no-effect: pool/none" in shown
    assert "nothing to do" in shown and "Apply exactly this" not in shown


def test_a_state_that_somebody_edited_is_the_first_thing_said_and_nothing_is_proposed() -> None:
    file = a_plan()
    found = {"code": "state-tampered", "detail": "rows that changed: pool/p1"}
    page = text(replace(file, context={**file.context, "warnings": [found]}))
    assert page.index("Tampered, and refused by apply: rows that changed: pool/p1") < page.index("Dangers")
    assert "Apply exactly this" not in page and "Warnings" not in page


_JSON = st.recursive(
    st.none() | st.text(max_size=8) | st.booleans() | st.integers(-5, 2**53 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_PARTS = "impact oversubscription fields ignored warnings names spans journal time tool host commit owned unowned config".split()
_FILE = a_plan()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(_PARTS), _JSON, max_size=6))
def test_a_context_of_any_shape_is_shown_and_hides_nothing(context: dict[str, Any]) -> None:
    """pins: unknown things are ignored in `context`; it decides nothing, so it must not break the view of what will be done."""
    shown = text(replace(_FILE, context={**_FILE.context, **context}))
    assert all(line.isprintable() for line in shown.splitlines())
    for item in _FILE.body.operations:
        assert item.label in shown


@pytest.mark.parametrize("kind", ["pool", "site"])
def test_the_context_cannot_give_an_object_of_the_plan_another_name(kind: str) -> None:
    world = World()
    wanted = fleet(BEFORE)
    file = world.file(world.plan(wanted), wanted)
    made = next(item for item in file.body.operations if item.kind == kind)
    lied = {**file.context, "names": {made.id: "pool/somebody-elses"}}
    assert "somebody-elses" not in text(replace(file, context=lied))
