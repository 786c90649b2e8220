"""Are convolutions as fast as JAX's?

Each shape of convolution_shapes.py runs forward and as both of its gradients,
each as a step of its own on one rank beside `jax.jit` (see beside.py), and so
do shapes that are drawn from a seed.

``benchmarks/convolutions.py [NAME...]`` prints the worst ratios, and the median
of each part and of all; a NAME is a shape, a part, or a pattern of these or of
SHAPE/PART. Fails where results differ, or, of all, the median is below 1.5 or
a ratio below 0.8.
"""

from __future__ import annotations

import sys

import beside
import jax
from convolution_shapes import PARTS, SHAPES, Shape, draw

import whale as wh

DRAWN = 20
# Of a result's largest element: sums of bf16 are rounded to it once, by JAX in
# some gradients more often.
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}


def prepare(shape: Shape, part: str) -> dict[str, beside.Side]:
    """Both sides, after their first call, each with arrays of its own: others
    would be copied in each call."""
    function, state, data = shape.make(part)
    ours = wh.jit(lambda *data: data, cluster=1)(*data)
    return {
        "jax": beside.Side(jax.jit(function), state, data),
        "whale": beside.Side(wh.jit(function, cluster=1), state, ours),
    }


def item(shape: Shape, part: str, is_tuned: bool) -> beside.Item:
    """What is timed of a shape."""
    return beside.Item(
        f"{shape.name}/{part}",
        part,
        is_tuned,
        TOLERANCE[shape.dtype],
        lambda: prepare(shape, part),
    )


if __name__ == "__main__":
    sys.exit(
        beside.main(
            "convolutions",
            __doc__,
            [item(shape, part, True) for shape in SHAPES for part in PARTS],
            lambda seed: [
                item(shape, part, False)
                for shape in draw(seed, DRAWN)
                for part in PARTS
            ],
        )
    )
