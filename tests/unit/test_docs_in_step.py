"""The documentation says what the code does: generated pages, exit codes, links, help texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetctl import errors
from scripts import generate_docs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def all_errors(base: type[errors.FleetctlError] = errors.FleetctlError) -> Iterator[type[errors.FleetctlError]]:
    for found in base.__subclasses__():
        yield found
        yield from all_errors(found)


def anchor(heading: str) -> str:
    """The fragment that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_generated_pages_are_what_the_code_gives() -> None:
    assert generate_docs.differences() == []


@pytest.mark.parametrize("schema", sorted((ROOT / "schemas").glob("fleet.schema.json")), ids=lambda path: path.name)
def test_every_field_of_a_fleet_file_is_in_the_reference(schema: Path) -> None:
    documented = "".join(
        (DOCS / "reference" / page).read_text(encoding="utf-8") for page in ("fleet-files.md", "pool-policy.md")
    )
    words = set(re.findall(r"\w+", documented))
    assert sorted(set(properties(json.loads(schema.read_text(encoding="utf-8")))) - words) == []


def properties(schema: object) -> Iterator[str]:
    """Every property name that a JSON Schema gives, at any depth."""
    if isinstance(schema, dict):
        if isinstance(named := schema.get("properties"), dict):
            yield from named
        for value in schema.values():
            yield from properties(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from properties(value)


def test_every_exit_code_is_in_the_reference() -> None:
    """cli.md: the table of exit codes is a contract."""
    text = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert {0, 2} | {found.exit_code for found in all_errors()} == documented


def test_every_error_is_in_the_tree_of_its_module_docstring() -> None:
    for found in all_errors():
        assert re.search(rf"── {found.__name__} +{found.exit_code} ", errors.__doc__ or ""), found.__name__


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, fragment = target.partition("#")
        if "://" in path:
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists():
            broken.append(target)
        elif fragment:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            if fragment not in {anchor(heading) for heading in headings}:
                broken.append(target)
    assert broken == []


def test_every_page_is_reached_from_the_index() -> None:
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target and (linked := (page.parent / target.partition("#")[0]).resolve()).is_file():
                waiting.append(linked)
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []


def test_every_command_has_help_with_an_example() -> None:
    """cli.md: every command has `--help` with an example."""
    import click

    without = [
        name
        for name, context in generate_docs.commands()
        if not isinstance(context.command, click.Group)
        and context.command.get_help(context).count(name) < 2  # the usage line is one
    ]
    assert without == []
