"""Shell blocks of the documentation run as they are written, in their order, and commands named in its text exist.

A page begins in an empty folder, or where `pages/<name>.sh` leaves it. `<!-- run: fresh -->` before a block begins again there.
A line that ends in `# exit N` must end with N, every other with 0. A line that ends in `&` goes on once it has printed a line.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import click
import pytest

from fleetctl.cli.main import cli
from tests.support.cli import ROOT, Home

DOCS = ROOT / "docs"
SETUPS = Path(__file__).with_name("pages")
FRESH = "<!-- run: fresh -->"
PORTS = ("8642", "8643")
"""What is listened on in the pages. They may be taken where they are tested, so they alone are replaced."""
_BLOCK = re.compile(rf"^ *```sh\n(.*?)^ *```$|^{re.escape(FRESH)}$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"^(.*\S)\s+# exit (\d+)$", re.MULTILINE)
_BEHIND = re.compile(r"^(.*\S) &$", re.MULTILINE)
_NAMED = re.compile(r"`(fleetctl [^`]+)`")
PREAMBLE = """
trap 'jobs -p | xargs -r kill' EXIT
await_first_line() {
    until [ -s "$FIRST_LINE" ]; do
        kill -0 $! || return 1
        sleep 0.05
    done
}
"""


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def parts(page: Path) -> list[str]:
    """The shell blocks of a page, joined between the places where it begins again."""
    joined = [""]
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block[0] == FRESH:
            joined.append("")
        else:
            joined[-1] += dedent(block[1])
    return [lines for lines in joined if lines]


def script(lines: str) -> str:
    """Shell blocks as bash that ends with the first line that does not end as the page says."""
    lines = _EXIT.sub(r"ended=0; \1 || ended=$?; [ $ended = \2 ]", lines)
    lines = _BEHIND.sub(r': >"$FIRST_LINE"; \1 >"$FIRST_LINE" & await_first_line', lines)
    for port, free in zip(PORTS, free_ports(len(PORTS)), strict=True):
        lines = lines.replace(port, str(free))
    return lines


def free_ports(count: int) -> list[int]:
    """As many different ports that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


RUN = [
    pytest.param(page, lines, id=f"{page.relative_to(DOCS).with_suffix('').as_posix()}-{index}")
    for page in pages()
    for index, lines in enumerate(parts(page))
]


@pytest.mark.parametrize(("page", "lines"), RUN)
def test_the_shell_blocks_of_a_page_run(page: Path, lines: str, tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    setup = SETUPS / f"{page.stem}.sh"
    before = setup.read_text(encoding="utf-8") if setup.exists() else ""
    environment = home.process_environment()
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", PREAMBLE + before + script(lines)],
        cwd=home.work,
        env=environment
        | {
            "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
            "PAGES": str(SETUPS),
            "EXAMPLES": str(ROOT / "examples"),
            "FIRST_LINE": str(tmp_path / "first-line"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_tutorial_and_the_how_to_pages_are_run() -> None:
    run = {parameter.values[0] for parameter in RUN}
    prose = {"pull-requests.md"}  # sets up a hosting service; its workflows are tests of their own
    assert {page.name for page in [DOCS / "tutorial.md", *(DOCS / "how-to").glob("*.md")] if page not in run} == prose
    assert {setup.stem for setup in SETUPS.glob("*.sh")} - {page.stem for page in pages()} == {"git", "quickstart"}


def named_commands(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    yield from (found[1] for found in _NAMED.finditer(re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


@pytest.mark.parametrize("page", [*pages(), ROOT / "README.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_named_in_a_page_exist(page: Path) -> None:
    """Placeholders stand for arguments; groups, commands and options must be there as they are written."""
    unknown = [named for named in named_commands(page) if not exists(shlex.split(named.replace("\n", " "))[1:])]
    assert unknown == []


def exists(words: list[str]) -> bool:
    """Whether the words name a command, and only options that it has."""
    context, command = click.Context(cli), cli.get_command(click.Context(cli), words[0]) if words else cli
    while isinstance(command, click.Group) and len(words) > 1 and not words[1].startswith("-"):
        context, words = click.Context(command, parent=context), words[1:]
        command = command.get_command(context, words[0])
    if command is None:
        return False
    known = {option for owner in (cli, command) for param in owner.params for option in param.opts} | {"--help"}
    return all(word.strip("[]").partition("=")[0] in known for word in words if word.lstrip("[").startswith("-"))
