#!/usr/bin/env python
"""How far sums, products, windows and running sums are from the exact result.

    accuracy.py [--full] [--table]

Each operation runs on operands of each type under Whale and, if it is not
within 2 units in the last place (ulp), under jax.jit; both are compared with
what NumPy computes in extended precision. Errors are in ulp of the exact
result, of the largest element of the result where an element is far smaller.
Exit status 1 if an error of Whale is above 2 ulp and above twice XLA's.
--full, or WHALE_TEST_FULL in the environment: more types, and longer operands,
all under jax.jit, too; --table prints the rows as docs/conformance.md has them.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import whale as wh  # noqa: E402

TYPES = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "f64": jnp.float64,
    "c64": jnp.complex64,
    "c128": jnp.complex128,
    "f8_e4m3": ml_dtypes.float8_e4m3fn,
    "f8_e5m2": ml_dtypes.float8_e5m2,
}
# What the types can hold: eight bits hold no long sums.
LENGTHS = {
    "quick": {
        2000: ("bf16", "f16", "c64"),
        20000: ("f32", "f64"),
    },
    "full": {
        100: tuple(TYPES),
        1 << 18: ("f32", "bf16", "f16", "f64", "c64", "c128"),
    },
}
Values = dict[str, Any]


class Row(NamedTuple):
    operation: str
    dtype: str
    length: int
    ours: float
    theirs: float | None  # None where nobody asked XLA.


def scalar(value: float, like: jax.Array) -> np.ndarray:
    # Not an array of JAX: what it is must be known while JAX traces.
    return np.asarray(value, like.dtype)


def window(x: jax.Array, size: int, stride: int = 1) -> jax.Array:
    """Sums of windows along the last dimension."""
    return lax.reduce_window(
        x, scalar(0, x), lax.add, (1, size), (1, stride), "VALID"
    )


def products(x: jax.Array, size: int, stride: int = 1) -> jax.Array:
    return lax.reduce_window(
        x, scalar(1, x), lax.mul, (1, size), (1, stride), "VALID"
    )


def largest(x: jax.Array, size: int, stride: int) -> jax.Array:
    return lax.reduce_window(
        x, scalar(-np.inf, x), lax.max, (1, size), (1, stride), "VALID"
    )


def pulled(function: Callable, x: jax.Array, weights: jax.Array) -> jax.Array:
    """The gradient of a function at x, for `weights` as far as they reach."""
    result, back = jax.vjp(function, x)
    return back(fit(weights, result.shape))[0]


def fit(weights: Any, shape: tuple[int, ...]) -> Any:
    return weights.reshape(-1)[: math.prod(shape)].reshape(shape)


def convolve(x: jax.Array, y: jax.Array) -> jax.Array:
    size = min(x.shape[1], 128)
    kernel = y[:1, None, :size]
    return lax.conv_general_dilated(x[:, None], kernel, (1,), "SAME")


def long_window(length: int) -> tuple[int, int]:
    """The size and the stride of long windows."""
    return min(length // 2, 5000), max(length // 200, 1)


def results(v: Values) -> Values:
    """All operations, on x and y of shape (4, n) between 0 and 1, z of the same
    shape near 1, the segment of each element of a line, and matrices a and b of
    64 lines; if the type has an order and infinity, w is between 0 and 12."""
    x, y, z, segments = v["x"], v["y"], v["z"], v["segments"]
    a, b = v["a"], v["b"]
    few = x[:2, :20000]
    long = long_window(x.shape[1])
    found = {
        "sum of all": jnp.sum(x),
        "sum of lines": jnp.sum(x, 1),
        "sum of columns": jnp.sum(x.T.copy(), 0),
        "sum, as one reduce": lax.reduce(x, scalar(0, x), lax.add, (1,)),
        "sum of squares, fused": jnp.sum(x * x, 1),
        "mean": jnp.mean(x, 1),
        "mean of all": jnp.mean(x),
        "prod": jnp.prod(z, 1),
        "prod of columns": jnp.prod(z.T, 0),
        "cumsum": jnp.cumsum(x, 1),
        "cumsum of columns": jnp.cumsum(x.T, 0),
        "cumsum, reversed": lax.cumsum(x, 1, reverse=True),
        "cumprod": jnp.cumprod(z, 1),
        "gradient of cumsum": pulled(lambda x: jnp.cumsum(x, 1), x, y),
        "reduce_window, sum": window(x, 32),
        "reduce_window, long sum": window(x, *long),
        "reduce_window, dense sum": window(few, min(500, x.shape[1] // 2)),
        "reduce_window, product": products(z, 32),
        "reduce_window, long product": products(z, *long),
        "average pool": window(x, 5, 3) / 5,
        "gradient of average pool": pulled(lambda x: window(x, 5, 3), x, y),
        "dot": jnp.dot(x[0], y[0]),
        "matmul": a @ b.T,
        "matmul of few lines": a[:4] @ b.T,
        "matmul with a vector": a @ b[0],
        "einsum": jnp.einsum("an,bn->ba", a, b),
        "convolution": convolve(x, y),
        "segment_sum": jax.ops.segment_sum(x[0], segments, 8),
    }
    if "w" not in v:
        return found
    w = v["w"]
    return found | {
        "var": jnp.var(x, 1),
        "std": jnp.std(x, 1),
        "norm": jnp.linalg.norm(x, axis=1),
        "max": jnp.max(x, 1),
        "logsumexp": jax.nn.logsumexp(w, 1),
        "reduce by logaddexp": lax.reduce(
            w, scalar(-np.inf, w), jnp.logaddexp, (1,)
        ),
        "softmax": jax.nn.softmax(w, 1),
        "cumlogsumexp": lax.cumlogsumexp(w, 1),
        "cummax": lax.cummax(x, 1),
        "gradient of cumlogsumexp": pulled(
            lambda x: lax.cumlogsumexp(x, 1), x[:, :100], y
        ),
        "max pool": largest(x, 5, 2),
        "gradient of max pool": pulled(lambda x: largest(x, 5, 1), x, y),
    }


def exact_gradients(x: np.ndarray, y: np.ndarray) -> Values:
    """Of windows of 5 at each, and at each third, element."""
    windows = np.lib.stride_tricks.sliding_window_view(x, 5, 1)
    averaged, chosen = np.zeros_like(x), np.zeros_like(x)
    third = fit(y, windows[:, ::3].shape[:2])
    for tap in range(5):
        averaged[:, tap : tap + 3 * third.shape[1] : 3] += third
    each = fit(y, windows.shape[:2])
    if not np.iscomplexobj(x):
        places = windows.argmax(-1) + np.arange(windows.shape[1])
        for line, (place, weight) in enumerate(zip(places, each)):
            np.add.at(chosen[line], place, weight)
    return {
        "gradient of average pool": averaged,
        "gradient of max pool": chosen,
    }


def exact_convolution(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    size = min(x.shape[1], 128)
    low = (size - 1) // 2
    padded = np.pad(x, ((0, 0), (low, size - 1 - low)))
    return sum(
        y[0, tap] * padded[:, tap : tap + x.shape[1]] for tap in range(size)
    )[:, None]


def exact(v: Values) -> Values:
    """The operations in extended precision."""
    x, y, z, segments = v["x"], v["y"], v["z"], v["segments"]
    a, b = v["a"], v["b"]
    slide = np.lib.stride_tricks.sliding_window_view
    size, stride = long_window(x.shape[1])
    few = slide(x[:2, :20000], min(500, x.shape[1] // 2), 1)
    product = np.array([(b * line).sum(-1) for line in a])

    def backwards(x: np.ndarray) -> np.ndarray:
        return np.cumsum(x[:, ::-1], 1)[:, ::-1]

    found = {
        "sum of all": x.sum(),
        "sum of lines": x.sum(1),
        "sum of columns": x.sum(1),
        "sum, as one reduce": x.sum(1),
        "sum of squares, fused": (x * x).sum(1),
        "mean": x.mean(1),
        "mean of all": x.mean(),
        "prod": z.prod(1),
        "prod of columns": z.prod(1),
        "cumsum": np.cumsum(x, 1),
        "cumsum of columns": np.cumsum(x, 1).T,
        "cumsum, reversed": backwards(x),
        "cumprod": np.cumprod(z, 1),
        "gradient of cumsum": backwards(y),
        "reduce_window, sum": slide(x, 32, 1).sum(-1),
        "reduce_window, long sum": slide(x, size, 1)[:, ::stride].sum(-1),
        "reduce_window, dense sum": few.sum(-1),
        "reduce_window, product": slide(z, 32, 1).prod(-1),
        "reduce_window, long product": slide(z, size, 1)[:, ::stride].prod(-1),
        "average pool": slide(x, 5, 1)[:, ::3].sum(-1) / 5,
        "dot": (x[0] * y[0]).sum(),
        "matmul": product,
        "matmul of few lines": product[:4],
        "matmul with a vector": product[:, 0],
        "einsum": product.T,
        "convolution": exact_convolution(x, y),
        "segment_sum": np.array(
            [x[0][segments == number].sum() for number in range(8)]
        ),
    }
    found |= exact_gradients(x, y)
    if "w" not in v:
        del found["gradient of max pool"]
        return found
    exps, short = np.exp(v["w"]), np.exp(x[:, :100])
    weights = fit(y, short.shape)
    return found | {
        "var": x.var(1),
        "std": x.std(1),
        "norm": np.sqrt((x * x).sum(1)),
        "max": x.max(1),
        "logsumexp": np.log(exps.sum(1)),
        "reduce by logaddexp": np.log(exps.sum(1)),
        "softmax": exps / exps.sum(1, keepdims=True),
        "cumlogsumexp": np.log(np.cumsum(exps, 1)),
        "cummax": np.maximum.accumulate(x, 1),
        "gradient of cumlogsumexp": short
        * backwards(weights / np.cumsum(short, 1)),
        "max pool": slide(x, 5, 1)[:, ::2].max(-1),
    }


def widen(values: Any) -> np.ndarray:
    values = np.asarray(values)
    wide = np.clongdouble if np.iscomplexobj(values) else np.longdouble
    return values.astype(wide)


def error(actual: Any, exact: np.ndarray, dtype: Any) -> float:
    """The largest difference, in ulp."""
    size = np.abs(exact)
    size = np.maximum(size, size.max() / 100)
    with np.errstate(divide="ignore"):
        ulp = np.exp2(np.floor(np.log2(size))) * float(jnp.finfo(dtype).eps)
    ulp = np.maximum(ulp, float(jnp.finfo(dtype).smallest_subnormal))
    return float(np.max(np.abs(widen(actual) - exact) / ulp))


def draw(name: str, length: int) -> Values:
    """Operands of a type."""
    dtype = TYPES[name]
    rng = np.random.default_rng(length)
    shape, lines = (4, length), (64, min(length, 5000))
    # So that no sum overflows, and that not all of z are 1.
    scale = 1 / 16 if name == "f16" else 1
    spread = max(0.3 / np.sqrt(length), float(jnp.finfo(dtype).eps))
    inputs: Values = {
        "x": scale * rng.random(shape),
        "y": scale * rng.random(shape),
        "z": 1 + spread * rng.standard_normal(shape),
        "a": rng.random(lines),
        "b": rng.random(lines),
        "w": 12 * rng.random(shape),
    }
    if jnp.issubdtype(dtype, jnp.complexfloating):
        del inputs["w"]
        for key, value in inputs.items():
            imaginary = rng.permuted(value - (key == "z"), axis=1)
            inputs[key] = value + 1j * imaginary
    elif not np.isinf(dtype(np.inf)):
        del inputs["w"]
    inputs = {key: jnp.asarray(v, dtype) for key, v in inputs.items()}
    return inputs | {"segments": jnp.asarray(rng.integers(0, 8, length))}


def measure(name: str, length: int, full: bool) -> Iterator[Row]:
    dtype, inputs = TYPES[name], draw(name, length)
    wide = {k: v if k == "segments" else widen(v) for k, v in inputs.items()}
    wanted = exact(wide)

    def errors(values: Values) -> dict[str, float]:
        return {k: error(v, wanted[k], dtype) for k, v in values.items()}

    ours = errors(wh.jit(results, cluster=1)(inputs))
    asked = {k for k, value in ours.items() if full or not value <= 2}

    def some(inputs: Values) -> Values:
        return {k: v for k, v in results(inputs).items() if k in asked}

    theirs = errors(jax.jit(some)(inputs)) if asked else {}
    for operation, value in ours.items():
        yield Row(operation, name, length, value, theirs.get(operation))


def is_good(row: Row) -> bool:
    return row.ours <= max(2, 2 * (row.theirs or 0))


def table(found: list[Row]) -> str:
    """A line for each operation, Whale's error beside XLA's."""
    columns = list(dict.fromkeys((row.dtype, row.length) for row in found))
    lines = ["| operation | " + " | ".join(
        f"{dtype}, {length}" for dtype, length in columns
    ) + " |", "|---" * (len(columns) + 1) + "|"]  # fmt: skip
    errors = {row[:3]: row[3:] for row in found}
    for operation in sorted({row.operation for row in found}):
        cells = [
            " / ".join(
                "-" if value is None else f"{value:.3g}"
                for value in errors.get((operation, *column), ())
            )
            for column in columns
        ]
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    full = args.full or "WHALE_TEST_FULL" in os.environ
    wh.set_default_strategy(wh.replicate(1))
    found = [
        row
        for length, names in LENGTHS["full" if full else "quick"].items()
        for name in names
        for row in measure(name, length, full)
    ]
    if args.table:
        print(table(found))
    bad = [row for row in found if not is_good(row)]
    for operation, dtype, length, ours, theirs in bad:
        print(
            f"FAILED   {operation}, {dtype}, {length}: {ours:.3g} ulp, "
            f"{theirs:.3g} under XLA"
        )
    print(f"{len(found) - len(bad)} of {len(found)} errors are small")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
