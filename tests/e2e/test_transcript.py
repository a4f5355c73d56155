"""The demo runs, and README.md holds what it prints."""

from __future__ import annotations

from scripts import transcript


def test_the_demo_runs_and_the_readme_holds_its_transcript() -> None:
    """One run answers both: the demo's own checks of exit codes, and the words that readers see."""
    assert transcript.difference() == ""
