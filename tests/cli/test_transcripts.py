"""What people see: whole sessions, command by command, held to the text in `transcripts/`.

A line `$ fleetctl …` runs a command, `$ edit FILE: OLD => NEW` changes a file; what follows is standard output, then standard
error behind `! `, then `[exit N]` when it is not 0. What differs from run to run is named: digests by order of appearance,
the folder `HOME`, the actor. `WRITE_TRANSCRIPTS=1` writes the answers anew, for review as a diff.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Home

FOLDER = Path(__file__).parent / "transcripts"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


class Session:
    """One home, and the names given to what differs from run to run."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._digests: dict[str, str] = {}

    def run(self, line: str) -> Iterator[str]:
        """The lines that the transcript has after a command."""
        name, _, rest = line.partition(" ")
        if name == "edit":
            self._edit(rest)
            return
        assert name == "fleetctl", line
        done = self.home.run(*shlex.split(rest))
        assert done.error is None, done
        yield from self._stable(done.out).splitlines()
        yield from (f"! {text}".rstrip() for text in self._stable(done.err).splitlines())
        if done.exit:
            yield f"[exit {done.exit}]"

    def _edit(self, words: str) -> None:
        name, _, change = words.partition(": ")
        old, _, new = change.replace("\\n", "\n").partition(" => ")
        path = self.home.work / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def _stable(self, text: str) -> str:
        text = text.replace(str(self.home.path), "HOME")
        text = text.replace(f"local:{getpass.getuser()}@{socket.gethostname()}", "local:USER@HOST")
        text = text.replace(f" on {socket.gethostname()}", " on HOST")
        return _DIGEST.sub(lambda found: self._digests.setdefault(found[0], f"<digest {len(self._digests) + 1}>"), text)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(tmp_path: Path, path: Path) -> None:
    # Wide enough that no line is broken elsewhere because a machine has a longer name.
    home = Home(path=tmp_path, env={"FLEETCTL_WIDTH": "160"})
    home.write("fleet.yaml", FLEET)
    session, made = Session(home), list[str]()
    wanted = path.read_text(encoding="utf-8")
    for line in wanted.splitlines():
        if line.startswith("# ") and not made:
            made.append(line)
        elif line.startswith("$ "):
            made += ["", line, *session.run(line.removeprefix("$ "))]
    text = "\n".join(made) + "\n"
    if os.environ.get("WRITE_TRANSCRIPTS"):
        path.write_text(text, encoding="utf-8")
    assert text == wanted
