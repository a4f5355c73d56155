"""What somebody meets who has never used fleetctl: help, slips of the hand, and what is said about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fleetctl import __version__
from fleetctl.cli.main import cli
from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(path=tmp_path).with_engine(fleet=FLEET)
    made.ok("apply", ".", "--yes", "--now", NOW)
    return made


def test_the_version_is_an_option_and_a_command(home: Home) -> None:
    home.env["FLEETCTL_VERSION"] = "1"
    assert home.ok("--version").out == home.ok("version").out == f"fleetctl {__version__}\n"
    assert home.ok("status").exit == 0


def test_the_commands_of_a_group_are_listed_with_their_whole_sentence(home: Home) -> None:
    shown = " ".join(home.ok("pools", "--help").out.split())
    assert "Retire a pool: offers end, nothing new starts, what runs runs to its end." in shown
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nodes", "join", "--pool", "p", "--name", "n", "--gpus", "eight"), "`eight` is not a whole number"),
        (("import", "pools", "x"), "`pools` is a section of fleet files; the kind is `pool`"),
        (("import", "pol", "x"), "`pol` is no kind; write one of tenant, site, pool"),
        (("settings", "set", "share", "5"), "Invalid value for 'NAME': 'share' is not one of"),
    ],
)
def test_a_slip_on_the_command_line_is_named_with_what_would_do(
    home: Home, arguments: tuple[str, ...], said: str
) -> None:
    answer = home.run(*arguments)
    assert answer.exit == 64 and said in answer.err


def test_import_takes_an_object_as_plans_write_it(home: Home) -> None:
    assert home.ok("import", "pool/pool-fra1-h100").out == home.ok("import", "pool", "pool-fra1-h100").out


def test_explain_leads_from_the_engines_word_to_the_codes(home: Home) -> None:
    assert "it is the engine's word for: conflict, " in home.run("explain", "CONFLICT").err
    assert "near it: unknown-field" in home.run("explain", "Unknown-Fild").err


def test_a_slip_in_an_acceptance_is_said_where_it_is_given(home: Home) -> None:
    home.write("fleet.yaml", FLEET.partition("entitlements:")[0])
    slip = home.run("plan", ".", "--accept", "share", "--now", NOW)
    assert slip.exit == 64 and "`share` is no danger; write its id as the plan shows it" in slip.err
    shown = home.ok("plan", ".", "-o", "plan.json", "--accept", "share:fleet/eu-tset", "--now", NOW).out
    assert "accept-unused: `share:fleet/eu-tset` is no danger of this plan; it has share:fleet/eu-test" in " ".join(
        shown.split()
    )
    refused = home.run("apply", "plan.json", "--accept", "share:fleet/eu-tset", "--now", NOW)
    assert refused.exit == 3 and "(`share:fleet/eu-tset` is no danger of this plan)" in refused.err
    assert "Apply exactly this, once its dangers are accepted:" in shown
    home.ok("apply", "plan.json", "--accept", "share:fleet/eu-test", "--now", NOW)


def test_an_acceptance_past_its_day_is_a_warning(home: Home) -> None:
    home.write("more.yaml", "accept: [{danger: 'share:fleet/eu-test', reason: agreed, until: 2020-01-01}]\n")
    assert "more.yaml:1:10: accept-expired: " in home.ok("plan", ".", "--now", NOW).out


def test_a_refusal_names_objects_as_people_know_them(home: Home) -> None:
    home.write(
        "fleet.yaml",
        FLEET.replace("sites:\n", "sites:\n  ams2: {kind: shared, region: eu-west}\n").replace(
            "site: fra1", "site: ams2"
        ),
    )
    moved = home.run("plan", ".", "--now", NOW)
    assert moved.exit == 1 and "`site` of pool/pool-fra1-h100 is site/fra1 and cannot become site/ams2" in moved.err


def test_what_another_fleet_took_over_is_said_to_be_there(home: Home) -> None:
    taken = home.ok("import", "pool", "pool-fra1-h100", "--fleet", "second").out
    home.write("second/fleet.yaml", taken)
    adopted = home.ok("plan", "second", "-o", "plan.json", "--now", NOW).out
    assert "adopt pool/pool-fra1-h100  (fleet.yaml:5:3; owned by fleet eu-test before)" in adopted
    home.ok("apply", "plan.json", "--now", NOW)
    lost = home.run("plan", "fleet.yaml", "--now", NOW)
    assert lost.exit == 1 and "owned by fleet second; to take it over write `adopt: pool_" in lost.err


def test_an_apply_that_lacks_its_witness_says_what_was_done_and_how_to_start_it(home: Home) -> None:
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 33"))
    done = home.run("apply", ".", "--yes", "--require-witness", "--now", NOW)
    assert done.exit == 5 and done.out.startswith("Applied: 1 operation, in one transaction\n")
    assert "witness-missing: " in done.err
    words = " ".join(done.out.split())
    assert words.count("witness-test at http://127.0.0.1:") == 1 and "[Errno" not in words
    assert "start it with `fleetctl witness serve --id witness-test --listen 127.0.0.1:" in words
    again = home.run("apply", ".", "--yes", "--require-witness", "--now", NOW)
    assert again.exit == 5 and "there was nothing to do, and the ledgers are self-attested" in again.err


@pytest.mark.parametrize(
    ("arguments", "exit", "said"),
    [
        (("show", "."), 1, ". is a fleet, not a plan; write its plan with `fleetctl plan . -o plan.json`"),
        (("check", "fleet.yaml"), 1, "write its plan with `fleetctl plan fleet.yaml -o plan.json`"),
        (("apply", "fleetctl.toml"), 1, "`fleetctl plan PATH -o FILE` writes one"),
        (("plan", "fleetctl.toml"), 1, "document-not-mapping"),
        (("status", "--state", "state.db"), 1, "such as sqlite:state.db"),
        (("pools", "get", "fra1-h100"), 1, "`fleetctl pools list` shows ids and keys; a name is neither\n"),
    ],
)
def test_a_wrong_argument_says_what_to_give_instead(
    home: Home, arguments: tuple[str, ...], exit: int, said: str
) -> None:
    answer = home.run(*arguments)
    assert answer.exit == exit and said in answer.err


def test_a_pool_that_is_not_seen_is_as_one_that_is_not_there(home: Home) -> None:
    """Seed: anyone else gets NOT_FOUND; the words do not tell either."""
    home.ok("pools", "unoffer", "pool-fra1-h100", "--to", "acme", "--now", NOW)
    asked = ("reservations", "create", "--tenant", "acme", "--gpus", "1", "--now", NOW, "--pool")
    hidden, absent = home.run(*asked, "pool-fra1-h100"), home.run(*asked, "pool-none")
    assert hidden.exit == absent.exit == 1
    assert hidden.err == absent.err.replace("pool-none", "pool-fra1-h100")


def test_history_of_something_unknown_names_it(home: Home) -> None:
    assert "nothing about pool-x. An object is written kind/key" in " ".join(home.ok("history", "pool-x").out.split())
    assert home.ok("history", "pool/pool-x").out == "The journal has nothing about pool/pool-x.\n"


def test_drift_says_which_answers_there_are(home: Home) -> None:
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=3", "--now", NOW)
    found = home.run("drift", ".", "--now", NOW)
    assert found.exit == 2 and "`fleetctl import --refresh KIND/KEY`" in found.out
    home.ok("apply", ".", "--yes", "--now", NOW)
    assert "import" not in home.ok("drift", ".", "--now", NOW).out


def test_what_is_imported_beside_a_fleets_files_is_written_for_that_fleet(home: Home) -> None:
    home.ok("pools", "offer", "pool-fra1-h100", "--to", "root", "--quota", "gpu=2", "--now", NOW)
    home.ok("import", "offer/pool-fra1-h100/root", "-o", "own.yaml")
    assert "pool: fra1-h100\n" in (home.work / "own.yaml").read_text("utf-8")
    assert home.ok("plan", ".", "--now", NOW).out.startswith("Plan for fleet eu-test: 1 to adopt\n")


def test_a_shared_entry_that_cannot_be_refreshed_says_what_is_live(home: Home) -> None:
    pools = FLEET.replace(
        "pools:\n", "pools:\n  b: {idempotencyKey: b, site: fra1, class: metal-host, gpuModel: H100}\n"
    )
    home.write("fleet.yaml", pools.replace("pool: fra1-h100", "pools: [fra1-h100, b]"))
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok("quotas", "set", "b", "acme", "gpu=5", "--now", NOW)
    refused = home.run("import", "--refresh", "offer/b/acme")
    assert refused.exit == 1
    assert "is about several pools; give it values of its own by hand (quota: {gpu: 5})" in refused.err


def test_init_says_what_to_do_next(tmp_path: Path) -> None:
    made = Home(path=tmp_path)
    assert (
        "  fleetctl plan first-fleet\n  fleetctl apply first-fleet\n"
        in made.ok("init", "first-fleet", "--now", NOW).out
    )
    assert "fleetctl plan" not in made.ok("init", "second", "--no-example", "--now", NOW).out


def test_a_plan_is_not_written_over_a_fleet_file_and_fmt_leaves_other_files_alone(home: Home) -> None:
    before = (home.work / "fleet.yaml").read_bytes()
    refused = home.run("plan", ".", "-o", "fleet.yaml", "--now", NOW)
    assert refused.exit == 64 and "write the plan to a name such as plan.json" in refused.err
    assert (home.work / "fleet.yaml").read_bytes() == before
    home.ok("plan", ".", "-o", "plan.json", "--now", NOW)
    plan = (home.work / "plan.json").read_bytes()
    assert home.run("fmt", "plan.json").exit == 64
    assert (home.work / "plan.json").read_bytes() == plan


def test_every_help_fits_a_terminal_and_has_an_example() -> None:
    wide, bare = [], []
    for path, command, ctx in walk():
        shown = command.get_help(ctx)
        wide += [f"{path}: {line}" for line in shown.splitlines() if len(line) > 80]
        if not isinstance(command, click.Group) and "Example:" not in shown:
            bare.append(path)
    assert (wide, bare) == ([], [])


def walk() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its words, in a context of 80 columns."""
    with click.Context(cli, info_name="fleetctl", terminal_width=80, max_content_width=80) as root:
        todo: list[tuple[click.Command, click.Context]] = [(cli, root)]
        while todo:
            command, ctx = todo.pop()
            yield ctx.command_path, command, ctx
            if isinstance(command, click.Group):
                named = ((name, command.get_command(ctx, name)) for name in command.list_commands(ctx))
                todo += [(item, click.Context(item, ctx, name)) for name, item in named if item is not None]
