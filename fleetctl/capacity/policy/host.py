"""What every host of the pool is told to do: hostReserve, hugepages, kernelModules, cpu."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleetctl.canonical import Json
from fleetctl.capacity.policy.problems import Policy, PolicyProblem, PoolContext, one_of, problem, rule
from fleetctl.model.policy_forms import integer_of
from fleetctl.units import decimal_ratio, shown

HUGEPAGE_SIZES = ("2Mi", "1Gi")
GOVERNORS = ("performance", "schedutil", "ondemand", "powersave")

_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,54}", re.ASCII)  # the kernel's MODULE_NAME_LEN
_PRINTABLE = re.compile(r"[ -~]{0,1024}", re.ASCII)
_CPU_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)

HOST_RESERVE = rule(
    "policy-host-reserve",
    "A hostReserve figure is below 0",
    trigger="hostReserve: {vcpu: -1}",
)
HUGEPAGES = rule(
    "policy-hugepages",
    "hugepages is not a size and a count above 0",
    trigger="hugepages: {size: 1GiB, count: 32}, a missing or zero count",
)
KERNEL_MODULE = rule(
    "policy-kernel-module",
    "kernelModules holds what no modprobe line may hold",
    trigger="kernelModules: {load: [../evil]}, a name with a space or a line break",
)
CPU_GOVERNOR = rule(
    "policy-cpu-governor",
    "cpu.governor is not a governor",
    trigger="cpu: {governor: turbo}",
)
CPU_ISOLATE = rule(
    "policy-cpu-isolate",
    "cpu.isolate is not a list of CPUs without CPU 0",
    trigger="cpu: {isolate: 0-3}, 3-1, 1, followed by nothing, a stride",
)


def check(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    """The rules of better-compute 4B for hostReserve, hugepages, kernelModules and cpu."""
    reserve = policy.get("hostReserve", {})
    assert isinstance(reserve, dict)
    for name in ("vcpu", "memoryGiB"):
        kept = reserve.get(name)
        if isinstance(kept, str) and decimal_ratio(kept)[0] < 0:
            yield problem(HOST_RESERVE, ("hostReserve", name), f"{kept} is below 0; write 0 to keep nothing back")
    yield from _hugepages(policy)
    yield from _modules(policy)
    yield from _cpu(policy)


def _hugepages(policy: Policy) -> Iterator[PolicyProblem]:
    if "hugepages" not in policy:
        return
    pages = policy["hugepages"]
    assert isinstance(pages, dict)
    size = pages.get("size")
    if size not in HUGEPAGE_SIZES:
        said = "no size is given" if size is None else f"{shown(str(size))} is no page size"
        yield problem(HUGEPAGES, ("hugepages", "size"), f"{said}; write {one_of(HUGEPAGE_SIZES)}")
    count = integer_of(pages.get("count"))
    if count is None or count < 1:
        said = "no count is given" if count is None else f"{count} pages are none"
        yield problem(
            HUGEPAGES, ("hugepages", "count"), f"{said}; write a whole number above 0, or leave hugepages out"
        )


def _modules(policy: Policy) -> Iterator[PolicyProblem]:
    modules = policy.get("kernelModules", {})
    assert isinstance(modules, dict)
    load, options = modules.get("load", []), modules.get("options", {})
    assert isinstance(load, list)
    assert isinstance(options, dict)
    for index, name in enumerate(load):
        if not _MODULE.fullmatch(str(name)):
            yield problem(KERNEL_MODULE, ("kernelModules", "load", index), _no_module(str(name)))
    yield from _options(options)


def _options(options: Mapping[str, Json]) -> Iterator[PolicyProblem]:
    for name, value in options.items():
        path = ("kernelModules", "options", name)
        if not _MODULE.fullmatch(name):
            yield problem(KERNEL_MODULE, path, _no_module(name))
        elif not _PRINTABLE.fullmatch(str(value)):
            yield problem(
                KERNEL_MODULE, path, f"{shown(str(value))} is no option line; use one line of printable ASCII"
            )


def _no_module(name: str) -> str:
    return f"{shown(name)} is no module name; use letters, digits, _ and -, at most 55, such as nvidia_peermem"


def _cpu(policy: Policy) -> Iterator[PolicyProblem]:
    cpu = policy.get("cpu", {})
    assert isinstance(cpu, dict)
    governor = cpu.get("governor")
    if governor is not None and governor not in GOVERNORS:
        yield problem(
            CPU_GOVERNOR, ("cpu", "governor"), f"{shown(str(governor))} is not known; write {one_of(GOVERNORS)}"
        )
    isolate = cpu.get("isolate")
    if isinstance(isolate, str) and (wrong := _cpulist_fault(isolate)):
        yield problem(CPU_ISOLATE, ("cpu", "isolate"), wrong)


def _cpulist_fault(text: str) -> str | None:
    """What is wrong with a cpulist of single CPUs `n` and ranges `a-b` by commas, or None."""
    for part in text.split(","):
        match = _CPU_RANGE.fullmatch(part)
        if match is None:
            return f"{shown(text)} is no cpulist; write CPUs and ranges by commas without spaces, such as 1-3,8"
        first, last = match[1], match[2] or match[1]
        if int(first) == 0:
            return "CPU 0 cannot be isolated; start at 1"
        if first.startswith("0") or last.startswith("0"):
            return f"{shown(part)} has a leading zero; remove it"
        if int(first) > int(last):
            return f"the range {shown(part)} runs backwards; write {last}-{first}"
    return None
