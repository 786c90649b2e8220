"""Attention and its gradients on an emulated GPU, against the processor.

usage: gpu_attention.py

Heads that share keys, masks and biases of all kinds, rows of which all is
masked, scores near what masked ones are filled with, tiles that are not full.
What comes out differs by at most 1e-4 of each tensor's magnitude (bf16 2e-2),
and has the same bits in whatever order the threads of a block run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from orders import run_orders

Case = tuple[str, Callable[..., Any], list[np.ndarray]]


def attend(fill, causal, scale=0.3):
    """Attention of "bqhd", "bkhd", "bkhe" with an optional mask "bqk"."""

    def run(q, k, v, mask=None):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * scale
        rows, keys = scores.shape[-2:]
        keep = jnp.ones((rows, keys), bool)
        if causal is not None:
            at = jnp.arange(keys)[None], jnp.arange(rows)[:, None]
            keep = at[0] <= at[1] + causal
        if mask is not None:
            keep = keep & mask[:, None]
        scores = jnp.where(keep, scores, fill)
        weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1)
        return jnp.einsum("bhqk,bkhe->bqhe", weights.astype(v.dtype), v)

    return run


def library(**options):
    """jax.nn.dot_product_attention; queries may share keys."""

    def run(q, k, v, *bias):
        if bias:
            return jax.nn.dot_product_attention(q, k, v, bias[0], **options)
        return jax.nn.dot_product_attention(q, k, v, **options)

    return run


def make_cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)

    def normal(*shape, dtype=np.float32, size=1.0):
        return (rng.standard_normal(shape) * size).astype(dtype)

    def operands(b, q, k, h, d, e, dtype=np.float32, groups=1):
        return [
            normal(b, q, h * groups, d, dtype=dtype),
            normal(b, k, h, d, dtype=dtype),
            normal(b, k, h, e, dtype=dtype),
        ]

    yield "causal", attend(-jnp.inf, 0), operands(1, 80, 80, 2, 20, 20)
    yield "cross", attend(0.0, None), operands(2, 5, 97, 1, 3, 7)
    # Scores are near the fill: what is masked counts in some rows.
    near = operands(1, 70, 70, 1, 16, 16)
    near[0][0, :40] *= 0.01
    yield "near", attend(-30.0, 0, scale=20.0), near
    mask = rng.random((2, 66, 66)) < 0.5
    mask[0, 3] = False
    yield (
        "mask",
        attend(jnp.finfo(np.float32).min, None),
        [*operands(2, 66, 66, 1, 8, 8), mask],
    )
    yield (
        "bf16",
        library(is_causal=True),
        operands(1, 96, 96, 1, 32, 32, jnp.bfloat16, groups=2),
    )
    yield (
        "bias",
        library(),
        [*operands(1, 65, 65, 2, 40, 40), normal(1, 2, 65, 65)],
    )


def differentiated(function, arguments):
    """The result and the gradients for queries, keys and values."""

    def run(*arguments):
        free, fixed = arguments[:3], arguments[3:]
        out, back = jax.vjp(lambda *free: function(*free, *fixed), *free)
        weights = jnp.cos(jnp.arange(out.size)).reshape(out.shape)
        return out, back(weights.astype(out.dtype))

    return jax.jit(run).lower(*arguments)


def check(case: Case) -> list[str]:
    name, function, arguments = case
    lowered = differentiated(function, arguments)
    expected, runs = run_orders(lowered, arguments)
    tolerance = 2e-2 if arguments[0].dtype == jnp.bfloat16 else 1e-4
    problems = []
    for number, (wanted, *found) in enumerate(zip(expected, *runs)):
        if len({array.tobytes() for array in found}) > 1:
            problems.append(f"{name}: result {number} depends on the order")
        a, b = np.asarray(wanted, float), np.asarray(found[0], float)
        apart = np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)
        if not apart <= tolerance:
            problems.append(f"{name}: result {number} is {apart:.2g} apart")
    return problems


def main() -> None:
    problems = []
    for case in make_cases():
        if sys.argv[1:] and case[0] not in sys.argv[1:]:
            continue
        problems += check(case)
        print(case[0], flush=True)
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
