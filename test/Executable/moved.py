#!/usr/bin/env python
"""Chains of elementwise operations among moves of elements beside `jax.jit`.

    moved.py [--count N] [--first I]

A pad, a roll, a gather or a concatenation reads its operand from inside its
loop, at places that it computes: what makes the operand can't be a part of that
loop, and must come before it. Program i draws a graph of such moves and of
cheap and heavy elementwise operations, most of whose values have several users;
vmap takes it over the samples, and a training step takes its gradient, on some
ranks, in some micro-batches. Without --count it is 4 programs, or 200 in
the long run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("WHALE_VERIFY_EACH", "1")

import jax
import jax.numpy as jnp
import late_devices
import numpy as np
import relaunch
from jax import lax

import whale as wh

SAMPLES, ROWS, COLUMNS = 8, 5, 8
TOLERANCE = 2e-5
Map = Callable[[jax.Array], jax.Array]


class Chain:
    """A random function of a sample [ROWS, COLUMNS] and parameters `w`
    [COLUMNS], `c` [ROWS, COLUMNS]."""

    def __init__(self, rng: np.random.Generator, size: int):
        self.rng = rng
        makers = [
            self.cheap, self.cheap, self.cheap, self.heavy, self.move,
            self.move, self.rotate, self.reduce,
        ]  # fmt: skip
        # Each node: from which earlier values it is computed, and how.
        self.nodes = []
        for count in range(1, size + 1):
            # Recent values are taken more often, and old ones again.
            at = [max(0, count - 1 - int(rng.integers(4))) for _ in range(2)]
            self.nodes.append((at, self.pick(makers)()))

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def __call__(self, w: jax.Array, c: jax.Array, v: jax.Array) -> jax.Array:
        values = [v * w]
        for (first, second), node in self.nodes:
            values.append(node(values[first], values[second], w, c))
        return values[-1] + 0.5 * values[-2]

    def cheap(self):
        factor = float(self.rng.normal())
        return self.pick((
            lambda a, b, w, c: a * c,
            lambda a, b, w, c: a + factor,
            lambda a, b, w, c: a + b,
            lambda a, b, w, c: a - b * w,
            lambda a, b, w, c: a * factor,
            lambda a, b, w, c: -a,
            lambda a, b, w, c: jnp.where(c > 0, a, b),
        ))  # fmt: skip

    def heavy(self):
        return self.pick((
            lambda a, b, w, c: jnp.tanh(a),
            lambda a, b, w, c: jnp.exp(-a * a) + b,
            lambda a, b, w, c: a / (1 + b * b),
            lambda a, b, w, c: jax.nn.sigmoid(a * w),
        ))  # fmt: skip

    def move(self):
        axis = int(self.rng.integers(2))
        extent = (ROWS, COLUMNS)[axis]
        by = int(self.rng.integers(1, extent))
        places = jnp.asarray(self.rng.integers(0, extent, extent))
        order = jnp.asarray(self.rng.permutation(extent))
        widths = [(0, 0, 0), (0, 0, 0)]

        def pad(a: jax.Array, low: int, high: int, inner: int) -> jax.Array:
            config = list(widths)
            config[axis] = (low, high, inner)
            return lax.pad(a, jnp.zeros((), a.dtype), config)

        def part(a: jax.Array, begin: int, end: int, step: int) -> jax.Array:
            return lax.slice_in_dim(a, begin, end, step, axis)

        def swapped(a: jax.Array) -> jax.Array:
            return jnp.concatenate([part(a, by, extent, 1), part(a, 0, by, 1)],
                                   axis)  # fmt: skip

        def spread(a: jax.Array) -> jax.Array:
            rows = part(a, 0, extent, 2)
            return pad(rows, 0, 1 - extent % 2, 1)

        move: Map = self.pick((
            lambda a: jnp.roll(a, by, axis),
            lambda a: pad(a, by, -by, 0),
            lambda a: pad(part(a, by, extent, 1), 0, by, 0),
            spread,
            swapped,
            lambda a: jnp.flip(a, axis),
            lambda a: jnp.take(a, places, axis, mode="clip"),
            lambda a: jnp.take(a, order, axis, mode="fill", fill_value=1),
            lambda a: lax.dynamic_update_slice_in_dim(
                a, -part(a, 0, by, 1), extent - by, axis
            ),
            lambda a: lax.reduce_window(
                a, 0.0, lax.add, (1, 3), (1, 1), ((0, 0), (1, 1))
            ),
        ))  # fmt: skip
        scaled = bool(self.rng.integers(2))
        return lambda a, b, w, c: move(a) * c + b if scaled else move(a)

    def rotate(self):
        """A rotary embedding."""
        half = COLUMNS // 2

        def rotate(a, b, w, c):
            turned = jnp.concatenate([-a[:, half:], a[:, :half]], -1)
            return a * jnp.cos(c) + turned * jnp.sin(c)

        return rotate

    def reduce(self):
        axis = int(self.rng.integers(2))
        start = int(self.rng.integers(COLUMNS))
        return self.pick((
            lambda a, b, w, c: a - jnp.mean(a, axis, keepdims=True),
            lambda a, b, w, c: a + jnp.cumsum(b, axis) / 8,
            lambda a, b, w, c: a * lax.dynamic_slice(w, (start,), (1,)),
        ))  # fmt: skip


def check(number: int) -> str:
    """What is wrong with a program, or nothing."""
    rng = np.random.default_rng([number, 15])
    chain = Chain(rng, int(rng.integers(4, 16)))
    ranks = (1, 1, 2, 4)[int(rng.integers(4))]
    moments = (1, 1, 2, 4)[int(rng.integers(4))]
    scope = (wh.replicate, wh.split)[int(rng.integers(2))]
    what = f"program {number} ({ranks} ranks, {moments} micro-batches, "
    what += f"{scope.__name__})"

    def loss(w: jax.Array, c: jax.Array, x: jax.Array) -> jax.Array:
        y = jax.vmap(lambda v: chain(w, c, v))(x)
        return jnp.mean(y * y + y)

    def step(w: jax.Array, c: jax.Array, x: jax.Array) -> tuple:
        value, (dw, dc) = jax.value_and_grad(loss, (0, 1))(w, c, x)
        return w - 0.1 * dw, c - 0.1 * dc, value

    arguments = [
        jnp.asarray(rng.normal(size=shape), jnp.float32)
        for shape in ((COLUMNS,), (ROWS, COLUMNS), (SAMPLES, ROWS, COLUMNS))
    ]
    wh.init(wh.Config({"num_micro_batch": moments}))
    wh.set_default_strategy(scope(ranks))
    expected = jax.jit(step)(*arguments)
    try:
        whale = wh.jit(step, cluster=ranks, batch_argnums=2)
        program = whale.lower(*arguments).compile()
        actual = program(*arguments)
        moved = late_devices.check_step(program, arguments, actual)
        relaunch.check_step(program, arguments, actual)
    except (wh.CompileError, late_devices.Failure) as error:
        return f"{what}: {error}"
    print(f"{what}: {moved} transfers moved", flush=True)
    for index, (want, got) in enumerate(zip(expected, actual)):
        scale = max(1.0, float(np.abs(want).max()))
        off = float(np.abs(np.asarray(got) - np.asarray(want)).max()) / scale
        if not off <= TOLERANCE:
            return f"{what}: result {index} is {off:.1e} off"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    count = 200 if os.environ.get("WHALE_TEST_FULL") else 4
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    wrong = 0
    for number in range(args.first, args.first + args.count):
        if message := check(number):
            wrong += 1
            print(message, flush=True)
    print(f"{args.count} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
