#!/usr/bin/env python
"""How far sums, products, windows and running sums are from the exact result.

    accuracy.py [--full] [--table]

Each operation runs on short and on long operands of each type, under Whale and
under jax.jit, and is compared with what XLA computes in f64 (for f64: NumPy in
extended precision). Errors are in units in the last place (ulp) of the exact
result, of the largest element of the result where an element is far smaller.
Exit status 1 if an error of Whale is above 2 ulp and above twice XLA's (four
times where oneDNN forms the sums). --full, or WHALE_TEST_FULL in the
environment: all types, and long operands; --table prints the rows as
docs/conformance.md has them.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import whale as wh  # noqa: E402

# Their sums are formed by oneDNN, in the order that it likes.
LIBRARY = ("matmul", "einsum", "convolution")
TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}
Values = dict[str, Any]


def scalar(value: float, like: jax.Array) -> np.ndarray:
    # Not an array of JAX: what it is must be known while JAX traces.
    return np.asarray(value, like.dtype)


def window(x: jax.Array, size: int, stride: int = 1) -> jax.Array:
    """Sums of windows along the last dimension."""
    return lax.reduce_window(
        x, scalar(0, x), lax.add, (1, size), (1, stride), "VALID"
    )


def largest(x: jax.Array, size: int, stride: int) -> jax.Array:
    return lax.reduce_window(
        x, scalar(-jnp.inf, x), lax.max, (1, size), (1, stride), "VALID"
    )


def pulled(function: Callable, x: jax.Array, weights: jax.Array) -> jax.Array:
    """The gradient of a function at x, for `weights` as far as they reach."""
    result, back = jax.vjp(function, x)
    count = np.prod(result.shape, dtype=int)
    return back(weights.reshape(-1)[:count].reshape(result.shape))[0]


def convolve(x: jax.Array, y: jax.Array) -> jax.Array:
    size = min(x.shape[1], 128)
    kernel = y[:1, None, :size]
    return lax.conv_general_dilated(x[:, None], kernel, (1,), "SAME")


def results(v: Values) -> Values:
    """All operations, on x and y of shape (4, n) between 0 and 1, z of the same
    shape near 1, the segment of each element of a line, and matrices a and b of
    64 lines."""
    x, y, z, segments = v["x"], v["y"], v["z"], v["segments"]
    a, b = v["a"], v["b"]
    return {
        "sum of all": jnp.sum(x),
        "sum of lines": jnp.sum(x, 1),
        "sum of columns": jnp.sum(x.T.copy(), 0),
        "sum, as one reduce": lax.reduce(x, scalar(0, x), lax.add, (1,)),
        "sum of squares, fused": jnp.sum(x * x, 1),
        "mean": jnp.mean(x, 1),
        "mean of all": jnp.mean(x),
        "prod": jnp.prod(z, 1),
        "prod of columns": jnp.prod(z.T, 0),
        "var": jnp.var(x, 1),
        "std": jnp.std(x, 1),
        "max": jnp.max(x, 1),
        "logsumexp": jax.nn.logsumexp(x, 1),
        "softmax": jax.nn.softmax(x, 1),
        "norm": jnp.linalg.norm(x, axis=1),
        "cumsum": jnp.cumsum(x, 1),
        "cumsum of columns": jnp.cumsum(x.T, 0),
        "cumsum, reversed": lax.cumsum(x, 1, reverse=True),
        "cumprod": jnp.cumprod(z, 1),
        "cumlogsumexp": lax.cumlogsumexp(x, 1),
        "cummax": lax.cummax(x, 1),
        "gradient of cumsum": pulled(lambda x: jnp.cumsum(x, 1), x, y),
        "gradient of cumlogsumexp": pulled(
            lambda x: lax.cumlogsumexp(x, 1), x[:, :100], y
        ),
        "reduce_window, sum": window(x, 32),
        "reduce_window, product": lax.reduce_window(
            z, scalar(1, z), lax.mul, (1, 32), (1, 1), "VALID"
        ),
        "average pool": window(x, 5, 3) / 5,
        "gradient of average pool": pulled(lambda x: window(x, 5, 3), x, y),
        "max pool": largest(x, 5, 2),
        "gradient of max pool": pulled(lambda x: largest(x, 5, 1), x, y),
        "dot": jnp.dot(x[0], y[0]),
        "matmul": a @ b.T,
        "einsum": jnp.einsum("an,bn->ba", a, b),
        "convolution": convolve(x, y),
        "segment_sum": jax.ops.segment_sum(x[0], segments, 8),
    }


def exact_f64(v: Values) -> Values:
    """What NumPy has of the operations in extended precision."""
    x, y, z, segments = v["x"], v["y"], v["z"], v["segments"]
    x, y, z = (value.astype(np.longdouble) for value in (x, y, z))
    windows = np.lib.stride_tricks.sliding_window_view
    a, b = (v[name].astype(np.longdouble) for name in "ab")
    exps = np.exp(x)

    def backwards(x: np.ndarray) -> np.ndarray:
        return np.cumsum(x[:, ::-1], 1)[:, ::-1]

    return {
        "sum of all": x.sum(),
        "sum of lines": x.sum(1),
        "sum of columns": x.sum(1),
        "sum, as one reduce": x.sum(1),
        "sum of squares, fused": (x * x).sum(1),
        "mean": x.mean(1),
        "mean of all": x.mean(),
        "prod": z.prod(1),
        "prod of columns": z.prod(1),
        "var": x.var(1),
        "std": x.std(1),
        "max": x.max(1),
        "logsumexp": np.log(exps.sum(1)),
        "softmax": exps / exps.sum(1, keepdims=True),
        "norm": np.sqrt((x * x).sum(1)),
        "cumsum": np.cumsum(x, 1),
        "cumsum of columns": np.cumsum(x, 1).T,
        "cumsum, reversed": backwards(x),
        "cumprod": np.cumprod(z, 1),
        "cumlogsumexp": np.log(np.cumsum(exps, 1)),
        "cummax": np.maximum.accumulate(x, 1),
        "gradient of cumsum": backwards(y),
        "reduce_window, sum": windows(x, 32, 1).sum(-1),
        "reduce_window, product": windows(z, 32, 1).prod(-1),
        "average pool": windows(x, 5, 1)[:, ::3].sum(-1) / 5,
        "max pool": windows(x, 5, 1)[:, ::2].max(-1),
        "dot": (x[0] * y[0]).sum(),
        "matmul": np.array([(b * line).sum(-1) for line in a]),
        "einsum": np.array([(a * line).sum(-1) for line in b]),
        "segment_sum": np.array(
            [x[0][segments == number].sum() for number in range(8)]
        ),
    }


def error(actual: Any, exact: Any, dtype: Any) -> float:
    """The largest difference, in ulp."""
    actual = np.asarray(actual).astype(np.longdouble)
    exact = np.asarray(exact).astype(np.longdouble)
    size = np.abs(exact)
    size = np.maximum(size, size.max() / 100)
    with np.errstate(divide="ignore"):
        ulp = np.exp2(np.floor(np.log2(size))) * float(jnp.finfo(dtype).eps)
    ulp = np.maximum(ulp, float(jnp.finfo(dtype).smallest_subnormal))
    return float(np.max(np.abs(actual - exact) / ulp))


def rows(full: bool) -> Iterator[tuple[str, str, int, float, float]]:
    """(operation, type, length, Whale's error, XLA's) of all operations."""
    wh.set_default_strategy(wh.replicate(1))
    lengths = (100, 1 << 18) if full else (2000,)
    types = dict(TYPES, f64=jnp.float64)
    if not full:
        types = {name: TYPES[name] for name in ("f32", "bf16")}
    for length in lengths:
        for name, dtype in types.items():
            rng = np.random.default_rng(length)
            spread = 0.3 / np.sqrt(length)
            # So that no sum overflows.
            scale = 1 / 16 if name == "f16" else 1
            inputs: Values = {
                "x": scale * rng.random((4, length)),
                "y": scale * rng.random((4, length)),
                "z": 1 + spread * rng.standard_normal((4, length)),
                "a": rng.random((64, min(length, 5000))),
                "b": rng.random((64, min(length, 5000))),
            }
            inputs = {k: jnp.asarray(v, dtype) for k, v in inputs.items()}
            inputs["segments"] = jnp.asarray(rng.integers(0, 8, length))
            if name == "f64":
                exact = exact_f64({k: np.asarray(v) for k, v in inputs.items()})
            else:
                exact = jax.jit(results)({
                    k: v if k == "segments" else v.astype(jnp.float64)
                    for k, v in inputs.items()
                })  # fmt: skip
            ours = wh.jit(results, cluster=1)(inputs)
            theirs = jax.jit(results)(inputs)
            for operation, value in exact.items():
                yield (
                    operation,
                    name,
                    length,
                    error(ours[operation], value, dtype),
                    error(theirs[operation], value, dtype),
                )


def is_good(operation: str, ours: float, theirs: float) -> bool:
    return ours <= max((4 if operation in LIBRARY else 2) * theirs, 2)


def table(found: list[tuple[str, str, int, float, float]]) -> str:
    """A line for each operation, Whale's error beside XLA's."""
    columns = list(dict.fromkeys((row[1], row[2]) for row in found))
    lines = ["| operation | " + " | ".join(
        f"{dtype}, {length}" for dtype, length in columns
    ) + " |", "|---" * (len(columns) + 1) + "|"]  # fmt: skip
    errors = {row[:3]: row[3:] for row in found}
    for operation in dict.fromkeys(row[0] for row in found):
        cells = [
            "{:.3g} / {:.3g}".format(*errors[operation, *column])
            if (operation, *column) in errors else ""
            for column in columns
        ]  # fmt: skip
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    found = list(rows(args.full or "WHALE_TEST_FULL" in os.environ))
    if args.table:
        print(table(found))
    bad = [row for row in found if not is_good(row[0], *row[3:])]
    for operation, dtype, length, ours, theirs in bad:
        print(
            f"FAILED   {operation}, {dtype}, {length}: {ours:.3g} ulp, "
            f"{theirs:.3g} under XLA"
        )
    print(f"{len(found) - len(bad)} of {len(found)} errors are small")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
