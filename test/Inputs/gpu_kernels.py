"""Writes a program with many kernels of all kinds, as StableHLO.

usage: gpu_kernels.py FILE
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

SHAPES = [(3, 5), (40, 33), (5, 300), (2, 2500), (300, 6), (700, 40)]
DTYPES = ["float32", "bfloat16", "int32"]


def rows(x):
    """Reductions and what is made of them, along both dimensions."""
    y = x.astype(jnp.float32)
    yield x.sum(axis=1)
    yield x.max(axis=1)
    yield x.sum(axis=0)
    yield jnp.argmax(x, axis=1)
    yield jax.nn.softmax(y, axis=1)
    yield (y - y.mean(axis=1, keepdims=True)) / (
        y.std(axis=1, keepdims=True) + 1
    )
    yield y.min(axis=0)
    yield y.sum()
    yield jnp.cumsum(y, axis=1)
    yield x.T + 1
    yield jnp.concatenate([x, x * 2, x[:, :2]], axis=1)
    yield jnp.sort(x, axis=1)[:, :2]


def indices(x, i):
    yield x[i]
    yield jnp.zeros((8, x.shape[1]), x.dtype).at[i].add(x[i])
    yield jax.lax.dynamic_update_slice(x, x[:2] * 3, (i[0], i[1]))
    yield jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (2, 2), (1, 2), "SAME"
    )


def spread(x, places):
    """Scatters whose updates are sorted, pools whose windows overlap, and runs
    along both dimensions."""
    for column in x[:, 0], x[0]:
        if column.size < 30:
            continue
        updates = column[places % column.size]
        yield jnp.zeros(column.size).at[places].add(updates)
        yield jnp.zeros(column.size).at[places].multiply(updates)
    yield jnp.cumsum(x, axis=0)
    yield jax.lax.cummax(x, axis=1, reverse=True)

    def pool(x):
        return jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, (3, 3), (2, 2), "SAME"
        )

    result, back = jax.vjp(pool, x)
    yield back(result)


def attention(q, k, v):
    """Attention that is causal, and its gradients."""
    rows, keys = q.shape[0], k.shape[0]

    def attend(q, k, v):
        scores = jnp.where(jnp.tri(rows, keys, dtype=bool), q @ k.T, -jnp.inf)
        return jax.nn.softmax(scores, axis=-1) @ v

    result, back = jax.vjp(attend, q, k, v)
    return result, back(result)


def program(arrays, places, many):
    results = [list(rows(x)) for x in arrays]
    results += [
        list(spread(x, many))
        for x in arrays
        if x.dtype == jnp.float32 and x.shape[1] < 400
    ]
    for dtype in (jnp.float32, jnp.bfloat16):
        # Whole tiles. Values that differ: gradients of scores are differences.
        q, k, v = (
            arrays[-1][begin : begin + 128].astype(dtype)
            for begin in (0, 128, 256)
        )
        results.append(attention(q * 8, k * 8, v))
    results += [
        list(indices(x, places)) for x in arrays if x.dtype == jnp.float32
    ]
    return results


def lower() -> str:
    """The program's text."""
    arrays = [
        jax.ShapeDtypeStruct(shape, dtype)
        for shape in SHAPES
        for dtype in DTYPES
    ]
    places = jax.ShapeDtypeStruct((4,), jnp.int32)
    many = jax.ShapeDtypeStruct((200,), jnp.int32)
    return jax.jit(program).lower(arrays, places, many).as_text()


def main() -> None:
    with open(sys.argv[1], "w") as file:
        file.write(lower())


if __name__ == "__main__":
    main()
