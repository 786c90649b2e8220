#!/usr/bin/env python
"""How far an emulated GPU is from the processor, for each operation on numbers.

    gpu_accuracy.py [--table]

Each operation runs on numbers of all magnitudes, and on those that are none:
by the target cpu, by cuda-emulated, and by NumPy in extended precision, where
it has the operation. Errors are in units in the last place (ulp), the largest
of all numbers; where a function crosses zero as a sum of large terms, an ulp is
one of 1. Exit status 1 if the
targets are more than 2 ulp apart and the GPU that far from the exact result,
too, or one has a NaN where the other has none. --table prints the rows as
docs/gpu.md has them.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

import gpu_cases  # noqa: E402
from cases import Tensor  # noqa: E402
from run import run_compiled  # noqa: E402

from whale import compiler  # noqa: E402

LIMIT = 2.0
COUNT = 4096
# What JAX has, and NumPy in extended precision, of one number or of two.
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "add": (lax.add, np.add),
    "atan2": (lax.atan2, np.arctan2),
    "acos": (lax.acos, np.arccos),
    "asin": (lax.asin, np.arcsin),
    "atan": (lax.atan, np.arctan),
    "cbrt": (lax.cbrt, np.cbrt),
    "cos": (lax.cos, np.cos),
    "cosh": (lax.cosh, np.cosh),
    "divide": (lax.div, np.divide),
    "erf": (lax.erf, None),
    "erf_inv": (lax.erf_inv, None),
    "exp": (lax.exp, np.exp),
    "expm1": (lax.expm1, np.expm1),
    "lgamma": (lax.lgamma, None),
    "log": (lax.log, np.log),
    "log1p": (lax.log1p, np.log1p),
    "logistic": (lax.logistic, lambda x: 1 / (1 + np.exp(-x))),
    "multiply": (lax.mul, np.multiply),
    "power": (lax.pow, np.power),
    "remainder": (lax.rem, np.fmod),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (lax.sin, np.sin),
    "sinh": (lax.sinh, np.sinh),
    "sqrt": (lax.sqrt, np.sqrt),
    "tan": (lax.tan, np.tan),
    "tanh": (lax.tanh, np.tanh),
}
# Both targets compute exp(x + log(1/2)) as XLA does: 24 ulp from the exact
# result where x is large, and then as far apart as that exponential is. Below
# zero lgamma has the logarithm of a sine that is small near each pole.
# Both tangents may be more than 2 from the exact one, on some processors on
# different sides of it.
LIMITS = {"lgamma": 16.0, "sinh": 4.0, "tan": 3.0}
# Sums of large terms that cancel where the result is zero.
CANCELLING = ("lgamma",)
BINARY = ("add", "atan2", "divide", "multiply", "power", "remainder")


def draw(seed: int) -> np.ndarray:
    """A quarter of the numbers has any magnitude; most are between -8 and 8."""
    random = np.random.default_rng(seed)
    wide = np.exp2(random.uniform(-100, 100, COUNT // 4))
    wide *= random.choice([-1, 1], wide.size)
    near = random.uniform(-8, 8, COUNT // 2)
    unit = random.uniform(-1, 1, COUNT // 4 - 8)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5]
    numbers = np.concatenate([wide, near, unit, special])
    return random.permutation(numbers).astype(np.float32)


def run(text: str, target: str, x: list[np.ndarray], count: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/operations.whale"
        compiler.compile(text, "1", path, target=target)
        types = [Tensor("f32", (COUNT,))] * count
        return run_compiled(path, x, types)[0]


def text_and_inputs() -> tuple[str, list[np.ndarray]]:
    """A program with a result for each operation, and its arguments."""

    def all_of(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        return [
            function(x, y) if name in BINARY else function(x)
            for name, (function, _) in OPERATIONS.items()
        ]

    inputs = [draw(1), draw(2)]
    return jax.jit(all_of).lower(*map(jnp.asarray, inputs)).as_text(), inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    text, inputs = text_and_inputs()
    processor, gpu = (
        run(text, target, inputs, len(OPERATIONS))
        for target in ("cpu", "cuda-emulated")
    )
    if args.table:
        print("| operation | GPU to CPU | GPU to exact | CPU to exact |")
        print("|---|---|---|---|")
    bad = 0
    for number, (name, (_, exact)) in enumerate(OPERATIONS.items()):
        ours, theirs = gpu[number], processor[number]
        errors = [gpu_cases.ulps(ours, theirs, name in CANCELLING)]
        if exact:
            wide = [v.astype(np.longdouble) for v in inputs]
            with np.errstate(all="ignore"):
                right = exact(*wide[: 2 if name in BINARY else 1])
                right = right.astype(np.float64)
            errors += [gpu_cases.ulps(v, right) for v in (ours, theirs)]
        limit = LIMITS.get(name, LIMIT)
        if not min(errors[:2]) <= limit:
            bad += 1
            print(f"FAILED   {name}: {errors} ulp, allowed are {limit}")
        if args.table:
            cells = [f"{value:.3g}" for value in errors] + ["-"] * 2
            print(f"| {name} | {' | '.join(cells[:3])} |")
    print(f"{len(OPERATIONS) - bad} of {len(OPERATIONS)} are close")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
