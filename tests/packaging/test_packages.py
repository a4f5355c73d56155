"""The wheel and the source distribution hold what they must, and the wheel works away from the checkout.

The wheel is built from the source distribution, so running the one shows the other to be whole.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import fleetctl

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    sdist: Path
    wheel: Path
    wheel_from_tree: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    source = tmp_path_factory.mktemp("source") / "fleetctl"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    through_sdist, direct = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("direct")
    build = [sys.executable, "-m", "build", "--no-isolation"]
    _run([*build, "--outdir", str(through_sdist), str(source)], cwd=through_sdist)
    _run([*build, "--wheel", "--outdir", str(direct), str(source)], cwd=direct)
    (sdist,) = through_sdist.glob("*.tar.gz")
    (wheel,) = through_sdist.glob("*.whl")
    (wheel_from_tree,) = direct.glob("*.whl")
    return Built(sdist=sdist, wheel=wheel, wheel_from_tree=wheel_from_tree)


@pytest.fixture(scope="module")
def elsewhere(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder far from the checkout that holds a clean environment `env` with the wheel installed."""
    folder = tmp_path_factory.mktemp("elsewhere")
    _run([sys.executable, "-m", "venv", str(folder / "env")], cwd=folder)
    pip = [str(folder / "env/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _run([*pip, "install", "-c", str(ROOT / "constraints.txt"), str(built.wheel)], cwd=folder)
    return folder


def test_wheel_holds_every_module_and_every_schema_and_nothing_else(built: Built) -> None:
    members = set(zipfile.ZipFile(built.wheel).namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "fleetctl").rglob("*.py")}
    assert modules - members == set()
    assert "fleetctl/py.typed" in members
    assert {path.name for path in (ROOT / "schemas").iterdir()} <= {name.rpartition("/")[2] for name in members}
    assert {name.partition("/")[0] for name in members} == {"fleetctl", f"fleetctl-{fleetctl.__version__}.dist-info"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in members)


def test_wheel_from_the_source_distribution_is_the_wheel_from_the_tree(built: Built) -> None:
    def contents(wheel: Path) -> dict[str, int]:
        return {member.filename: member.CRC for member in zipfile.ZipFile(wheel).infolist()}

    assert contents(built.wheel) == contents(built.wheel_from_tree)
    with tarfile.open(built.sdist) as archive:
        assert f"fleetctl-{fleetctl.__version__}/LICENSE" in archive.getnames()


def test_version_from_the_wheel(elsewhere: Path) -> None:
    assert fleetctl.__version__ in _fleetctl(elsewhere, "version")


def test_code_comes_from_the_wheel(elsewhere: Path) -> None:
    program = "import fleetctl; print(fleetctl.__file__)"
    where = _run([str(elsewhere / "env/bin/python"), "-c", program], cwd=elsewhere)
    assert where.startswith(str(elsewhere / "env"))


def test_schemas_from_the_wheel_are_those_of_the_checkout(elsewhere: Path) -> None:
    schema = json.loads(_fleetctl(elsewhere, "schema", "fleet"))
    assert schema == json.loads((ROOT / "schemas" / "fleet.schema.json").read_text(encoding="utf-8"))


def test_a_new_fleet_validates_with_the_wheel(elsewhere: Path) -> None:
    _fleetctl(elsewhere, "init", "fleet")
    answer = json.loads(_fleetctl(elsewhere, "validate", "fleet", "--format", "json"))
    assert [item for item in answer["diagnostics"] if item["severity"] == "error"] == []


def _fleetctl(folder: Path, *arguments: str) -> str:
    return _run([str(folder / "env/bin/fleetctl"), *arguments], cwd=folder)


def _run(command: list[str], *, cwd: Path) -> str:
    """Standard output of a command that must succeed; user folders are inside `cwd`, nothing of ours is inherited."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FLEETCTL_"))}
    homes = {f"XDG_{name}_HOME": str(cwd / "home" / name.lower()) for name in ("CONFIG", "STATE", "DATA")}
    done = subprocess.run(command, cwd=cwd, env=inherited | homes, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
