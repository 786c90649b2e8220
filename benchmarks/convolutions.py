"""Are convolutions as fast as JAX's?

Each shape of convolution_shapes.py runs forward and as both of its gradients,
each as a step of its own on one rank beside `jax.jit` in the same process, in
turn, as small.py has it. A ratio is JAX's least time over Whale's.

``benchmarks/convolutions.py [NAME...]`` prints the ratios of each shape, and
the median and the worst; a NAME is a shape or a part. Fails where results
differ, or, of all shapes, the median is below 1.5 or a ratio below 0.8.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from convolution_shapes import PARTS, SHAPES, Shape
from small import Side, measure

import whale as wh

MEDIAN_GOAL, WORST_GOAL = 1.5, 0.8
# Of a result's largest element: sums of bf16 are rounded to it once, by JAX in
# some gradients more often.
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}


def prepare(shape: Shape, part: str) -> dict[str, Side]:
    """Both sides, after their first call, each with arrays of its own: others
    would be copied in each call."""
    function, state, data = shape.make(part)
    ours = wh.jit(lambda *data: data, cluster=1)(*data)
    return {
        "jax": Side(jax.jit(function), state, data),
        "whale": Side(wh.jit(function, cluster=1), state, ours),
    }


def differs(shape: Shape, sides: dict[str, Side]) -> bool:
    """Whether the first results differ by more than rounding."""
    jax_result, whale_result = (
        np.asarray(sides[name].first[1], np.float32)
        for name in ("jax", "whale")
    )
    most = np.max(np.abs(jax_result))
    error = np.max(np.abs(jax_result - whale_result))
    return not error <= TOLERANCE[shape.dtype] * most


def main() -> str | None:
    """Prints the table; says what misses the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for the calls of a step"
    )
    options = parser.parse_args()
    names = set(options.names)
    shapes = [s for s in SHAPES if s.name in names or not names - set(PARTS)]
    parts = [p for p in PARTS if p in names or not names & set(PARTS)]
    if not shapes:
        parser.error(f"no such shape; there are {[s.name for s in SHAPES]}")
    wh.init()
    wrong = []
    ratios: dict[str, float] = {}
    print("| convolution | part | JAX, ms | Whale, ms | ratio |")
    print("|---|---|---|---|---|")
    for shape in shapes:
        for part in parts:
            sides = prepare(shape, part)
            name = f"{shape.name}/{part}"
            if differs(shape, sides):
                wrong.append(name)
            ratios[name] = measure(sides, options.rounds, options.seconds)
            times = " | ".join(
                f"{sides[side].least * 1e3:.3f}" for side in ("jax", "whale")
            )
            print(
                f"| {shape.name} | {part} | {times} | {ratios[name]:.2f} |",
                flush=True,
            )
    median = statistics.median(ratios.values())
    worst = min(ratios, key=lambda name: ratios[name])
    print(
        f"\n{len(ratios)} convolutions: median {median:.2f}, "
        f"worst {ratios[worst]:.2f} ({worst})"
    )
    if wrong:
        return f"results differ from JAX's: {', '.join(wrong)}"
    if median < MEDIAN_GOAL or ratios[worst] < WORST_GOAL:
        return f"the goal is {MEDIAN_GOAL} in the median, {WORST_GOAL} for each"
    return None


if __name__ == "__main__":
    sys.exit(main())
