"""Times steps that share ranks, beside each alone.

Two training steps of one network and different batches, on four ranks: in turn,
and each by itself. Memory is what a process of its own takes for them, beside
that of the step that needs more.

Prints a row each, with what it may be at most.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import limits
import numpy as np

import whale as wh

RANKS = 4
WIDTH = 256
ROWS = {"small": 4096, "large": 16384}
TURNS, MEMORY = 1.05, 1.05


def make(name: str, ranks: int) -> Callable[[], Any]:
    """A call of the step of so many rows, which waits for it."""

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x * x)

    def step(
        weights: list[jax.Array], x: jax.Array
    ) -> tuple[list[jax.Array], jax.Array]:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return [w - 0.1 * g for w, g in zip(weights, gradients)], value

    random = np.random.default_rng(0)
    weights: Any = [
        random.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5
        for _ in range(4)
    ]
    x = random.normal(size=(ROWS[name], WIDTH)).astype(np.float32)
    wh.set_default_strategy(wh.replicate())
    compiled = wh.jit(step, cluster=ranks, batch_argnums=1, donate_argnums=0)
    compiled.lower(weights, x).compile()

    def call() -> None:
        nonlocal weights
        weights, value = compiled(weights, x)
        value.block_until_ready()

    return call


def status_of(name: str) -> int:
    """What Linux says of this process's memory, in bytes."""
    text = pathlib.Path("/proc/self/status").read_text()
    found = re.search(rf"^{name}:\s*(\d+) kB$", text, re.M)
    assert found, name
    return int(found[1]) << 10


def measure_memory(names: list[str], ranks: int) -> None:
    """Prints what steps add to this process at most, in turn."""
    calls = [make(name, ranks) for name in names]
    # The peak counts from here.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status_of("VmRSS")
    for _ in range(3):
        for call in calls:
            call()
    print(json.dumps(status_of("VmHWM") - before))


def memory_of(names: list[str], ranks: int) -> float:
    """The same of a process of its own, in MiB."""
    command = [sys.executable, __file__, f"--ranks={ranks}", "--memory", *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)) / (1 << 20)


def measure(ranks: int, rounds: int) -> list[limits.Row]:
    """All rows."""
    calls = {name: make(name, ranks) for name in ROWS}
    for _ in range(3):
        for call in calls.values():
            call()

    def seconds(*given: Callable[[], Any]) -> float:
        begin = time.perf_counter()
        for call in given:
            call()
        return time.perf_counter() - begin

    alone, together = [], []
    for _ in range(rounds):
        alone.append(sum(seconds(*[call] * 4) / 4 for call in calls.values()))
        together.append(seconds(*list(calls.values()) * 4) / 4)
    both, larger = (memory_of(names, ranks) for names in ([*ROWS], ["large"]))
    return [
        limits.Row(
            "a step of each of two programs, in turn",
            "each by itself",
            *("ms", statistics.median(together) * 1e3),
            *(statistics.median(alone) * 1e3, TURNS),
        ),
        limits.Row(
            "memory of both", "of the larger", "MiB", both, larger, MEMORY
        ),
    ]


def main() -> str | None:
    """Measures all; what misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--memory", nargs="+", choices=ROWS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory, options.ranks)
        return None
    rows = measure(options.ranks, options.rounds)
    return limits.report(rows, options.output)


if __name__ == "__main__":
    sys.exit(main())
