"""Times what simulating steps on 512 devices takes, from JAX to a report.

- A mixture of experts with 10 trillion parameters (M6-MoE-10T's shapes), whose
  devices have as much memory as it takes: lowering by JAX, planning with
  `whale-compile --target=none`, and `whale-sim`; and the memory of the largest
  of these processes.
- A GPT of 24 layers, whose batch is shared out.

Prints a row each, with what it may be at most.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import limits
import plan_models
from paper.constants import v100s
from paper.m6 import m6_experts
from paper.simulate import TOOLS, Run, lower

import whale as wh

DEVICES = 512
EXPERTS_S, EXPERTS_GIB, GPT_S = 30.0, 2.0, 6.0


def make_run(name: str) -> Run:
    """The step, for devices that have as much memory as it takes."""
    cluster = v100s(DEVICES)
    for kind in cluster["kinds"].values():
        kind["memory_bytes"] = 1 << 50
    make = functools.partial(plan_models.gpt)
    if name == "experts":
        scope = functools.partial(wh.split, DEVICES)
        make = functools.partial(
            m6_experts, 8 * DEVICES, 128, 48, 10240, 9984, scope
        )
    return Run(make, cluster, default=functools.partial(wh.replicate, DEVICES))


def simulate(name: str, folder: pathlib.Path) -> None:
    """From JAX to a report."""
    run = make_run(name)
    text, program = folder / f"{name}.mlir", folder / f"{name}.whale"
    file = folder / f"{name}.json"
    text.write_text(lower(run))
    file.write_text(json.dumps(run.cluster))
    compiled: list[str | pathlib.Path] = [
        *(f"--cluster={file}", "--target=none"),
        *("-o", program),
    ]
    commands: tuple[list[str | pathlib.Path], ...] = (
        [TOOLS / "whale-compile", text, *compiled],
        [TOOLS / "whale-sim", program, f"--html={folder / 'report.html'}"],
    )
    for words in commands:
        subprocess.run(words, check=True, capture_output=True)


def measure(name: str, rounds: int) -> tuple[float, float]:
    """The least seconds, and the most bytes of a process."""
    seconds, most = [], 0.0
    for _ in range(rounds):
        # A process of its own, which imports JAX before it is timed.
        result = subprocess.run(
            [sys.executable, __file__, "--step", name],
            check=True,
            capture_output=True,
            text=True,
        )
        found, size = map(float, result.stdout.split())
        seconds.append(found)
        most = max(most, size)
    return min(seconds), most


def run_step(name: str) -> None:
    """Prints seconds and bytes."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        simulate(name, pathlib.Path(folder))
    seconds = time.perf_counter() - begin
    most = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(seconds, most * 1024)


def main() -> str | None:
    """Measures all; what misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--step")
    options = parser.parse_args()
    if options.step:
        run_step(options.step)
        return None
    # They are long, and scatter little.
    rounds = min(options.rounds, 2)
    seconds, most = measure("experts", rounds)
    gpt, _ = measure("gpt", rounds)
    of_experts = f"10 trillion parameters on {DEVICES} V100"
    rows = [
        limits.Row(
            f"{of_experts}, from JAX to a report",
            "the limit",
            *("s", seconds, EXPERTS_S, 1.0),
        ),
        limits.Row(
            f"{of_experts}, memory of a process",
            "the limit",
            *("GiB", most / (1 << 30), EXPERTS_GIB, 1.0),
        ),
        limits.Row(
            f"a GPT of 24 layers on {DEVICES} V100, from JAX to a report",
            "the limit",
            *("s", gpt, GPT_S, 1.0),
        ),
    ]
    return limits.report(rows, options.output)


if __name__ == "__main__":
    sys.exit(main())
