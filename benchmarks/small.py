"""Are small steps as fast as JAX's?

Each of the steps of small_steps.py runs on one rank beside `jax.jit` (see
beside.py).

``benchmarks/small.py [NAME...]`` prints the worst ratios, the median of each
kind and that of all; a NAME is a step, a kind, or a pattern of these. Fails
where results differ, or, of all steps, the median is below 1.2 or a ratio below
0.9.
"""

from __future__ import annotations

import sys

import beside
import jax
from small_steps import STEPS, SmallStep

import whale as wh

TOLERANCE = 2e-3  # Of a result's largest element; steps in f16 need it.


def prepare(step: SmallStep) -> dict[str, beside.Side]:
    """Both sides, after their first call."""
    function, state, data = step.make()
    return {
        "jax": beside.Side(jax.jit(function), state, data),
        "whale": beside.Side(wh.jit(function, cluster=1), state, data),
    }


def item(step: SmallStep) -> beside.Item:
    """What is timed of a step."""
    return beside.Item(
        step.name, step.kind, step.is_tuned, TOLERANCE, lambda: prepare(step)
    )


if __name__ == "__main__":
    sys.exit(beside.main("small", __doc__, [item(step) for step in STEPS]))
