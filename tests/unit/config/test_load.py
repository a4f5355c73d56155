"""`load_fleet`: what a path may be, what comes out, and what an empty source is."""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from fleetctl.config.load import load_fleet
from fleetctl.config.loaded import Inventory, KnownPool, KnownPools
from fleetctl.errors import BadInput, SafetyRefused
from tests.support.fleets import FLEET, as_yaml, write

GOOD = as_yaml(FLEET)
HEADER = "apiVersion: fleetctl/v1\nfleet: eu\ntenant: root\n"


def codes(path: Path) -> list[str]:
    return [item.code.name for item in load_fleet(path).diagnostics]


def test_one_file_is_named_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, {"sub/fleet.yaml": GOOD, "sub/other.yaml": "["})
    result = load_fleet(tmp_path / "sub" / "fleet.yaml")
    assert result.fleet is not None
    assert list(result.files) == ["fleet.yaml"]


def test_one_file_of_several_says_that_its_folder_may_be_meant(tmp_path: Path) -> None:
    write(tmp_path, {"pools.yaml": "sites: {par1: {kind: shared, region: eu}}", "fleet.yaml": HEADER})
    found = load_fleet(tmp_path / "pools.yaml").diagnostics
    assert [item.code.name for item in found] == ["missing-header"] * 3
    assert all("name the folder that the file is a part of" in item.detail for item in found)
    (nothing,) = load_fleet(tmp_path / "fleet.yaml").diagnostics
    assert nothing.code.name == "no-objects" and "name its folder" in nothing.detail
    assert codes(tmp_path) == []


def test_a_missing_header_is_reported_beside_what_there_is_of_it(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "sites: {par1: {kind: shared, region: eu}}", "z.yaml": "\nfleet: eu\ntenant: root\n"})
    (found,) = load_fleet(tmp_path).diagnostics
    assert (found.code.name, str(found.span)) == ("missing-header", "z.yaml:2:1")


def test_a_saved_plan_is_not_read_as_a_fleet(tmp_path: Path) -> None:
    write(
        tmp_path, {"plan.json": json.dumps({"formatVersion": 1, "body": {}, "context": {}, "digest": "0", "sites": {}})}
    )
    (found,) = load_fleet(tmp_path / "plan.json").diagnostics
    assert found.code.name == "plan-not-fleet" and "`fleetctl apply`" in found.detail


def test_files_come_in_sorted_order_with_their_digests(tmp_path: Path) -> None:
    write(tmp_path, {"b.yaml": "", "a/z.yml": "# nothing\n", "a.yaml": GOOD, "B.yaml": ""})
    files = load_fleet(tmp_path).files
    assert list(files) == ["B.yaml", "a.yaml", "a/z.yml", "b.yaml"]
    assert files["b.yaml"] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_path_given_as_a_link_is_followed(tmp_path: Path) -> None:
    """Links out of the folder are refused; the folder itself is named by the person who runs the command."""
    write(tmp_path / "real", {"a.yaml": GOOD})
    (tmp_path / "link").symlink_to("real")
    assert codes(tmp_path / "link") == []


@pytest.mark.parametrize("name", ["gone", "gone.yaml", "fifo", "socket", "nul\0"])
def test_a_path_that_is_neither_folder_nor_file(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert codes(tmp_path / name) == ["path-not-found"]


@pytest.mark.parametrize(
    "files",
    [{}, {"a.txt": ""}, {"a.yaml": ""}, {"a.yaml": HEADER}, {"a.yaml": HEADER + "release: [pool/x]\n"}],
    ids=["empty", "no-fleet-file", "no-document", "header", "only-release"],
)
def test_an_empty_source_never_means_delete_everything(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    """fleet-files: an error before any diff; exit 3 for plan and apply."""
    result = load_fleet(write(tmp_path, files))
    with pytest.raises(SafetyRefused) as caught:
        result.loaded()
    assert {item.code.exit_code for item in caught.value.diagnostics} == {3}


def test_a_file_that_cannot_be_read_is_no_smaller_fleet(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": GOOD, "b.yaml": "tenants: {beta: {}}\n"})
    (tmp_path / "b.yaml").chmod(0)
    with pytest.raises(SafetyRefused):
        load_fleet(tmp_path).loaded()


def test_a_wrong_file_is_bad_input(tmp_path: Path) -> None:
    result = load_fleet(
        write(tmp_path, {"a.yaml": GOOD.replace("gpu: 32", "gpu: -1").replace('"gpu": 32', '"gpu": -1')})
    )
    with pytest.raises(BadInput) as caught:
        result.loaded()
    assert caught.value.exit_code == 1
    assert [item.code.name for item in caught.value.diagnostics] == ["bad-quantity"]


def test_warnings_leave_the_fleet(tmp_path: Path) -> None:
    result = load_fleet(write(tmp_path, {"a.yaml": GOOD.replace("priority: 10", "includeDescendants: true")}))
    assert [item.severity for item in result.diagnostics] == ["warning"]
    assert result.loaded().fleet is result.fleet


def test_objects_say_where_they_are_declared(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, {"z/fleet.yaml": GOOD})).loaded().fleet
    lines = GOOD.splitlines()
    for item in fleet.objects:
        assert item.span is not None and item.span.file == "z/fleet.yaml"
        assert item.name in lines[item.span.line - 1] or item.kind == "offer"
    assert {entry.span.line for entry in fleet.accept if entry.span} == {
        lines.index(next(x for x in lines if "accept:" in x)) + 1
    }


def test_offers_over_a_known_capacity(tmp_path: Path) -> None:
    """fleet-files: lints; better-compute B26. The first offer that goes over is named."""
    offers = "".join(f"  o{i}: {{to: t{i}, pool: p, quota: {{gpu: 32}}}}\n" for i in range(3))
    text = HEADER + (
        "sites: {s: {kind: shared, region: r}}\n"
        "tenants: {t0: {}, t1: {}, t2: {}}\n"
        "pools: {p: {idempotencyKey: pool-p, site: s, class: metal-host, gpuModel: H100}}\n"
        "offers:\n" + offers
    )
    write(tmp_path, {"a.yaml": text})
    assert codes(tmp_path) == []
    found = load_fleet(tmp_path, inventory=having(gpus=40)).diagnostics
    assert [(item.code.name, item.subject, item.span and item.span.line) for item in found] == [
        ("offers-over-capacity", "offer/pool-p/t1", 9)
    ]
    assert "of pool `pool-p` (96 offered, it has 40); lower" in found[0].detail
    assert load_fleet(tmp_path, inventory=having(gpus=96)).diagnostics == ()


def test_one_entry_that_offers_many_pools_over_capacity_is_said_once(tmp_path: Path) -> None:
    pools = "".join(
        f"  p{i}: {{idempotencyKey: pool-p{i}, site: s, class: metal-host, gpuModel: H100}}\n" for i in range(7)
    )
    text = HEADER + (
        "sites: {s: {kind: shared, region: r}}\n"
        "tenants: {t: {}, u: {}}\n"
        "pools:\n" + pools + "offers:\n"
        "  o: {to: t, pools: [p0, p1, p2, p3, p4, p5, p6], quota: {gpu: 8}}\n"
        "  again: {to: u, pools: [p0, p1], quota: {gpu: 8}}\n"
    )
    write(tmp_path, {"a.yaml": text})
    known = {f"pool-p{i}": KnownPool(resources={"gpu": 9 if i == 1 else 4}, families=frozenset()) for i in range(7)}
    found = load_fleet(tmp_path, inventory=lambda _: known).diagnostics
    assert [(item.code.name, item.subject, item.detail) for item in found] == [
        (
            "offers-over-capacity",
            "offer/pool-p0/t",
            (
                "with this offer more gpu are offered than there are of 6 pools: `pool-p0` (16 offered, it has 4), `pool-p2` "
                "(8 offered, it has 4), `pool-p3` (8 offered, it has 4), `pool-p4` (8 offered, it has 4), `pool-p5` (8 offered, "
                "it has 4) and 1 more; lower a quota, or allow it"
            ),
        ),
        (
            "offers-over-capacity",
            "offer/pool-p1/u",
            (
                "with this offer more gpu are offered than there are of pool `pool-p1` (16 offered, it has 9); lower a quota, "
                "or allow it"
            ),
        ),
    ]


def having(*, gpus: int, families: Iterable[str] = ()) -> Inventory:
    """An inventory of pool-p alone."""
    pools = {"pool-p": KnownPool(resources={"gpu": gpus}, families=frozenset(families))}

    def asked(fleet: str) -> KnownPools:
        assert fleet == "eu"
        return pools

    return asked


def test_machines_that_report_another_model(tmp_path: Path) -> None:
    """better-compute B32."""
    text = HEADER + (
        "sites: {s: {kind: shared, region: r}}\n"
        "pools: {p: {idempotencyKey: pool-p, site: s, class: metal-host, gpuModel: H200}}\n"
    )
    write(tmp_path, {"a.yaml": text})
    for families, expected in (((), []), (("H200",), []), (("H100", "H200"), ["gpu-model-differs"])):
        found = load_fleet(tmp_path, inventory=having(gpus=8, families=families)).diagnostics
        assert [item.code.name for item in found] == expected


def test_the_inventory_is_asked_for_a_fleet_without_errors_alone(tmp_path: Path) -> None:
    def never(fleet: str) -> KnownPools:
        raise AssertionError(fleet)

    write(tmp_path, {"a.yaml": HEADER + "sites: {s: {kind: shared}}\n"})
    assert load_fleet(tmp_path, inventory=never).fleet is None


def test_json_is_yaml(tmp_path: Path) -> None:
    """The same fleet as one line of JSON."""
    write(tmp_path / "j", {"a.yaml": json.dumps(FLEET)})
    write(tmp_path / "y", {"a.yaml": GOOD})
    assert load_fleet(tmp_path / "j").loaded().fleet.digest() == load_fleet(tmp_path / "y").loaded().fleet.digest()


def test_the_collector_runs_again_afterwards(tmp_path: Path) -> None:
    load_fleet(write(tmp_path, {"a.yaml": "["}))
    assert gc.isenabled()


def test_many_problems_of_one_kind_are_cut_off_and_counted(tmp_path: Path) -> None:
    text = HEADER + "sites:\n" + "".join(f"  s{i}: {{kind: shared, region: r, x: 1}}\n" for i in range(250))
    found = load_fleet(write(tmp_path, {"a.yaml": text})).diagnostics
    assert [item.code.name for item in found] == ["unknown-field"] * 100
    assert found[-1].detail.endswith("(150 more of this kind in this file are not shown)")


def test_a_file_in_which_everything_is_wrong_has_an_end(tmp_path: Path) -> None:
    text = HEADER + "sites:\n" + "".join(f"  s{i}: {{kind: x, region: r, x: 1}}\n" for i in range(3000))
    found = load_fleet(write(tmp_path, {"a.yaml": text})).diagnostics
    assert [item.code.name for item in found].count("more-problems") == 1
    assert len(found) == 201


def test_ignored_fields_are_written_as_in_files_and_kept_canonical(tmp_path: Path) -> None:
    """pins: canonical JSON; both names of a field are understood."""
    written = {
        "policy.maxPending": "policy.maxPendingMs",
        "policy.maxPendingMs": "policy.maxPendingMs",
        "policy.telemetry.intervalSeconds": "policy.telemetry.intervalSeconds",
        "protect": "protect",
        "name": "name",
    }
    entries = "".join(f"  - {{object: pool/pool-fra1-h100, field: {f}, owner: sre, reason: r}}\n" for f in written)
    text = (
        GOOD[: GOOD.index("ignoreDrift:")]
        + "ignoreDrift:\n"
        + entries
        + "  - {object: entitlement/ent-vision, field: limit.energy, owner: sre, reason: r}\n"
    )
    fleet = load_fleet(write(tmp_path, {"a.yaml": text})).loaded().fleet
    assert [entry.field for entry in fleet.ignore_drift] == [*written.values(), "limit.energyUj"]


def test_any_number_of_lints_leaves_a_fleet_sound(tmp_path: Path) -> None:
    """A lint is a warning: twelve thousand of them are cut off in the listing and make no error."""
    lines = ["apiVersion: fleetctl/v1", "fleet: deep", "tenant: root", "entitlements:"]
    for number in range(12_000):
        parent = f", parent: e{number - 1}" if number else ""
        lines.append(f"  e{number}: {{idempotencyKey: e-{number}{parent}, guarantee: {{energy: 1 J, devices: 1}}}}")
    (tmp_path / "fleet.yaml").write_text("\n".join(lines))
    found = load_fleet(tmp_path)
    assert found.fleet is not None
    assert {item.severity for item in found.diagnostics} == {"warning"}
