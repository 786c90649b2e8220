"""Operations whose kernels have another form on a GPU than on the processor.

usage: gpu_forms.py

They have the same bits there, in whatever order the threads of a block run:
floats are whole numbers, so that sums are exact in any order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from orders import SEEDS, run_orders, run_text

# Lines of one element, several lines of a block, parts that fill a block and
# do not, and several rounds of merging.
SHAPES = [(3, 1), (5, 6), (3, 7, 4), (300, 2), (2, 1024), (1025,), (2, 5000)]


def first_nan(a, b):
    """Associative, but its operands cannot change places."""
    return tuple(jnp.where(jnp.isnan(a[0]), p, q) for p, q in zip(a, b))


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


def large_windows(arrays):
    """Windows of more terms than a thread reduces: sums, with an initial value
    that counts once, too, and by functions of several operands; with strides,
    dilations and padding; gradients of pools."""
    x, y, _ = arrays[-1]
    numbers = jnp.nan_to_num(x)
    for start in 0.0, 5.0:
        yield lax.reduce_window(
            numbers, start, lax.add, (1, 2500), (1, 1), "SAME"
        )
    yield lax.reduce_window(
        numbers.astype(jnp.bfloat16),
        jnp.bfloat16(0),
        lax.add,
        (1, 1200),
        (1, 7),
        "SAME",
    )
    dilations = (1, 2), (1, 3)
    yield lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1100), (1, 3), ((0, 0), (7, 400)), *dilations
    )
    padding = ((1, 1), (0, 1499))
    yield lax.reduce_window(
        (x, y), (jnp.float32(0), 7), first_nan, (2, 1500), (1, 1), padding
    )
    image = numbers[:, :2400].reshape(2, 40, 60)
    for sizes, strides, padding in (
        ((1, 40, 60), (1, 1, 1), "VALID"),
        ((1, 33, 40), (1, 5, 3), ((0, 0), (3, 30), (20, 1))),
    ):

        def pool(x, options=(sizes, strides, padding)):
            return lax.reduce_window(x, -jnp.inf, lax.max, *options)

        result, back = jax.vjp(pool, image)
        yield result, back(jnp.round(result) + 1)


def moved_windows(x, places):
    """The gradient of windows that the indices move along one dimension."""

    def window(x, place):
        sizes = (min(2, x.shape[0]), *x.shape[1:])
        return lax.dynamic_slice(x, (place, *[0] * (x.ndim - 1)), sizes)

    windows, back = jax.vjp(lambda x: jax.vmap(window, (None, 0))(x, places), x)
    return back(windows + 1)


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
        yield moved_windows(jnp.nan_to_num(x), spread)
        yield lax.scatter_add(
            jnp.zeros(40, jnp.int32),
            spread[:, None],
            jnp.stack([line, line + 1, line + 2], 1),
            lax.ScatterDimensionNumbers((1,), (), (0,)),
        )


def reductions(arrays):
    """Reductions by functions of several operands: of few and many terms, along
    neighbours and across, to few and many results, of places that are computed
    and that are read."""

    for x, y, z in arrays:
        for axis in range(x.ndim):
            yield jnp.argmax(x, axis), jnp.argmin(z, axis)
            yield lax.reduce((x, y), (jnp.float32(0), 7), first_nan, (axis,))
        yield jnp.argmin(y), jnp.nanargmax(x)
    a = jnp.tile(arrays[-1][0], (14, 1))
    yield jnp.argmax(a, 1), jnp.argmax(a), jnp.argmax(a.T, 0)
    # The few parts of each result are for one thread, which waits for no other.
    yield jnp.argmax(a.reshape(4, -1), 1)
    # As many sums as shared memory does not hold for a full block.
    b = jnp.nan_to_num(a[:, :1500]).T
    count = 16
    yield lax.reduce(
        tuple(b + i for i in range(count)),
        (jnp.float32(0),) * count,
        lambda p, q: tuple(map(jnp.add, p, q)),
        (0,),
    )


def joined(arrays):
    """Concatenations of few, some and many pieces, long and short ones."""
    for x, y, z in arrays[-2:]:
        yield jnp.concatenate([x, x[..., ::2], -x], -1)
        pieces = [y[..., i : 3 * i + 1] for i in range(40)]
        for count in (5, 32, 40):
            yield jnp.concatenate(pieces[:count], -1)
        yield jnp.concatenate([z] * 7, 0)


def wide(arrays):
    """Elements of which a thread takes as many as 16 bytes hold."""
    x = lax.optimization_barrier(jnp.arange(1_100_000, dtype=jnp.float32))
    y = lax.optimization_barrier((x * arrays[0][1][0, 0]).astype(jnp.bfloat16))
    yield y, y.astype(jnp.float32)


def columns(arrays):
    """Sums of columns, of which a thread has several neighbouring ones: blocks
    and chunks that are not full, several sums of what is also stored."""
    for rows, count in (6000, 200), (20000, 64):
        places = jnp.arange(rows * count, dtype=jnp.int32).reshape(rows, count)
        x = lax.optimization_barrier(
            ((places + arrays[0][1][0, 0]) % 7 - 3).astype(jnp.bfloat16)
        )
        y = lax.optimization_barrier((places % 5 - 1).astype(jnp.float32))
        masked = jnp.where(x > 0, y, 0)
        shift = y[0] + 1
        yield masked, masked.sum(0), (masked * (x - shift)).sum(0)
        yield x.sum(0, dtype=jnp.float32), (x * x).max(0)
    # A block that is not full, of sums that are stored over what they need.
    x = jnp.nan_to_num(arrays[-1][0]).reshape(-1, 25)
    yield (x - x.max(0)).sum(0)


def complexes(arrays):
    """Complex numbers, which no vector holds, where elements of other types are
    read several at a time: alone, in columns and in rows."""
    places = jnp.arange(563_200, dtype=jnp.int32) % 7 - arrays[0][1][0, 0] % 7
    x = lax.complex(places.astype(jnp.float32), jnp.float32(1))
    x = lax.optimization_barrier(x.reshape(-1, 160))
    yield x + x[0], x.sum(0)
    x = x[:100]
    yield x * abs(x.real).max(1, keepdims=True)


def transposed(arrays):
    """Transpositions in tiles that are full or not, of numbers of all widths,
    alone and beside what is read in order."""
    start = arrays[0][1][0, 0]
    for shape, order in (
        ((64, 96), (1, 0)),
        ((70, 45), (1, 0)),
        ((3, 33, 40), (0, 2, 1)),
        ((33, 2, 100), (2, 1, 0)),
    ):
        x = jnp.arange(np.prod(shape), dtype=jnp.int32).reshape(shape) + start
        x = lax.optimization_barrier(x)
        y = lax.optimization_barrier(x.reshape([shape[i] for i in order]))
        yield x.transpose(order), x.transpose(order) * 3 - y
        yield (
            (x % 3 == 0).transpose(order),
            lax.complex((x % 9).astype(jnp.float32), jnp.float32(1)).transpose(
                order
            ),
        )
        halves = lax.optimization_barrier(x.astype(jnp.bfloat16))
        yield halves.transpose(order), halves.transpose(order) + y


def linked(arrays):
    """Scatters by several operations, of which one element takes many."""
    for _, y, _ in arrays[-3:]:
        line = jnp.ravel(y)
        for places in (line % 7, jnp.zeros_like(line)):
            yield jnp.arange(6).at[places].add(line, mode="drop")


def program(arrays):
    forms = (sorts, running, windows, scatters, reductions, joined, wide)
    forms += (columns, complexes, large_windows, transposed)
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


class Linked:
    """The program `linked`, whose sums become 3 * sum + update."""

    def __init__(self, arguments):
        lowered = jax.jit(
            lambda arrays: list(linked(arrays)), keep_unused=True
        ).lower(arguments)
        self.out_info = lowered.out_info
        self.text, count = re.subn(
            r"(%\w+) = stablehlo.add (%\w+), (%\w+) : tensor<i32>\n"
            r"(\s*stablehlo.return)",
            r"%three = stablehlo.constant dense<3> : tensor<i32>\n"
            r"%times = stablehlo.multiply \2, %three : tensor<i32>\n"
            r"\1 = stablehlo.add %times, \3 : tensor<i32>\n\4",
            lowered.as_text(),
        )
        assert count == len(self.out_info), count

    def as_text(self, debug_info):
        return self.text


def check_divided(arguments) -> int:
    """How many results of `scatters` differ on the processor where they are in
    parts of at most seven updates."""
    lowered = jax.jit(
        lambda arrays: list(scatters(arrays)), keep_unused=True
    ).lower(arguments)
    text = lowered.as_text()
    divided = subprocess.run(
        [
            "whale-opt",
            "--pass-pipeline=builtin.module("
            "func.func(whale-divide-scatters{most=7}))",
        ],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "sizes = [7, 1]" in divided
    results = [
        run_text(program, arguments, lowered.out_info)
        for program in (text, divided)
    ]
    # The larger one of zeros of both signs is either.
    return sum(
        not np.array_equal(a, b, equal_nan=True)
        for a, b in zip(*results, strict=True)
    )


def main() -> None:
    arguments = list(make_arguments(np.random.default_rng(0)))
    count, wrong = 0, check_divided(arguments[1:3])
    for lowered in (jax.jit(program).lower(arguments), Linked(arguments)):
        expected, runs = run_orders(lowered, arguments)
        count += len(expected)
        for seed, results in zip(SEEDS, runs):
            for number, (a, b) in enumerate(zip(expected, results)):
                if a.tobytes() != b.tobytes():
                    print(f"seed {seed}: result {number} differs")
                    wrong += 1
    print(f"{count} results, {wrong} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
