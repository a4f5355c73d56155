"""The pool's own words: gpuModel, class, sharing, agent (seed: "What a pool is made of")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fleetctl.capacity.policy.problems import PolicyProblem, one_of, problem, rule
from fleetctl.units import shown

CLASSES = ("metal-host", "metal-dedicated", "vps-host", "provider")
SHARING_MODES = ("exclusive", "mig", "timeslice", "mps")
AGENTS = ("bcd", "none")

_GPU_MODEL = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII)

GPU_MODEL = rule(
    "pool-gpu-model",
    "gpuModel is not 1 to 32 letters, digits or hyphens",
    trigger="gpuModel: H100 NVL",
)
POOL_WORD = rule(
    "pool-word",
    "class, sharing or agent is not one of its words",
    trigger="class: Metal-Host",
)


def pool_words(*, gpu_model: str, pool_class: str, sharing: str, agent: str) -> Iterator[PolicyProblem]:
    """Problems of the four fields, each under its own name as path."""
    if not _GPU_MODEL.fullmatch(gpu_model):
        yield problem(
            GPU_MODEL,
            ("gpuModel",),
            f"{shown(gpu_model)} is no GPU family; use 1 to 32 ASCII letters, digits or hyphens, such as H100 or RTX-6000-Ada",
        )
    for name, value, words in (
        ("class", pool_class, CLASSES),
        ("sharing", sharing, SHARING_MODES),
        ("agent", agent, AGENTS),
    ):
        if value not in words:
            yield problem(POOL_WORD, (name,), f"{shown(value)} is not known; write {one_of(words)}")
