"""From a device's NVML name to its GPU family (seed: "One GPU model").

A name is cut into whole tokens after the vendor's word is dropped. Nothing matches by substring: `GH200` contains
`H200` and `H20` starts it, and they are three different cards.
"""

from __future__ import annotations

import re

from fleetctl.frozen import dataclass

_VENDOR = frozenset({"NVIDIA", "TESLA"})
_DATA_CENTRE = re.compile(r"[A-Z]{1,2}[0-9]{1,3}[A-Z]?", re.ASCII)
_MEMORY = re.compile(r"([0-9]{1,4})GB?", re.ASCII)
_INSTANCE = re.compile(r"(?:([1-9])c\.)?([1-9]g\.[1-9][0-9]*gb(?:\+[a-z]+(?:\.[a-z]+)?)?)", re.ASCII)
_MAX_NAME = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceName:
    """What a device's name tells.

    `family` is the pool's gpuModel. `memory_gb` is the figure written in the name, which on a GH200 is the CPU's side.
    `profile` is the GPU instance's MIG profile, `compute_slices` the part of it that a compute instance takes.
    """

    family: str
    tokens: tuple[str, ...]
    memory_gb: int | None = None
    profile: str | None = None
    compute_slices: int | None = None


def device_name(name: str) -> DeviceName | None:
    """Read an NVML name or its label form (`NVIDIA-A100-SXM4-40GB-MIG-1g.5gb`, suffix `-SHARED`); None for a name not understood."""
    if len(name) > _MAX_NAME:
        return None
    text = name.strip().removesuffix("-SHARED")
    text, _, instance = _split_instance(text)
    tokens = tuple(token for token in re.split(r"[ -]+", text) if token)
    if tokens and tokens[0].upper() in _VENDOR:
        tokens = tokens[1:]
    family = _family(tokens)
    if family is None:
        return None
    profile, compute = None, None
    if instance:
        match = _INSTANCE.fullmatch(instance)
        if match is None:
            return None
        profile, compute = match[2], int(match[1]) if match[1] else None
    memory = next((int(match[1]) for token in tokens[1:] if (match := _MEMORY.fullmatch(token))), None)
    return DeviceName(family=family, tokens=tokens, memory_gb=memory, profile=profile, compute_slices=compute)


def family_of(name: str) -> str | None:
    """The GPU family of an NVML name, such as `H100`, or None for a name not understood."""
    device = device_name(name)
    return device.family if device else None


def _split_instance(text: str) -> tuple[str, str, str]:
    for mark in (" MIG ", "-MIG-"):
        if mark in text:
            return text.partition(mark)
    return text, "", ""


def _family(tokens: tuple[str, ...]) -> str | None:
    match tokens:
        case ("RTX", "PRO", number, *_) if number.isascii() and number.isdigit():
            return f"RTX-PRO-{number}"
        case ("RTX", number, "Ada", *_) if number.isascii() and number.isdigit():
            return f"RTX-{number}-Ada"
        case ("RTX", model, *_) if re.fullmatch(r"A[0-9]{4}", model, re.ASCII):
            return f"RTX-{model}"
        case ("Quadro", "RTX", number, *_) if number.isascii() and number.isdigit():
            return f"Quadro-RTX-{number}"
        case ("GeForce", "RTX" | "GTX" as line, number, *rest) if number.isascii() and number.isdigit():
            variant = [word for word in rest[:2] if word in ("Ti", "SUPER", "D")]
            return "-".join(("GeForce", line, number, *variant))
        case (model, *_) if _DATA_CENTRE.fullmatch(model):
            return model
    return None
