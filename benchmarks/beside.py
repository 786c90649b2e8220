"""Times the items of a suite beside `jax.jit`, in this process.

Both sides run in turn, a few calls each, the state of a call given to the next
one. The time of a side is the least of all its calls: what else the machine
does only makes calls longer. A suite's script lists its items and calls `main`,
which compares results, prints the tables of suites.py, and keeps the rows in a
file where scripts/bench asks for them. Cost: for each item two compilations and
about `--seconds` of calls.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import suites

import whale as wh

# Threads of libraries wait for more work by turning in a circle before they
# sleep, those of OpenBLAS, whose functions `jax.numpy.linalg` calls, for some
# 30 ms. Meanwhile they take cores from the other side, or keep them awake for
# it; each side is timed without either.
QUIET_SECONDS = 0.05


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
        """Keeps the least time of some calls, once all threads sleep."""
        time.sleep(QUIET_SECONDS)
        for _ in range(calls):
            begin = time.perf_counter()
            self.call()
            self.least = min(self.least, time.perf_counter() - begin)


@dataclasses.dataclass(frozen=True)
class Item:
    """What is timed: `prepare` gives both sides, after their first call, whose
    results may differ by `tolerance` of the largest element."""

    name: str
    kind: str
    is_tuned: bool
    tolerance: float
    prepare: Callable[[], dict[str, Side]]


def differs(sides: dict[str, Side], tolerance: float) -> bool:
    """Whether results of the first calls differ by more than rounding."""

    def wide(x: np.ndarray) -> np.ndarray:
        return x.astype(complex if np.iscomplexobj(x) else float)

    for a, b in zip(
        jax.tree.leaves(sides["jax"].first),
        jax.tree.leaves(sides["whale"].first),
        strict=True,
    ):
        a, b = wide(a), wide(b)
        most = np.max(np.abs(a), initial=1e-3)
        if not np.max(np.abs(a - b), initial=0) <= tolerance * most:
            return True
    return False


def measure(item: Item, rounds: int, seconds: float) -> suites.Row:
    """The least times of rounds that last about `seconds`."""
    sides = item.prepare()
    for _ in range(rounds):
        for side in sides.values():
            # Of what takes longer than all calls shall, one is enough.
            fewest = 1 if side.least > seconds else 3
            calls = int(seconds / (2 * rounds) / side.least)
            side.measure(min(max(calls, fewest), 200))
    return suites.Row(
        item.name,
        item.kind,
        item.is_tuned,
        sides["jax"].least,
        sides["whale"].least,
        differs(sides, item.tolerance),
    )


def choose(items: Sequence[Item], patterns: Sequence[str]) -> list[Item]:
    """The items that one of the patterns fits, by name, by what stands before
    a slash in it, or by kind; without patterns all."""

    def fits(item: Item) -> bool:
        names = item.name, item.name.partition("/")[0], item.kind
        return any(
            fnmatch.fnmatchcase(name, pattern)
            for name in names
            for pattern in patterns
        )

    return [item for item in items if not patterns or fits(item)]


def main(
    name: str,
    text: str | None,
    items: Sequence[Item],
    draw: Callable[[int], list[Item]] | None = None,
) -> str | None:
    """The command line of a suite's script.

    Args:
        name: of the suite.
        text: what `--help` says of it.
        items: what is timed.
        draw: further items, drawn at random from a seed; only measured.

    Returns:
        what misses the goals.
    """
    suite = next(suite for suite in suites.SUITES if suite.name == name)
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="for the calls of an item"
    )
    parser.add_argument(
        "--worst", type=int, default=20, help="rows that are shown"
    )
    parser.add_argument(
        "--tuned", action="store_true", help="without those for measuring alone"
    )
    if draw:
        parser.add_argument("--seed", type=int, default=2)
    parser.add_argument(
        "--output", type=pathlib.Path, help="where rows are kept, as JSON"
    )
    options = parser.parse_args()
    every = [*items, *(draw(options.seed) if draw else ())]
    wanted = choose(every, options.names)
    wanted = [each for each in wanted if each.is_tuned or not options.tuned]
    if not wanted:
        kinds = sorted({item.kind for item in every})
        parser.error(f"no such item; kinds are {', '.join(kinds)}")
    wh.init()
    rows = []
    for item in wanted:
        row = measure(item, options.rounds, options.seconds)
        rows.append(row)
        print(f"{row.name}: {row.ratio:.2f}", file=sys.stderr, flush=True)
    if options.output:
        options.output.write_text(json.dumps(suites.write(rows)))
    print(suites.slowest(rows, options.worst))
    print("\n" + suites.summary(rows, by_kind=True))
    return suites.missed(suite, rows)
