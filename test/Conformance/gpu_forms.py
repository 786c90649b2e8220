"""Operations whose kernels have another form on a GPU than on the processor.

usage: gpu_forms.py

They have the same bits there, in whatever order the threads of a block run:
floats are whole numbers, so that sums are exact in any order.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from orders import run_orders

# Lines of one element, several lines of a block, parts that fill a block and
# do not, and several rounds of merging.
SHAPES = [(3, 1), (5, 6), (3, 7, 4), (300, 2), (2, 1024), (1025,), (2, 5000)]
SEEDS = ("0", "77")


def sorts(arrays):
    """Sorts of several operands, with equal keys, along each dimension."""
    for x, y, z in arrays:
        for axis in range(x.ndim):
            yield lax.sort((x, y), dimension=axis, num_keys=1, is_stable=True)
            yield lax.sort((z, x, y), dimension=axis, num_keys=2)
        yield lax.top_k(x, min(x.shape[-1], 3))


def running(arrays):
    """Running sums, both ways, of whole numbers and of what they overflow."""
    for x, y, z in arrays:
        x = jnp.nan_to_num(x)
        for axis in range(x.ndim):
            yield lax.cumsum(x, axis), lax.cumsum(y, axis, reverse=True)
            yield lax.cummax(z, axis), lax.cummin(x, axis, reverse=True)


def windows(arrays):
    """Gradients of pools whose windows overlap, stand apart or leave gaps."""
    for x, *_ in arrays:
        if x.ndim != 2:
            continue
        x = jnp.nan_to_num(x)
        for sizes, strides, padding in (
            ((3, 3), (2, 2), "SAME"),
            ((3, 2), (1, 1), "VALID"),
            ((2, 2), (3, 3), "VALID"),
            ((1, 2), (1, 2), "VALID"),
        ):

            def pool(x, options=(sizes, strides, padding)):
                return lax.reduce_window(x, -jnp.inf, lax.max, *options)

            if min(jax.eval_shape(pool, x).shape) > 0:
                result, back = jax.vjp(pool, x)
                yield back(jnp.round(result) + 1)


def scatters(arrays):
    """Scatters with equal, absent, spread and unique places, of elements, rows
    and windows that overlap."""
    for x, y, z in arrays:
        n, line = x.shape[0], jnp.ravel(y)[: 400 if x.size > 99 else None]
        spread = line % (n + 2) - 1
        if x.size > 2000:
            continue
        for places in (spread, jnp.zeros_like(line), line % 2):
            rows = jnp.broadcast_to(x[:1], (places.size, *x.shape[1:]))
            rows = jnp.nan_to_num(rows) + places.reshape(
                -1, *[1] * (x.ndim - 1)
            )
            for form in ("add", "max", "set"):
                yield getattr(jnp.nan_to_num(x).at[places], form)(
                    rows, mode="drop"
                )
            yield y.at[places].multiply(y[:1] | 1)
            yield z.at[..., places % z.shape[-1]].min(z.max())
        yield x.at[jnp.arange(n)[::-1]].set(x, unique_indices=True)
        yield lax.scatter_add(
            jnp.zeros(40, jnp.int32),
            spread[:, None],
            jnp.stack([line, line + 1, line + 2], 1),
            lax.ScatterDimensionNumbers((1,), (), (0,)),
        )


def program(arrays):
    forms = (sorts, running, windows, scatters)
    return [list(form(arrays)) for form in forms]


def make_arguments(rng: np.random.Generator):
    for shape in SHAPES:
        x = rng.integers(-9, 9, shape).astype(np.float32)
        x.flat[::5] = np.nan
        x.flat[1::5] = -0.0
        yield (
            x,
            rng.integers(0, 1 << 30, shape, np.int32),
            rng.integers(0, 3, shape).astype(jnp.bfloat16),
        )


def main() -> None:
    arguments = list(make_arguments(np.random.default_rng(0)))
    lowered = jax.jit(program).lower(arguments)
    expected, runs = run_orders(lowered, arguments, SEEDS)
    wrong = 0
    for seed, results in zip(SEEDS, runs):
        for number, (a, b) in enumerate(zip(expected, results)):
            if a.tobytes() != b.tobytes():
                print(f"seed {seed}: result {number} differs")
                wrong += 1
    print(f"{len(expected)} results, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
