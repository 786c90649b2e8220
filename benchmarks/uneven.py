"""Do shares that follow the devices' speeds win what the planner promises?

The ranks of this machine are slowed down as if their devices were of different
speeds (``whale-run --slowdowns``), all by one more factor so that together they
want at most half of the cores. The same step is then run with equal shares and
with those that the planner gives these devices, data-parallel and as a pipeline
of two stages, and the gain compared with the predicted one. The prediction is
the roofline of each rank's instructions, times its slowdown: the time of the
rank that is last, and for S stages and M micro-batches the sum of all stages'
times of one of them and M - 1 times the longest.

``benchmarks/uneven.py [--repeats N]`` prints a table in Markdown, and fails
where less than 90% of a predicted gain is won.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import perceptron

import whale as wh
from whale.program import read_tables

LAYERS, BATCH, MICRO_BATCHES = 12, 16384, 8
# About what one core reaches, in FLOP/s of products and bytes/s of kernels.
CORE: dict[str, Any] = {
    "flops": {"f32": 1.5e11},
    "memory_bytes": 4 << 30,
    "memory_bandwidth": 1e10,
}


def compile_step(
    slowdowns: Sequence[float], config: dict[str, Any], args: Any, path: str
) -> None:
    """Plans for devices of these speeds."""
    wh.init(wh.Config(config))
    if not config:
        wh.set_default_strategy(wh.replicate())
    devices = [{"kind": "core", "slowdown": s} for s in slowdowns]
    step = wh.jit(
        perceptron.train_step,
        cluster={"kinds": {"core": CORE}, "nodes": [{"devices": devices}]},
        batch_argnums=(1, 2),
    )
    step.lower(*args).compile().save(path)


class Measurement:
    """One program on slowed ranks."""

    def __init__(self, folder: str, factors: Sequence[float]) -> None:
        self.folder, self.factors = folder, factors
        self.seconds: list[float] = []

    def run(self, program: str) -> None:
        """Two steps, of which the second counts."""
        factors = ",".join(map(str, self.factors))
        result = perceptron.run(
            self.folder, program, f"--slowdowns={factors}", "--steps=2"
        )
        self.seconds.append(result["step_time_s"])


def roofline(program: str) -> list[float]:
    """Seconds of each rank's instructions on a core of its own."""
    manifest = json.loads(pathlib.Path(program, "manifest.json").read_text())
    read_tables(program, manifest)

    def time(instructions: list[dict[str, Any]]) -> float:
        return sum(
            max(
                instruction.get("flops", 0) / CORE["flops"]["f32"],
                instruction.get("bytes", 0) / CORE["memory_bandwidth"],
            )
            for instruction in instructions
        )

    functions = [
        time(function["instructions"])
        for function in manifest.get("functions", ())
    ]
    seconds: dict[int, float] = {}
    for rank_class in manifest["classes"]:
        instructions = rank_class["instructions"]
        total = time(instructions) + sum(
            functions[rank_class["runs"][instruction["run"]]["function"]]
            for instruction in instructions
            if "run" in instruction
        )
        seconds |= dict.fromkeys(rank_class["ranks"], total)
    return [seconds[rank] for rank in sorted(seconds)]


def data_parallel(times: Sequence[float]) -> float:
    """The time of the last rank."""
    return max(times)


def pipeline(times: Sequence[float]) -> float:
    """The makespan of GPipe and 1F1B, of the stages' times for all of it."""
    each = [t / MICRO_BATCHES for t in times]
    return sum(each) + (MICRO_BATCHES - 1) * max(each)


def compare(
    slowdowns: Sequence[float],
    config: dict[str, Any],
    predict: Callable[[Sequence[float]], float],
    repeats: int,
) -> tuple[float, float, float, float]:
    """Seconds with equal and with uneven shares, the gain, the predicted."""
    cores = len(os.sched_getaffinity(0))
    demand = sum(1 / s for s in slowdowns)
    factor = max(1.0, demand / (cores / 2))
    with tempfile.TemporaryDirectory() as folder:
        args = perceptron.write_arguments(folder, LAYERS, BATCH)
        sides = {"equal": [1.0] * len(slowdowns), "uneven": slowdowns}
        measured, alone = {}, {}
        for side, speeds in sides.items():
            compile_step(speeds, config, args, f"{folder}/{side}.whale")
            alone[side] = roofline(f"{folder}/{side}.whale")
            measured[side] = Measurement(
                folder, [s * factor for s in slowdowns]
            )
        for _ in range(repeats):
            for side, measurement in measured.items():
                measurement.run(f"{folder}/{side}.whale")
    seconds, predicted = {}, {}
    for side, measurement in measured.items():
        seconds[side] = statistics.median(measurement.seconds)
        times = zip(alone[side], slowdowns, strict=True)
        predicted[side] = predict([time * slow for time, slow in times])
    return (
        seconds["equal"],
        seconds["uneven"],
        seconds["equal"] / seconds["uneven"],
        predicted["equal"] / predicted["uneven"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    stages = {"num_task_graph": 2, "num_micro_batch": MICRO_BATCHES}
    cases: list[tuple[str, Sequence[float], dict[str, Any], Any]] = [
        ("data-parallel", (1, 2), {}, data_parallel),
        ("data-parallel", (1, 1, 2, 4), {}, data_parallel),
        ("pipeline", (1, 2), stages, pipeline),
        ("pipeline", (3, 1), stages, pipeline),
    ]
    low = []
    print("| step | slowdowns | equal | uneven | gain | predicted | share |")
    print("|---|---|---|---|---|---|---|")
    for name, slowdowns, config, predict in cases:
        equal, uneven, gain, predicted = compare(
            slowdowns, config, predict, repeats
        )
        share = (gain - 1) / (predicted - 1)
        if share < 0.9:
            low.append(f"{name} {slowdowns}")
        print(
            f"| {name} | {', '.join(map(str, slowdowns))} "
            f"| {equal * 1e3:.0f} ms | {uneven * 1e3:.0f} ms "
            f"| {gain:.2f} x | {predicted:.2f} x | {share:.0%} |",
            flush=True,
        )
    if low:
        sys.exit(f"less than 90% of the predicted gain: {', '.join(low)}")


if __name__ == "__main__":
    main()
