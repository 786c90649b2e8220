"""Devices and networks of the papers, each number with its source.

They were fixed before any figure was simulated. A change is a commit of its
own, which prints docs/paper.md anew. Products and convolutions compute in f32:
all of the papers' runs that are looked at do.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA_SHEET = "data sheet"
GEMM = (
    "baidu-research/DeepBench, results/train: median of 160 products, by class"
)
CONVOLUTIONS = (
    "DeepBench: harmonic mean of the median forward, backward of the input "
    "and backward of the kernel"
)
HABITAT = "Habitat (ATC'21), devices.yml"
NCCL = "NVIDIA/nccl, src/graph/tuning.cc and topo.h"
MEGA, GIGA, TERA = 1e6, 1e9, 1e12
MEBIBYTE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Number:
    """A constant, where it is from, and whether that is an inference."""

    value: Any
    source: str
    is_inferred: bool = False


def _model_constant(name: str) -> float:
    """A constant of the cost model, as its header says it."""
    header = ROOT / "include" / "whale" / "Step" / "CostModel.h"
    found = re.search(rf"double {name} = ([^;]+);", header.read_text())
    assert found, f"{header} has no {name}"
    return float(found[1])


# What the cost model takes for granted of all networks.
MODEL: dict[str, Number] = {
    "kMessageGap": Number(
        _model_constant("kMessageGap"),
        "part of the latency that each message of an all-to-all takes but the "
        "first: between 0.01 (215 million messages a second at 0.6 us, "
        "ConnectX-6's product brief) and 0.7 (4 of 6 us, CM-5 in LogP, "
        "PPoPP'93), from memory",
        True,
    ),
}


def _by_flops(*shares: float) -> list[list[float]]:
    """A curve over the classes of products that DeepBench's shapes are in:
    each share at the middle of its class, by the logarithm."""
    middles = (0.03e9, 0.17e9, 0.55e9, 1.7e9, 32e9, 200e9)
    return [[flops, share] for flops, share in zip(middles, shares)]


def _by_smallest(*shares: float) -> list[list[float]]:
    """The same by the smallest extent of a product."""
    middles = (12, 23, 46, 91, 278, 1000)
    return [[size, share] for size, share in zip(middles, shares)]


_INVENTED_START = Number(
    5e-6, "of a kernel on V100, A100 and H100: at least that", True
)

# By kind, each field of a cluster file.
KINDS: dict[str, dict[str, Number]] = {
    "V100-SXM2-32GB": {
        "flops": Number({"f32": 15.7 * TERA}, DATA_SHEET),
        "memory_bytes": Number(32 << 30, DATA_SHEET),
        "memory_bandwidth": Number(900 * GIGA, DATA_SHEET),
        "memory_efficiency": Number(0.82, f"{HABITAT}: 739 of 900 GB/s"),
        "efficiency.matmul": Number(
            {
                "flops": _by_flops(0.09, 0.28, 0.50, 0.61, 0.83, 0.87),
                "smallest_dimension": _by_smallest(
                    0.23, 0.46, 0.48, 0.71, 0.83, 0.85
                ),
            },
            f"{GEMM} (DGX-1, CUDA 10.1)",
        ),
        "efficiency.convolution": Number(
            {"window": [[1, 0.43], [9, 1.13], [49, 0.55]]},
            f"{CONVOLUTIONS}, by window: 1 x 1 8.1, 6.7 and 5.7 TFLOP/s, "
            "3 x 3 17.4, 19.8 and 16.6, all 10.3, 9.6 and 6.8 (cuDNN 7.6)",
        ),
        "kernel_start": _INVENTED_START,
        "reserved_bytes": Number(
            258 * MEBIBYTE,
            "of 32,768 MiB the driver shows 32,510, from memory",
            True,
        ),
        "power_w": Number(300, DATA_SHEET),
    },
    "P100-PCIe-16GB": {
        "flops": Number({"f32": 9.3 * TERA}, DATA_SHEET),
        "memory_bytes": Number(16 << 30, DATA_SHEET),
        "memory_bandwidth": Number(732 * GIGA, DATA_SHEET),
        "memory_efficiency": Number(0.68, f"{HABITAT}: 501 of 732 GB/s"),
        "efficiency.matmul": Number(
            {
                "flops": _by_flops(0.16, 0.19, 0.60, 0.67, 0.93, 0.96),
                "smallest_dimension": _by_smallest(
                    0.13, 0.56, 0.64, 0.78, 0.93, 0.96
                ),
            },
            f"{GEMM} (CUDA 8)",
        ),
        "efficiency.convolution": Number(
            {"window": [[1, 0.41], [9, 1.04], [49, 0.52]]},
            f"{CONVOLUTIONS}, by window: 1 x 1 4.9, 3.4 and 3.4 TFLOP/s, "
            "3 x 3 10.9, 10.9 and 7.9, all 6.1, 4.5 and 4.2 (cuDNN 6)",
        ),
        "kernel_start": _INVENTED_START,
        "reserved_bytes": Number(
            104 * MEBIBYTE,
            "of 16,384 MiB the driver shows 16,280, from memory",
            True,
        ),
        "power_w": Number(250, DATA_SHEET),
    },
}

CALCULON = "Calculon, systems/a100_80g.json: shares by FLOPs of a product"
TENSOR_CORES = (
    "as V100's tensor cores attain of theirs (DeepBench, by window: 1 x 1 32, "
    "21 and 25 TFLOP/s, 3 x 3 53, 51 and 49, all 38, 29 and 28 of 125)"
)


def _tensor_core_kind(
    tf32: float, memory: int, bandwidth: float, share: Number, power: float
) -> dict[str, Number]:
    """A GPU that computes products of f32 in TF32."""
    return {
        "flops": Number({"f32": tf32 * TERA}, f"{DATA_SHEET}, TF32, dense"),
        "memory_bytes": Number(memory << 30, DATA_SHEET),
        "memory_bandwidth": Number(bandwidth * GIGA, DATA_SHEET),
        "memory_efficiency": share,
        "efficiency.matmul": Number(
            [[0.3e9, 0.10], [4e9, 0.60], [45e9, 0.90], [200e9, 0.95]],
            f"{CALCULON} of an A100 at 16 bits",
            True,
        ),
        "efficiency.convolution": Number(
            {"window": [[1, 0.20], [9, 0.41], [49, 0.25]]}, TENSOR_CORES, True
        ),
        "kernel_start": _INVENTED_START,
        "power_w": Number(power, DATA_SHEET),
    }


KINDS["A100-SXM4-80GB"] = _tensor_core_kind(
    156, 80, 2039, Number(0.87, "napkin-math-gpu: 1,783 of 2,039 GB/s"), 400
)
KINDS["H100-SXM5-80GB"] = _tensor_core_kind(
    494.7, 80, 3350, Number(0.90, "napkin-math-gpu: 3,004 of 3,350 GB/s"), 700
)

# Of each device to those of its node, in each direction.
LINKS: dict[str, dict[str, Number]] = {
    "V100-SXM2-32GB": {
        "bandwidth": Number(
            120 * GIGA, f"NVLink in an all-reduce, 6 links of 20 GB/s: {NCCL}"
        ),
        "latency": Number(3.4e-6, f"a step of a ring over NVLink: {NCCL}"),
    },
    "P100-PCIe-16GB": {
        "bandwidth": Number(
            5.9 * GIGA, "PCIe in an all-reduce: DeepBench, 12 MB and more"
        ),
        "latency": Number(5.7e-6, f"a step of a ring over PCIe: {NCCL}"),
    },
}

# Of each node, 50 Gb/s Ethernet.
NETWORK: dict[str, Number] = {
    "bandwidth": Number(
        5.9 * GIGA,
        "RDMA attains 0.94 of the wire (SimAI: 23.5 of 25 GB/s, 48.5 of 50). "
        "That the paper's network is RDMA isn't said",
        True,
    ),
    "latency": Number(10e-6, f"a hop, rounded: {NCCL}"),
}
TCP_BANDWIDTH = Number(
    3.75 * GIGA, "TCP attains 0.60 of a wire of 32 Gb/s (nccl#209)", True
)


def make_kind(name: str) -> dict[str, Any]:
    """A kind as a cluster file has it."""
    kind: dict[str, Any] = {}
    for path, number in KINDS[name].items():
        field, _, part = path.partition(".")
        if part:
            kind.setdefault(field, {})[part] = number.value
        else:
            kind[field] = number.value
    return kind


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Nodes of one kind of devices."""

    kind: str
    devices: int = 8
    count: int = 1


def make_cluster(
    *nodes: Nodes,
    network: float = NETWORK["bandwidth"].value,
    is_free: bool = False,
) -> dict[str, Any]:
    """A cluster file. With `is_free` links and networks cost nothing."""

    def link_of(name: str) -> dict[str, float]:
        return {field: number.value for field, number in LINKS[name].items()}

    cluster: dict[str, Any] = {
        "kinds": {node.kind: make_kind(node.kind) for node in nodes},
        "nodes": [
            {
                "count": node.count,
                "devices": [{"kind": node.kind, "count": node.devices}],
            }
            | ({} if is_free else {"link": link_of(node.kind)})
            for node in nodes
        ],
    }
    if not is_free:
        cluster["network"] = {
            "bandwidth": network,
            "latency": NETWORK["latency"].value,
        }
    return cluster


V100 = "V100-SXM2-32GB"
P100 = "P100-PCIe-16GB"
A100 = "A100-SXM4-80GB"
H100 = "H100-SXM5-80GB"


def alone(kind: str) -> dict[str, Any]:
    """One device."""
    return make_cluster(Nodes(kind, 1), is_free=True)


def v100s(count: int, **options: Any) -> dict[str, Any]:
    """As many V100, eight in a node."""
    devices = min(count, 8)
    return make_cluster(Nodes(V100, devices, count // devices), **options)


def mixed(each: int, is_alike: bool = False, **options: Any) -> dict[str, Any]:
    """A node of V100, and one of as many P100. With `is_alike` these have
    their own links and memory, but are as fast as V100: a plan for that
    cluster has equal shares."""
    cluster = make_cluster(Nodes(V100, each), Nodes(P100, each), **options)
    if is_alike:
        memory = {
            field: cluster["kinds"][P100][field]
            for field in ("memory_bytes", "reserved_bytes")
        }
        cluster["kinds"][P100] = make_kind(V100) | memory
    return cluster
