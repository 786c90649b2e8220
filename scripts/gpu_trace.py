#!/usr/bin/env python3
"""Says where a GPU's time went, from a file of libwhale-gpu-trace.so.

    gpu_trace.py TRACE [STEPS]

Needs Python alone. Of the second half of what the GPU did, so that the first
steps, which prepare, do not count: how long it was busy, the part of the time
that it did nothing between two operations, and the costliest kernels.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import sys

TOP = 15


@dataclasses.dataclass(frozen=True)
class Operation:
    """What a GPU did, with times in ns."""

    begin: int
    end: int
    # Of a call of the driver by the host, 0.
    stream: int
    registers: int
    threads: int
    # Of a copy or fill, bytes.
    blocks: int
    name: str


def read(path: pathlib.Path) -> list[Operation]:
    """The operations of a trace in the order in which they began."""
    operations = []
    for line in path.read_text().splitlines():
        begin, end, stream, registers, threads, blocks, name = line.split(
            "\t", 6
        )
        operations.append(
            Operation(
                *(int(begin), int(end), int(stream), int(registers)),
                *(int(threads), int(blocks)),
                name,
            )
        )
    return sorted(operations, key=lambda operation: operation.begin)


def busy_time(operations: list[Operation]) -> int:
    """Nanoseconds in which at least one operation ran."""
    total, until = 0, 0
    for operation in operations:
        total += max(0, operation.end - max(operation.begin, until))
        until = max(until, operation.end)
    return total


def last_steps(operations: list[Operation], steps: int) -> list[Operation]:
    """What the last steps did.

    Args:
        steps: how many steps the program ran; operations before the first and
            behind the last, which move inputs and results, are no part of one.
    """
    kernels = [op for op in operations if op.threads]
    if not kernels:
        return []
    each = len(kernels) / steps
    first = kernels[-round(each * (steps // 2)) or 0]
    return [
        op
        for op in operations
        if op.stream and first.begin <= op.begin <= kernels[-1].begin
    ]


def summary(operations: list[Operation], steps: int, top: int = TOP) -> str:
    """A table of the second half of the steps."""
    operations = last_steps(operations, steps)
    if not operations:
        return "no kernels were run"
    half = max(1, steps // 2)
    span = max(op.end for op in operations) - operations[0].begin
    busy = busy_time(operations)
    lines = [
        f"{span / half / 1e6:.3f} ms a step, of which the GPU was busy"
        f" {busy / half / 1e6:.3f}; gaps {(span - busy) / span:.1%};"
        f" {len(operations) / half:.1f} operations"
    ]
    groups = collections.defaultdict(list)
    for op in operations:
        groups[op.name].append(op)
    costs = {
        name: sum(op.end - op.begin for op in group)
        for name, group in groups.items()
    }
    lines.append("  ms/step      %  calls/step  blocks x threads regs  name")
    for name in sorted(costs, key=costs.__getitem__, reverse=True)[:top]:
        group = groups[name]
        one = max(group, key=lambda op: op.end - op.begin)
        lines.append(
            f"{costs[name] / half / 1e6:9.4f} {costs[name] / busy:6.1%}"
            f" {len(group) / half:11.1f}  {one.blocks} x {one.threads}"
            f" {one.registers:4}  {name[:100]}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(summary(read(pathlib.Path(sys.argv[1])), steps))
