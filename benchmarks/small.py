"""Are small steps as fast as JAX's?

Each of the steps of small_steps.py runs on one rank beside `jax.jit` in the
same process, in turn, a few calls each, the state of a call given to the next
one. Its time is the least of all calls: what else the machine does only makes
calls longer. A ratio is JAX's time over Whale's.

``benchmarks/small.py [NAME...]`` prints the worst ratios, the median of each
kind and that of all; a NAME is a step or a kind. Fails where results differ,
or, of all steps, the median is below 1.2 or a ratio below 0.9.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from small_steps import STEPS, SmallStep

import whale as wh

MEDIAN_GOAL, WORST_GOAL = 1.2, 0.9
TOLERANCE = 2e-3  # Of a result's largest element; steps in f16 need it.


class Side:
    """A step as one side compiles it, with the state that it has reached."""

    def __init__(self, step: Callable[..., Any], state: Any, data: Any) -> None:
        self.step, self.state, self.data = step, state, data
        self.first = jax.tree.map(np.asarray, self.call())
        self.least = float("inf")

    def call(self) -> Any:
        """One step, to its end."""
        self.state, output = self.step(self.state, *self.data)
        return jax.block_until_ready((self.state, output))

    def measure(self, calls: int) -> None:
        """Keeps the least time of some calls."""
        for _ in range(calls):
            begin = time.perf_counter()
            self.call()
            self.least = min(self.least, time.perf_counter() - begin)


def prepare(step: SmallStep) -> dict[str, Side]:
    """Both sides, after their first call."""
    function, state, data = step.make()
    return {
        "jax": Side(jax.jit(function), state, data),
        "whale": Side(wh.jit(function, cluster=1), state, data),
    }


def differs(sides: dict[str, Side]) -> bool:
    """Whether results of the first calls differ by more than rounding."""
    for a, b in zip(
        jax.tree.leaves(sides["jax"].first),
        jax.tree.leaves(sides["whale"].first),
        strict=True,
    ):
        most = np.max(np.abs(a), initial=1e-3)
        if not np.max(np.abs(a - b), initial=0) <= TOLERANCE * most:
            return True
    return False


def measure(sides: dict[str, Side], rounds: int, seconds: float) -> float:
    """The ratio of the least times of rounds that last about `seconds`."""
    for _ in range(rounds):
        for side in sides.values():
            share = seconds / (2 * rounds)
            calls = 3 if side.least > share else int(share / side.least)
            side.measure(min(max(calls, 3), 200))
    return sides["jax"].least / sides["whale"].least


def main() -> str | None:
    """Prints the table; says what misses the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="for the calls of a step"
    )
    parser.add_argument(
        "--worst", type=int, default=20, help="rows that are shown"
    )
    parser.add_argument(
        "--tuned", action="store_true", help="without those for measuring alone"
    )
    options = parser.parse_args()
    wanted = [
        step
        for step in STEPS
        if (not options.names or {step.name, step.kind} & set(options.names))
        and (step.is_tuned or not options.tuned)
    ]
    if not wanted:
        parser.error(
            f"no such step; kinds are {sorted({s.kind for s in STEPS})}"
        )
    wh.init()
    rows, wrong = [], []
    for step in wanted:
        sides = prepare(step)
        if differs(sides):
            wrong.append(step.name)
        ratio = measure(sides, options.rounds, options.seconds)
        rows.append((ratio, step, sides["jax"].least, sides["whale"].least))
        print(f"{step.name}: {ratio:.2f}", file=sys.stderr, flush=True)
    return report(rows, wrong, options.worst)


def report(
    rows: list[tuple[float, SmallStep, float, float]],
    wrong: list[str],
    count: int,
) -> str | None:
    """Prints the table; says what misses the goals."""
    print("| step | JAX, ms | Whale, ms | ratio |\n|---|---|---|---|")
    for ratio, step, theirs, ours in sorted(rows, key=lambda row: row[0])[
        :count
    ]:
        print(
            f"| {step.name} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} "
            f"| {ratio:.2f} |"
        )
    print("\n| kind | median ratio |\n|---|---|")
    by_kind: dict[str, list[float]] = {}
    for ratio, step, _, _ in rows:
        by_kind.setdefault(step.kind, []).append(ratio)
    for name, ratios in by_kind.items():
        print(f"| {name} | {statistics.median(ratios):.2f} |")
    ratios = [row[0] for row in rows]
    median, worst = statistics.median(ratios), min(ratios)
    print(f"\n{len(rows)} steps: median {median:.2f}, worst {worst:.2f}")
    if wrong:
        return f"results differ from JAX's: {', '.join(wrong)}"
    if median < MEDIAN_GOAL or worst < WORST_GOAL:
        return f"the goal is {MEDIAN_GOAL} in the median, {WORST_GOAL} for each"
    return None


if __name__ == "__main__":
    sys.exit(main())
