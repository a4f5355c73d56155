"""Runs the demo and writes what it printed into README.md, between two markers, with what differs between runs replaced.

usage: transcript.py [--check]      (--check writes nothing and exits 1 when README.md holds another transcript)

Replaced are times, the host, the user's folders, and digests over them: of a plan's context, and of ledgers. Plan digests stay:
the demo's commits are the same everywhere, so its plans are.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- transcript -->\n", "<!-- /transcript -->\n"
_DIGEST = "[0-9a-f]{64}"
_REPLACED = (
    (re.compile(r"/tmp/fleetctl-home\.\w{6}/state"), "~/.local/state"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"(?m)^(planned +.* on ).*$"), r"\1<host>"),
    (re.compile(rf"(?m)^(context +){_DIGEST}$"), r"\1<digest of the context>"),
    (re.compile(rf"(?m)^(head +|\S+/(?:journal|entitlements) +\d+ +){_DIGEST}$"), r"\1<digest of the ledger>"),
)


def transcript() -> str:
    """What the demo prints, with what differs between runs replaced. Raises CalledProcessError when it fails."""
    with tempfile.TemporaryDirectory() as home:
        # Of one length on every machine, so that no line wraps at another place.
        ours = {
            "TMPDIR": "/tmp",
            "HOME": home,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            [str(ROOT / "scripts" / "clean-home.sh"), "bash", str(ROOT / "scripts" / "demo.sh")],
            env={**os.environ, **ours},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, "scripts/demo.sh", output=done.stdout)
    text = done.stdout
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return text


def readme_with(text: str) -> str:
    """README.md as it should be. Raises ValueError when it lacks the markers."""
    readme = README.read_text(encoding="utf-8")
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README.name} lacks the lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}```console\n{text.strip()}\n```\n{END}{after}"


def difference() -> str:
    """A unified diff of README.md as it is and as it should be; empty when they agree."""
    before, after = README.read_text(encoding="utf-8"), readme_with(transcript())
    names = README.name, f"{README.name} (as the demo prints now)"
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 64
    try:
        if not arguments:
            README.write_text(readme_with(transcript()), encoding="utf-8", newline="\n")
            return 0
        found = difference()
    except subprocess.CalledProcessError as failed:
        print(failed.output, f"the demo ended with {failed.returncode}", sep="\n", file=sys.stderr)
        return 1
    if found:
        print(found)
        print("README.md does not hold what the demo prints: run scripts/transcript.py", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
