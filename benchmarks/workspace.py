"""A fleet in a git repository with an engine of its own, made with the same commands that a user types."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.fleets import write_fleet
from benchmarks.process import Failed, clean_environment, fleetctl, git, run
from benchmarks.series import Sample

NOTHING, CHANGES = 0, 2
"""What `plan --detailed-exitcode` answers."""


class Workspace:
    """`fleet/` with `count` pools, committed, and a fresh engine in user folders below `home/`."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.fleet = folder / "fleet"
        self.plan_file = folder / "plan.json"
        folder.mkdir(parents=True)
        self.env = clean_environment(folder / "home")
        self._fleetctl("init", "fleet", "--no-example", "--steward", "bench")
        write_fleet(self.fleet, count)
        git(self.fleet, "init", "--quiet", "--initial-branch=main", env=self.env)
        git(self.fleet, "add", "--all", env=self.env)
        git(self.fleet, "commit", "--quiet", "--message=fleet", env=self.env)

    @property
    def state(self) -> Path:
        """The engine's database."""
        found = list((self.folder / "home" / "state" / "fleetctl").glob("*/state.db"))
        found = [path for path in found if path.parent.parent.name != "witness"]
        if len(found) != 1:
            raise Failed(f"one state.db was expected below {self.folder}, found {found}")
        return found[0]

    def plan(self, expect: int, *, remembers: bool = False) -> Sample:
        """Plan and save the plan; `expect` is what it must turn out to be. `remembers`: as on a desk, where the fleet is kept in a cache."""
        env = self.env | ({"CI": ""} if remembers else {})
        sample = self._fleetctl("plan", "fleet", "-o", self.plan_file, "--detailed-exitcode", expect=expect, env=env)
        if expect == CHANGES and len(json.loads(self.plan_file.read_bytes())["body"]["operations"]) < self.count:
            raise Failed(f"the plan of {self.count} pools has fewer operations")
        return sample

    def apply(self) -> Sample:
        """Apply the saved plan."""
        return self._fleetctl("apply", self.plan_file)

    def drift(self) -> Sample:
        """Look for drift, and find none."""
        return self._fleetctl("drift", "fleet")

    def settle(self) -> Workspace:
        """Plan and apply, so that nothing is left to do."""
        self.plan(CHANGES)
        self.apply()
        return self

    def _fleetctl(self, *arguments: str | Path, expect: int = 0, env: dict[str, str] | None = None) -> Sample:
        return run([*fleetctl(), *arguments], cwd=self.folder, env=env or self.env, expect=expect)
