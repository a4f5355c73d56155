"""What import-linter cannot see of the layers: the pure core stays pure, and heavy libraries load only when used.

The rows themselves and the outside packages are contracts in `.importlinter`.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "fleetctl"

CORE = ("model", "pool1", "market", "capacity", "plan", "render", "ledger")
"""architecture.md, rule 1: values and bytes in, values out or raise."""

BANNED_MODULES = frozenset(
    "asyncio concurrent ctypes fcntl getpass glob http importlib locale logging mmap multiprocessing os pathlib platform "
    "random secrets select selectors shutil signal socket ssl subprocess sys tempfile threading time urllib uuid".split()
) | {"fleetctl.clock"}
BANNED_CALLS = frozenset({"open", "input", "print", "exec", "eval", "compile", "breakpoint", "__import__", "float"})
BANNED_METHODS = frozenset({"now", "utcnow", "today"})
"""Of datetime and date: they read the clock."""

ALLOWED: dict[str, tuple[frozenset[str], str]] = {
    "ledger/keyfiles.py": (
        frozenset({"os", "pathlib"}),
        "key files are the ledger's one contact with the disk (mode bits, O_EXCL)",
    ),
    "ledger/signatures.py": (
        frozenset({"concurrent", "os", "subprocess", "sys"}),
        "a full verification spreads signature checks over processes; each is handed bytes and answers which are bad",
    ),
}

LAZY = ("deepdiff", "httpx", "jsonschema", "psycopg", "pycose", "pynvml", "rich", "starlette", "uvicorn")
LOADED_ON_DEMAND = frozenset({"api", "store", "metering"})
"""`cli.wiring` imports these only for the command that needs them, so their own imports may stand at the top."""


def impurities(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every import or call in `source` that reads or changes the world, or makes a float."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield from _banned_import(node.lineno, name.name)
            case ast.ImportFrom(module=str(module), names=names):
                for name in names:
                    yield from _banned_import(node.lineno, f"{module}.{name.name}")
            case ast.Call(func=ast.Name(id=called)) if called in BANNED_CALLS:
                yield node.lineno, called
            case ast.Call(func=ast.Attribute(attr=called)) if called in BANNED_METHODS:
                yield node.lineno, called
            case ast.Constant(value=float()):
                yield node.lineno, "float"


def _banned_import(line: int, name: str) -> Iterator[tuple[int, str]]:
    for banned in BANNED_MODULES:
        if name == banned or name.startswith(f"{banned}."):
            yield line, banned


def unallowed(path: Path) -> Iterator[tuple[int, str]]:
    allowed, _why = ALLOWED.get(path.relative_to(PACKAGE).as_posix(), (frozenset(), ""))
    for line, name in impurities(path.read_text(encoding="utf-8")):
        if name not in allowed:
            yield line, name


def core_modules() -> list[Path]:
    return sorted(path for package in CORE for path in (PACKAGE / package).rglob("*.py"))


def modules_of(package: str) -> list[str]:
    found = (path.relative_to(ROOT).with_suffix("") for path in (PACKAGE / package).rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in found)


def packages() -> list[str]:
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def test_core_does_no_io_reads_no_clock_draws_no_random_number_makes_no_float() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}: {name}" for path in core_modules() for line, name in unallowed(path)]
    assert found == []


def test_every_exception_to_purity_is_still_needed() -> None:
    for module, (names, _why) in ALLOWED.items():
        assert names == {name for _, name in impurities((PACKAGE / module).read_text(encoding="utf-8"))}, module


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os.path", ["os"]),
        ("from concurrent.futures import ProcessPoolExecutor", ["concurrent"]),
        ("def f():\n    from time import monotonic", ["time"]),
        ("from fleetctl import clock", ["fleetctl.clock"]),
        ("from fleetctl.clock import SystemClock", ["fleetctl.clock"]),
        ("from datetime import datetime\ndatetime.now()", ["now"]),
        ("open('x')", ["open"]),
        ("share = float(part) * 0.5", ["float", "float"]),
        ("import osmium, timeit\nfrom fleetctl.clocks import x\nisinstance(x, float)", []),
    ],
)
def test_the_purity_check_sees(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in impurities(source)) == names


@pytest.mark.parametrize("package", [name for name in packages() if name not in LOADED_ON_DEMAND])
def test_heavy_libraries_are_not_loaded_by_importing(package: str) -> None:
    loaded = _modules_after_importing(modules_of(package))
    assert [name for name in LAZY if name in loaded] == []


def test_the_ledger_loads_only_the_ground_floor_and_itself() -> None:
    """architecture.md: `fleetctl ledger verify` loads only the ground floor and `ledger`."""
    loaded = _modules_after_importing(modules_of("ledger"))
    ground = {path.stem for path in PACKAGE.glob("*.py")}
    ours = {name.split(".")[1] for name in loaded if name.startswith("fleetctl.")}
    assert ours <= ground | {"ledger"}


def _modules_after_importing(names: list[str]) -> set[str]:
    program = "import importlib, json, sys\nfor n in sys.argv[1:]: importlib.import_module(n)\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout))
