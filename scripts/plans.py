"""Writes the reviewed plan of every example into plans/, as a new engine makes it, so that a change of planner shows as a diff of plans.

usage: plans.py [--check]      (--check writes nothing and exits 1 when a plan is not what would be written)

`plans/<example>.json` holds the plan's body and digest, `plans/<example>.txt` what `fleetctl plan` shows. Both are the same on
every machine: the engine's id and the time are fixed, and nothing else of the place where they are made reaches them.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PLANS = ROOT / "plans"
FLEETCTL = Path(sys.executable).with_name("fleetctl")
NOW = "2026-12-01T08:00Z"
GROUPS: Mapping[str, Sequence[str]] = {
    "quickstart": ["quickstart"],
    "one-site": ["one-site"],
    "neocloud": ["neocloud"],
    "research": ["research"],
    "provider": ["provider/platform", "provider/customer"],
    "market": ["market"],
    "two-fleets": ["two-fleets/capacity", "two-fleets/offers"],
}
"""Folders of examples/ by the engine that they share, in the order in which they are applied."""
_OF_THE_PLACE = ("context", "planned")
"""Facts under a text plan that name the host, or a digest over it."""


@dataclass(frozen=True, slots=True)
class Home:
    """User folders and fleets of their own under `path`."""

    path: Path

    def run(self, *arguments: str) -> str:
        """Standard output of fleetctl, run in the home. Raises CalledProcessError, with what it said on standard error."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FLEETCTL_", "XDG_"))}
        folders = {f"XDG_{name}_HOME": str(self.path / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
        done = subprocess.run(
            [str(FLEETCTL), *arguments],
            cwd=self.path,
            env=inherited | folders,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
        return done.stdout


def made() -> dict[str, str]:
    """Every file of plans/ by its name there, with the text that it should have."""
    return {name: text for group in GROUPS for name, text in group_plans(group)}


def group_plans(group: str) -> Iterator[tuple[str, str]]:
    """The plans of one engine's examples; each but the last is applied before the next is planned."""
    with tempfile.TemporaryDirectory(prefix="fleetctl-plans-") as folder:
        home = Home(Path(folder))
        # Not a repository, and it ends git's search for one above: commits and paths are facts of a place.
        (home.path / ".git").write_text("", encoding="ascii")
        shutil.copytree(EXAMPLES / group, home.path / group)
        home.run("init", group, "--engine", f"eng_example_{group}", "--test-clock", "--no-example", "--now", NOW)
        for index, example in enumerate(GROUPS[group]):
            out = home.path / f"plan-{index}.json"
            text = home.run("plan", example, "--out", str(out), "--now", NOW, "--width", "120", "--format", "text")
            yield f"{example}.json", json_part(out.read_bytes())
            yield f"{example}.txt", text_part(text)
            if example != GROUPS[group][-1]:
                home.run("apply", str(out), "--now", NOW)


def json_part(plan: bytes) -> str:
    """What a plan says in its body, and the digest that people approve."""
    file = json.loads(plan)
    return json.dumps({name: file[name] for name in ("body", "digest")}, indent=1, ensure_ascii=False) + "\n"


def text_part(text: str) -> str:
    """A text plan without the facts of one place, and without the command that names a file of it."""
    shown = text.partition("\nApply exactly this:\n")[0]
    return "".join(line for line in shown.splitlines(keepends=True) if line.partition(" ")[0] not in _OF_THE_PLACE)


def differences() -> list[str]:
    """A unified diff for each file on disk that is not what would be written; empty when all are in step."""
    wanted = made()
    have = {path.relative_to(PLANS).as_posix(): path.read_text(encoding="utf-8") for path in _files()}
    names = sorted(wanted.keys() | have.keys())
    return [diff for name in names if (diff := _diff(name, have.get(name, ""), wanted.get(name, "")))]


def _diff(name: str, before: str, after: str) -> str:
    labels = f"plans/{name}", f"plans/{name} (as planned now)"
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), *labels, lineterm=""))


def _files() -> Iterator[Path]:
    return (path for path in PLANS.rglob("*") if path.suffix in (".json", ".txt"))


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        found = differences()
        for diff in found:
            print(diff)
        if found:
            print(
                "plans/ is not what the examples plan to: run `scripts/plans.py` and review the diff", file=sys.stderr
            )
        return 1 if found else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 64
    wanted = made()
    for path in _files():
        if path.relative_to(PLANS).as_posix() not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = PLANS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
