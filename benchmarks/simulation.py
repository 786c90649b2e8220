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

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEVICES = 512
EXPERTS_S, EXPERTS_GIB, GPT_S = 30.0, 2.0, 6.0


def lower(name: str, cluster: dict[str, object]) -> str:
    """The annotated step as text."""
    wh.init(wh.Config({"warnings": False}))
    wh.set_default_strategy(wh.replicate(DEVICES))
    if name == "gpt":
        step = plan_models.gpt()
    else:
        scope = functools.partial(wh.split, DEVICES)
        step = m6_experts(8 * DEVICES, 128, 48, 10240, 9984, scope)
    lowered = wh.jit(
        step.function,
        cluster=cluster,
        batch_argnums=2,
        donate_argnums=(0, 1),
    ).lower(*step.arguments)
    return lowered.as_text()


def simulate(name: str, folder: pathlib.Path) -> None:
    """From JAX to a report."""
    cluster = v100s(DEVICES)
    for kind in cluster["kinds"].values():
        kind["memory_bytes"] = 1 << 50
    text, program = folder / f"{name}.mlir", folder / f"{name}.whale"
    file = folder / f"{name}.json"
    text.write_text(lower(name, cluster))
    file.write_text(json.dumps(cluster))
    tools = ROOT / "build" / "bin"
    compiled = [f"--cluster={file}", "--target=none", "-o", program]
    for words in (
        [tools / "whale-compile", text, *compiled],
        [tools / "whale-sim", program, f"--html={folder / 'report.html'}"],
    ):
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
