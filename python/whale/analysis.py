"""What a program costs and holds, by the names that JAX has for it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from whale.dtypes import numpy_dtype

if TYPE_CHECKING:
    from whale.program import Program


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes of the rank that holds most, by the names that JAX has for them."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    # Of results that take the memory of donated arguments.
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    peak_memory_in_bytes: int
    # Of all ranks, the last of these.
    peak_memory_by_rank: tuple[int, ...]
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0


def cost_analysis(program: Program) -> dict[str, float]:
    """The arithmetic and the bytes of a step, of all ranks together."""
    graphs = program.plan.get("task_graphs", [])
    return {
        "flops": float(sum(graph["flops"] for graph in graphs)),
        "bytes accessed": float(sum(graph["bytes"] for graph in graphs)),
    }


def memory_analysis(program: Program) -> MemoryAnalysis:
    """What each rank needs, of the one that needs most."""
    manifest = program.manifest
    count = program.rank_count
    temp = [0] * count
    for entry in manifest["classes"]:
        for rank in entry["ranks"]:
            temp[rank] = entry["arena_bytes"] + entry.get("workspace_bytes", 0)
    arguments = _bytes_by_rank(manifest["arguments"], count)
    outputs = _bytes_by_rank(manifest["results"], count)
    aliased = _bytes_by_rank(
        [r for r in manifest["results"] if r.get("alias") is not None], count
    )
    peaks = tuple(
        a + o - both + t
        for a, o, both, t in zip(arguments, outputs, aliased, temp)
    )
    most = peaks.index(max(peaks))
    return MemoryAnalysis(
        argument_size_in_bytes=arguments[most],
        output_size_in_bytes=outputs[most],
        alias_size_in_bytes=aliased[most],
        temp_size_in_bytes=temp[most],
        generated_code_size_in_bytes=program.code_bytes(),
        peak_memory_in_bytes=peaks[most],
        peak_memory_by_rank=peaks,
    )


def _bytes_by_rank(entries: list[dict[str, Any]], count: int) -> list[int]:
    total = [0] * count
    for entry in entries:
        size = numpy_dtype(entry["dtype"]).itemsize
        for rank, box in enumerate(entry["boxes"] or ()):
            if box is not None:
                total[rank] += size * math.prod(box[1])
    return total
