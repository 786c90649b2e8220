#!/usr/bin/env python
"""top_k, and slices of sorts, give the same bits as under `jax.jit`.

Among ties, zeros of both signs and NaNs, in rows that are random and in those
where each element is among the largest so far; in one program.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import whale as wh


def draw() -> list[Any]:
    """Rows with ties, ascending rows, bytes of either sign, half precision."""
    rng = np.random.default_rng(0)
    ties = rng.normal(size=(7, 500)).round(1).astype(np.float32)
    for value, every in ((np.nan, 37), (-np.nan, 41), (-0.0, 29), (0.0, 31)):
        ties[:, ::every] = value
    return [
        ties,
        np.sort(rng.normal(size=(3, 200)).astype(np.float32)),
        rng.integers(-5, 5, (4, 90)).astype(np.int8),
        rng.integers(0, 250, (2, 3, 130)).astype(np.uint8),
        jnp.asarray(ties, jnp.bfloat16),
    ]


def select(ties: Any, rising: Any, small: Any, bytes_: Any, half: Any) -> Any:
    """Selections of few and many, along the last dimension and another."""
    return (
        jax.lax.top_k(ties, 1),
        jax.lax.top_k(ties, 20),
        jax.lax.top_k(rising, 50),
        jax.lax.top_k(rising, 51),
        jax.lax.top_k(small, 7),
        jax.lax.top_k(bytes_, 3)[1],
        jax.lax.top_k(half, 5),
        jax.lax.approx_max_k(rising, 4),
        (jnp.sort(ties)[:, :3], jnp.argsort(ties)[:, :5]),
        jnp.argsort(ties.T, axis=0)[:9],
        jax.grad(lambda x: (jax.lax.top_k(x, 4)[0] ** 2).sum())(rising),
    )


def main() -> None:
    """Compares the bits of all results."""
    arguments = draw()
    expected = jax.tree.leaves(jax.jit(select)(*arguments))
    wh.init()
    results = jax.tree.leaves(wh.jit(select, cluster=1)(*arguments))
    for number, (a, b) in enumerate(zip(expected, results, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype or not np.array_equal(
            np.atleast_1d(a).view(np.uint8), np.atleast_1d(b).view(np.uint8)
        ):
            raise AssertionError(f"result {number} differs")


if __name__ == "__main__":
    main()
