"""Lints that need the machines of an engine: said by plan, apply and drift, silent in `validate`, which works offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

CODES = ("offers-over-capacity", "gpu-model-differs")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A fleet that offers 32 GPUs of a pool of H100; one machine of 8 A100 has joined it."""
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok(
        *("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "8"),
        *("--product", "NVIDIA A100 80GB PCIe", "--now", NOW),
    )
    return home


@pytest.mark.parametrize("command", [("plan", "."), ("drift", "."), ("apply", ".", "--yes", "--now", NOW)])
def test_what_the_machines_contradict_is_said(home: Home, command: tuple[str, ...]) -> None:
    said = home.ok(*command).err
    assert [code for code in CODES if code in said] == list(CODES)
    assert "fleet.yaml:" in said and "has 8" in said and "report A100" in said


def test_a_comment_silences_it(home: Home) -> None:
    text = (home.work / "fleet.yaml").read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        for code, field in zip(CODES, ("quota: {", "gpuModel: "), strict=True):
            if field in line:
                lines.append(f"{line[: len(line) - len(line.lstrip())]}# fleetctl: allow {code} agreed for now")
        lines.append(line)
    home.write("fleet.yaml", "\n".join(lines) + "\n")
    assert home.ok("plan", ".").err == ""


def test_what_is_wrong_in_the_files_is_said_before_the_engine_is_looked_for(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    home.write("fleet.yaml", FLEET.replace("H100, policy", "H 100, policy"))
    assert home.json("plan", ".", exit=1)["diagnostics"][0]["code"] == "pool-gpu-model"
    home.write("fleet.yaml", FLEET)
    assert home.json("plan", ".", exit=3)["diagnostics"][0]["code"] == "engine-unnamed"
