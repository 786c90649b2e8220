"""What this machine has: processor, memory and GPUs, as a cluster has them.

GPUs are those of NVIDIA's driver, which is asked directly: its library is
opened where it is there. Memory is what control groups leave of the machine's.
Peaks of kinds that Whale does not know come of clocks and counts of units,
unless the processor is measured.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import platform
import re
from typing import Any

from whale import native
from whale.tracebacks import api_boundary


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU, as the driver describes it."""

    name: str
    memory_bytes: int
    # Of its architecture: (9, 0) for sm_90.
    capability: tuple[int, int]
    multiprocessors: int
    # In Hz.
    clock: float
    memory_clock: float
    # In bits.
    bus_width: int


@api_boundary
def detect_cluster(*, measure: int | None = None) -> dict[str, Any]:
    """This machine as a cluster: what `cluster=` takes, and JSON can hold.

    With GPUs their kinds, counts and memory; else one CPU with the memory of
    the machine, and the cores, that control groups leave to this process. Peaks
    are those of the built-in kinds, or come of clocks.

    Args:
        measure: a number of ranks that share the processor, which is measured
            (products by size and type, memory, the start of a call, messages
            between ranks) while all of them work, as `whale-sim --calibrate`
            does: a few seconds. GPUs are left out then.
    """
    if measure is not None:
        if measure < 1:
            raise ValueError(f"measure is a number of ranks, not {measure}")
        return json.loads(native.extension().calibrate(measure))
    found = gpus()
    if not found:
        machine = native.extension()
        node = {
            "name": platform.node(),
            "devices": [{"kind": "cpu"}],
            "cores": machine.usable_processors(),
        }
        return {
            "kinds": {"cpu": {"memory_bytes": machine.machine_memory()}},
            "nodes": [node],
        }
    kinds: dict[str, Any] = {}
    devices: list[dict[str, Any]] = []
    for gpu in found:
        kind = kind_of(gpu)
        kinds[kind] = _numbers(gpu, kind)
        if devices and devices[-1]["kind"] == kind:
            devices[-1]["count"] += 1
        else:
            devices.append({"kind": kind, "count": 1})
    return {
        "kinds": kinds,
        "nodes": [{"name": platform.node(), "devices": devices}],
    }


# The form of a family whose names do not say it.
_FORMS = {"T4": "PCIe", "H100": "SXM5", "H800": "SXM5", "H200": "SXM5"}
_FORMS["H20"] = "SXM5"
_BUILTIN = re.compile(
    r"P100-(PCIe-(16|12)|SXM2-16)GB|V100-(SXM2|PCIe)-(32|16)GB"
    r"|V100S-PCIe-32GB|T4-PCIe-16GB|A100-(SXM4|PCIe)-(80|40)GB"
    r"|A800-(SXM4-80|PCIe-80|PCIe-40)GB|H[18]00-((SXM5|PCIe)-80|NVL-94)GB"
    r"|H20-SXM5-(96|141)GB|H200-(SXM5|NVL)-141GB"
)


def kind_of(gpu: Gpu) -> str:
    """The kind of a GPU: a built-in one, or its own name."""
    words = re.split(r"[ -]+", re.sub(r"^(NVIDIA|Tesla) ", "", gpu.name))
    family = words[0]
    form = next(
        (
            {"PCIE": "PCIe"}.get(word.upper(), word.upper())
            for word in words[1:]
            if re.fullmatch(r"(?i)PCIE|SXM\d|NVL", word)
        ),
        _FORMS.get(family, ""),
    )
    # A little of it is not for programs.
    gigabytes = gpu.memory_bytes / 2**30
    sizes = [12, 16, 32, 40, 80, 94, 96, 141]
    size = min((s for s in sizes if s >= gigabytes), default=0)
    kind = f"{family}-{form}-{size}GB"
    return kind if _BUILTIN.fullmatch(kind) else gpu.name


def _numbers(gpu: Gpu, kind: str) -> dict[str, Any]:
    """What the cluster file says of a kind; of a built-in one its memory."""
    if _BUILTIN.fullmatch(kind):
        return {"memory_bytes": gpu.memory_bytes}
    major, minor = gpu.capability
    # Units for f32 of a multiprocessor.
    units = 64 if (major, minor) in ((6, 0), (7, 0), (7, 5), (8, 0)) else 128
    return {
        "flops": {"f32": 2.0 * units * gpu.multiprocessors * gpu.clock},
        "memory_bytes": gpu.memory_bytes,
        "memory_bandwidth": 2.0 * gpu.memory_clock * gpu.bus_width / 8,
        "arch": f"sm_{major}{minor}",
    }


# Of the driver's attributes of devices.
_CLOCK, _MULTIPROCESSORS, _MEMORY_CLOCK, _BUS_WIDTH = 13, 16, 36, 37
_MAJOR, _MINOR = 75, 76


def gpus() -> list[Gpu]:
    """The GPUs of this machine, in the driver's order.

    None where there is no driver, or it has nothing to say.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for index in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        memory = ctypes.c_size_t()
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, 256, device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

        def ask(attribute: int, device: ctypes.c_int = device) -> int:
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            return value.value

        found.append(
            Gpu(
                name.value.decode(errors="replace"),
                memory.value,
                (ask(_MAJOR), ask(_MINOR)),
                ask(_MULTIPROCESSORS),
                # The driver counts in kHz.
                ask(_CLOCK) * 1e3,
                ask(_MEMORY_CLOCK) * 1e3,
                ask(_BUS_WIDTH),
            )
        )
    return found


def processor() -> str:
    """The name of the processor, and how many cores this process may use."""
    name = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    name = line.split(":", 1)[1].strip()
                    break
    except OSError:
        pass
    return f"{name}, {len(os.sched_getaffinity(0))} cores for this process"
