"""The command line for tests: a home of its own, commands in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from fleetctl.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-12-01T12:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended. `error` is what the runner caught beside an exit, None for every orderly end."""

    exit: int
    out: str
    err: str
    error: BaseException | None = None

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """User folders and a working folder below `path`; nothing of the machine's own configuration is seen."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """The working folder, made when it is first asked for."""
        folder = self.path / "work"
        folder.mkdir(exist_ok=True)
        return folder

    def environment(self) -> dict[str, str]:
        """Variables of a command's process."""
        folders = {f"XDG_{name}_HOME": str(self.path / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
        return folders | {"HOME": str(self.path)} | self.env

    def run(self, *arguments: str, stdin: str | bytes | None = None, cwd: Path | None = None) -> Ran:
        """Run `fleetctl ARGUMENTS` in this process."""
        ours: dict[str, str | None] = {name: None for name in os.environ if name.startswith(("FLEETCTL_", "GIT_"))}
        environment: Mapping[str, str | None] = ours | self.environment()
        with chdir(cwd or self.work):
            result = CliRunner().invoke(cli, list(arguments), input=stdin, env=environment)
        error = None if isinstance(result.exception, SystemExit) else result.exception
        return Ran(exit=result.exit_code, out=result.stdout, err=result.stderr, error=error)

    def ok(self, *arguments: str, **options: Any) -> Ran:
        """As `run`, for a command that must end with 0."""
        done = self.run(*arguments, **options)
        assert (done.exit, done.error) == (0, None), f"{' '.join(arguments)}: {done}"
        return done

    def json(self, *arguments: str, exit: int = 0, **options: Any) -> Any:
        """The JSON that a command answers, which must end with `exit`."""
        done = self.run(*arguments, "--format", "json", **options)
        assert (done.exit, done.error) == (exit, None), f"{' '.join(arguments)}: {done}"
        return done.json

    def process(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `fleetctl ARGUMENTS` in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "fleetctl", *arguments],
            cwd=options.pop("cwd", self.work),
            env=self.process_environment() | options.pop("env", {}),
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )

    def process_environment(self) -> dict[str, str]:
        """As `environment`, with what a process needs of the machine."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLEETCTL_", "GIT_", "XDG_"))}
        return kept | self.environment() | {"PYTHONPATH": str(ROOT)}

    def write(self, name: str, text: str) -> Path:
        """A file below the working folder."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def with_engine(self, engine: str = "eng_test", fleet: str | None = None) -> Home:
        """A test-clock engine for the working folder, with `fleet` as its fleet file."""
        self.ok("init", ".", "--engine", engine, "--test-clock", "--no-example", "--now", NOW)
        if fleet is not None:
            self.write("fleet.yaml", fleet)
        return self


FLEET = """\
apiVersion: fleetctl/v1
fleet: eu-test
tenant: root
tenants:
  acme: {parent: root}
sites:
  fra1: {kind: shared, region: eu-central}
pools:
  fra1-h100: {idempotencyKey: pool-fra1-h100, site: fra1, class: metal-host, gpuModel: H100, policy: {maxPending: 6h}}
offers:
  acme: {to: acme, pool: fra1-h100, quota: {gpu: 32}}
entitlements:
  acme-training:
    {idempotencyKey: ent-acme, tenant: acme, guarantee: {energy: 40 MJ, devices: 16}, limit: {energy: 60 MJ}}
"""
"""Five objects, one of each declared kind that the engine works with."""
