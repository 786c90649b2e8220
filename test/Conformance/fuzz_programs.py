"""Random functions of arrays, made of every kind of operation.

In: a seed and a number of operations. Out: `Program`, a function for `jax.jit`
with its arguments; each trace draws the same. fuzz.py runs it under XLA and
Whale and compares. Values know whether they are exact and a bound of them, so
that what the last bit decides is done with exact numbers alone, and floats stay
small. A difference is thus a fault. No value has more than 4096 elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

INTEGERS = ("int32", "int8", "uint32", "uint8", "int64")


@dataclasses.dataclass
class Value:
    """A traced array, whether its floats are exact, and a bound of them."""

    array: jax.Array
    exact: bool
    bound: float

    @property
    def shape(self):
        return self.array.shape

    @property
    def is_float(self):
        return jnp.issubdtype(self.array.dtype, jnp.floating)

    @property
    def is_integer(self):
        return jnp.issubdtype(self.array.dtype, jnp.integer)


class Program:
    """A random function of some arguments."""

    batch_arguments = ()
    # Whether half precision is computed with.
    coarse = False

    def __init__(self, seed: int, size: int):
        self.rng = np.random.default_rng(seed)
        self.size = size
        extents = self.rng.integers(1, 7, 3)
        self.extents = [int(extent) for extent in extents]
        if self.rng.random() < 0.05:
            self.extents[2] = 0
        self.arguments = [self.argument() for _ in range(self.pick((2, 3, 4)))]

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def argument(self) -> np.ndarray:
        rank = self.pick((0, 1, 2, 2, 3))
        shape = tuple(self.pick(self.extents) for _ in range(rank))
        if self.rng.random() < 0.3:
            dtype = self.pick(INTEGERS)
            low = 0 if dtype[0] == "u" else -9
            return np.asarray(self.rng.integers(low, 10, shape)).astype(dtype)
        dtype = self.pick(("float32", "float32", "float32", "float64"))
        return np.asarray(self.rng.normal(size=shape)).astype(dtype)

    def __call__(self, *arrays):
        state = self.rng.bit_generator.state
        pool = [
            Value(array, True, 5.0 if array.dtype.kind == "f" else 0.0)
            for array in arrays
        ]
        try:
            made = self.grow(pool, self.size, depth=0)
        finally:
            self.rng.bit_generator.state = state
        results = made[-4:] or pool[:1]
        return tuple(value.array for value in results)

    def grow(self, pool: list[Value], size: int, depth: int) -> list[Value]:
        """Adds operations on values of the pool; returns what they give."""
        made: list[Value] = []
        steps: list[Callable[..., Value | None]] = [
            self.unary, self.binary, self.binary, self.compare, self.convert,
            self.move, self.move, self.reduce, self.reduce, self.contract,
            self.index, self.order, self.scan, self.window, self.convolve,
            self.pick_up, self.half,
        ]  # fmt: skip
        if depth < 2:
            steps.append(self.control)
        while size > 0:
            size -= 1
            step = self.pick(steps)
            options = pool + made * 2
            arguments = (options, depth) if step == self.control else (options,)
            value = step(*arguments)
            if value is None or value.array.size > 4096:
                continue
            if value.is_float and value.bound > 100:
                value = Value(jnp.tanh(value.array), False, 1.0)
            made.append(value)
        return made

    def floats(self, pool):
        found = [value for value in pool if value.is_float]
        return self.pick(found) if found else None

    def unary(self, pool):
        x = self.pick(pool)
        if x.is_integer:
            f = self.pick((lax.neg, lax.abs, lax.bitwise_not, lax.sign,
                           lax.population_count, lax.clz))  # fmt: skip
            if x.array.dtype.kind == "u" and f in (lax.abs, lax.sign):
                f = lax.bitwise_not
            return Value(f(x.array), True, 0)
        if not x.is_float:
            return Value(jnp.logical_not(x.array), True, 0)
        if self.rng.random() < 0.3:
            f = self.pick((lax.neg, lax.abs))
            return Value(f(x.array), x.exact, x.bound)
        f, bound = self.pick(
            ((jnp.tanh, 1), (jnp.sin, 1), (jnp.cos, 1), (jax.nn.sigmoid, 1),
             (lambda a: jnp.sqrt(jnp.abs(a) + 0.1), x.bound + 1),
             (lambda a: jnp.log1p(jnp.abs(a)), x.bound),
             (lambda a: jnp.exp(jnp.minimum(a, 2.0)), 8),
             (lambda a: lax.cbrt(jnp.abs(a) + 0.1), x.bound + 1),
             (lambda a: lax.rsqrt(jnp.abs(a) + 0.1), 4),
             (lambda a: jnp.arctan2(a, jnp.abs(a) + 0.5), 2))
        )  # fmt: skip
        return Value(f(x.array), False, bound)

    def partner(self, x, pool):
        """A value that x can be combined with, broadcast if need be."""
        same = [
            y for y in pool
            if y.array.dtype == x.array.dtype
            and (y.shape == x.shape or y.shape == () or x.shape == ()
                 or y.shape == x.shape[-len(y.shape):])
        ]  # fmt: skip
        return self.pick(same)

    def binary(self, pool):
        x = self.pick(pool)
        y = self.partner(x, pool)
        a, b = x.array, y.array
        if x.is_integer:
            f = self.pick((
                jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum,
                jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor,
                lambda a, b: lax.div(*jnp.broadcast_arrays(a, b)),
                lambda a, b: lax.rem(*jnp.broadcast_arrays(a, b)),
                lambda a, b: lax.shift_left(*jnp.broadcast_arrays(a, b & 7)),
                lambda a, b: lax.shift_right_arithmetic(
                    *jnp.broadcast_arrays(a, b)),
                lambda a, b: lax.shift_right_logical(
                    *jnp.broadcast_arrays(a, b)),
            ))  # fmt: skip
            return Value(f(a, b), True, 0)
        if not x.is_float:
            f = self.pick((jnp.logical_and, jnp.logical_or, jnp.logical_xor))
            return Value(f(a, b), True, 0)
        exact = x.exact and y.exact
        f, bound, keeps = self.pick((
            (jnp.add, x.bound + y.bound, False),
            (jnp.subtract, x.bound + y.bound, False),
            (jnp.multiply, x.bound * y.bound, False),
            (jnp.maximum, max(x.bound, y.bound), True),
            (jnp.minimum, max(x.bound, y.bound), True),
            (lambda a, b: a / (jnp.abs(b) + 1), x.bound, False),
            (lambda a, b: jnp.abs(a + 0.5) ** jnp.clip(b, -1, 2),
             (x.bound + 1) ** 2, False),
        ))  # fmt: skip
        return Value(f(a, b), exact and keeps, bound)

    def compare(self, pool):
        x = self.pick([v for v in pool if v.exact] or [None])
        if x is None or x.array.dtype == bool:
            return None
        y = self.partner(x, [v for v in pool if v.exact])
        f = self.pick((jnp.less, jnp.greater, jnp.equal, jnp.not_equal,
                       jnp.less_equal))  # fmt: skip
        flags = f(x.array, y.array)
        if self.rng.random() < 0.4:
            return Value(flags, True, 0)
        z = self.pick(pool)
        if z.shape not in ((), flags.shape):
            z = x
        w = self.partner(z, pool)
        if w.shape not in ((), flags.shape):
            w = z
        return Value(
            jnp.where(flags, z.array, w.array), z.exact and w.exact,
            max(z.bound, w.bound),
        )  # fmt: skip

    def convert(self, pool):
        x = self.pick([v for v in pool if v.exact] or [None])
        if x is None:
            return None
        to = self.pick((*INTEGERS, "float32", "float64", "bool", "bfloat16",
                        "float16"))  # fmt: skip
        array = x.array.astype(to)
        if to in ("bfloat16", "float16"):
            array = array.astype("float32")
        bound = 5.0 if x.is_float else 300.0
        return Value(array, True, bound)

    def move(self, pool):
        x = self.pick(pool)
        a, rank = x.array, x.array.ndim
        kind = int(self.rng.integers(9))
        dim = int(self.rng.integers(rank)) if rank else 0
        if kind == 0 and rank > 1:
            a = jnp.transpose(a, self.rng.permutation(rank))
        elif kind == 1:
            a = a.reshape(-1)
        elif kind == 2 and rank and a.shape[dim] > 1:
            start = int(self.rng.integers(a.shape[dim]))
            stride = self.pick((1, 1, 2))
            a = lax.slice_in_dim(a, start, a.shape[dim], stride, dim)
        elif kind == 3 and rank:
            low, high = (int(n) for n in self.rng.integers(-1, 3, 2))
            if a.shape[dim] + low + high < 0:
                return None
            config = [(0, 0, 0)] * rank
            config[dim] = (low, high, self.pick((0, 0, 1)))
            if low < 0 or high < 0:
                config[dim] = (max(low, 0), max(high, 0), 0)
            a = lax.pad(a, jnp.zeros((), a.dtype), config)
        elif kind == 4 and rank:
            a = jnp.flip(a, dim)
        elif kind == 5 and rank:
            a = jnp.concatenate([a, self.pick((a, jnp.flip(a, dim)))], dim)
        elif kind == 6:
            a = jnp.broadcast_to(a, (self.pick(self.extents), *a.shape))
        elif kind == 7:
            a = jnp.expand_dims(a, int(self.rng.integers(rank + 1)))
        elif kind == 8 and rank > 1 and a.size and rank < 4:
            a = a.reshape(a.shape[0], -1)
        return Value(a, x.exact, x.bound)

    def reduce(self, pool):
        x = self.pick(pool)
        a = x.array
        if a.ndim == 0:
            return None
        count = int(self.rng.integers(1, a.ndim + 1))
        axes = tuple(int(n) for n in self.rng.permutation(a.ndim)[:count])
        if a.dtype == bool:
            return Value(self.pick((jnp.any, jnp.all))(a, axes), True, 0)
        kind = self.pick(("sum", "mean", "max", "min", "argmax", "prod"))
        if kind == "sum":
            total = float(np.prod([a.shape[axis] for axis in axes]))
            return Value(a.sum(axes, dtype=a.dtype), not x.is_float,
                         x.bound * max(total, 1))  # fmt: skip
        if kind == "mean" and x.is_float:
            return Value(a.sum(axes) / 7, False, x.bound * 8)
        if min(a.shape) == 0:
            return None
        if kind == "argmax" and x.exact:
            return Value(jnp.argmax(a, axes[0]), True, 0)
        if kind == "prod" and x.is_integer:
            return Value(a.prod(axes, dtype=a.dtype), True, 0)
        f = self.pick((jnp.max, jnp.min))
        return Value(f(a, axes), x.exact, x.bound)

    def contract(self, pool):
        x = self.floats(pool)
        if x is None or x.array.ndim == 0:
            return None
        dim = int(self.rng.integers(x.array.ndim))
        extent = x.array.shape[dim]
        others = [
            (y, d) for y in pool if y.array.dtype == x.array.dtype
            for d in range(y.array.ndim) if y.array.shape[d] == extent
        ]  # fmt: skip
        y, other = self.pick(others)
        batch = ((), ())
        if self.rng.random() < 0.4:
            pairs = [
                (i, j)
                for i in range(x.array.ndim) for j in range(y.array.ndim)
                if i != dim and j != other
                and x.array.shape[i] == y.array.shape[j]
            ]  # fmt: skip
            if pairs:
                i, j = self.pick(pairs)
                batch = ((i,), (j,))
        if x.array.ndim + y.array.ndim > 6:
            return None
        a = lax.dot_general(x.array, y.array, (((dim,), (other,)), batch))
        return Value(a, False, x.bound * y.bound * max(extent, 1))

    def index(self, pool):
        x = self.pick(pool)
        a = x.array
        places = [v for v in pool if v.is_integer and v.array.ndim < 3]
        if not places or a.ndim == 0 or a.shape[0] == 0:
            return None
        at = self.pick(places).array.astype(jnp.int32)
        kind = self.pick(("take", "slice", "update", "add", "set"))
        if kind == "take":
            mode = self.pick(("clip", "fill" if not x.is_float else "clip"))
            return Value(jnp.take(a, at, axis=0, mode=mode), x.exact, x.bound)
        scalar = at.reshape(-1)[:1].sum(dtype=jnp.int32)
        if kind == "slice":
            size = int(self.rng.integers(1, a.shape[0] + 1))
            part = lax.dynamic_slice_in_dim(a, scalar, size)
            return Value(part, x.exact, x.bound)
        part = a[: int(self.rng.integers(1, a.shape[0] + 1))]
        if kind == "update":
            whole = lax.dynamic_update_slice_in_dim(a, -part
                if a.dtype != bool else part, scalar, 0)  # fmt: skip
            return Value(whole, x.exact, x.bound)
        if a.dtype == bool or at.ndim != 1 or at.shape[0] == 0:
            return None
        if kind == "add":
            update = jnp.ones((at.shape[0], *a.shape[1:]), a.dtype)
            return Value(a.at[at].add(update, mode="drop"), not x.is_float,
                         x.bound + at.shape[0])  # fmt: skip
        return Value(a.at[at].set(a[0], mode="drop"), x.exact, x.bound)

    def order(self, pool):
        x = self.pick([v for v in pool if v.exact] or [None])
        if x is None or x.array.ndim == 0 or x.array.dtype == bool:
            return None
        axis = int(self.rng.integers(x.array.ndim))
        kind = self.pick(("sort", "argsort", "top_k"))
        if kind == "sort":
            return Value(jnp.sort(x.array, axis), True, x.bound)
        if kind == "argsort":
            return Value(jnp.argsort(x.array, axis), True, 0)
        if x.array.shape[-1] == 0:
            return None
        return Value(lax.top_k(x.array, 1)[0], True, x.bound)

    def scan(self, pool):
        x = self.pick(pool)
        if x.array.ndim == 0 or x.array.dtype == bool:
            return None
        axis = int(self.rng.integers(x.array.ndim))
        reverse = bool(self.rng.integers(2))
        if x.is_float and self.rng.random() < 0.5:
            f = lax.cumsum
            bound = x.bound * max(x.array.shape[axis], 1)
            return Value(f(x.array, axis, reverse), False, bound)
        return Value(lax.cummax(x.array, axis, reverse), x.exact, x.bound)

    def window(self, pool):
        """A sliding maximum or sum, with strides, dilation and padding."""
        x = self.pick(pool)
        a, rank = x.array, x.array.ndim
        if rank == 0 or a.dtype == bool or 0 in a.shape:
            return None
        sizes = [int(n) for n in self.rng.integers(1, 4, rank)]
        strides = [int(n) for n in self.rng.integers(1, 3, rank)]
        padding = self.rng.integers(0, 3, (rank, 2)).tolist()
        options = (sizes, strides, padding)
        if self.rng.random() < 0.5:
            total = lax.reduce_window(
                a, jnp.zeros((), a.dtype), lax.add, *options
            )
            bound = x.bound * float(np.prod(sizes))
            return Value(total, not x.is_float, bound)
        f, start = self.pick(((lax.max, "min"), (lax.min, "max")))
        limits = jnp.finfo if x.is_float else jnp.iinfo
        start = jnp.asarray(getattr(limits(a.dtype), start), a.dtype)
        a = lax.reduce_window(a, start, f, *options)
        if x.is_float:  # Windows of padding alone.
            a = jnp.clip(a, -x.bound - 1, x.bound + 1)
        return Value(a, x.exact, x.bound + 1)

    def convolve(self, pool):
        """A convolution of one or two dimensions in some order of them."""
        x = self.floats([v for v in pool if v.array.ndim > 1])
        if x is None or 0 in x.shape:
            return None
        a = x.array
        while a.ndim < 4:
            a = a[None] if self.rng.random() < 0.5 else a[..., None]
        if a.ndim > 4:
            return None
        layout = self.pick(("NHWC", "NCHW", "HWNC"))
        features = a.shape[layout.index("C")]
        groups = self.pick([g for g in (1, 1, 2, 3) if features % g == 0])
        out = groups * int(self.rng.integers(1, 3))
        taps = [int(n) for n in self.rng.integers(1, 4, 2)]
        kernel = self.rng.normal(size=(*taps, features // groups, out))
        padding = self.rng.integers(0, 3, (2, 2)).tolist()
        result = lax.conv_general_dilated(
            a, jnp.asarray(kernel, a.dtype),
            tuple(int(n) for n in self.rng.integers(1, 3, 2)), padding,
            lhs_dilation=tuple(int(n) for n in self.rng.integers(1, 3, 2)),
            rhs_dilation=tuple(int(n) for n in self.rng.integers(1, 3, 2)),
            dimension_numbers=(layout, "HWIO", layout),
            feature_group_count=groups,
        )  # fmt: skip
        bound = x.bound * 4 * taps[0] * taps[1] * features
        return Value(jnp.squeeze(result), False, bound)

    def pick_up(self, pool):
        """Gathers and scatters of single elements and along dimensions."""
        x = self.pick([v for v in pool if v.array.ndim > 1] or [None])
        places = [v for v in pool if v.is_integer and 0 < v.array.ndim < 3]
        if x is None or not places or 0 in x.shape or x.array.dtype == bool:
            return None
        at = self.pick(places).array.astype(jnp.int32)
        a = x.array
        kind = self.pick(("pairs", "columns", "along", "max", "min", "late"))
        if kind == "pairs":
            picked = a.at[at, at[..., ::-1]].get(mode="clip")
            return Value(picked, x.exact, x.bound)
        if kind == "columns":
            picked = a.at[:, at].get(mode="fill", fill_value=0)
            return Value(picked, x.exact, x.bound)
        if kind == "along":
            order = jnp.argsort(jnp.zeros(a.shape), self.pick((0, 1)))
            if x.exact:
                order = jnp.argsort(a, 1)
            return Value(
                jnp.take_along_axis(a, order, 1), x.exact, x.bound
            )  # fmt: skip
        at = at.reshape(-1)
        update = a[:1, ...].reshape(a.shape[1:])
        update = jnp.broadcast_to(update, (at.shape[0], *a.shape[1:]))
        if kind == "late":
            return Value(
                a.at[:, at].set(1, mode="drop"), x.exact, max(x.bound, 1)
            )  # fmt: skip
        changed = getattr(a.at[at], kind)(update, mode="drop")
        return Value(changed, x.exact, x.bound)

    def half(self, pool):
        """A little arithmetic in half precision."""
        x = self.floats(pool)
        if x is None or self.rng.random() < 0.5:
            return None
        a = x.array.astype(self.pick(("bfloat16", "float16")))
        f = self.pick((
            lambda a: a * a, lambda a: a + a / 3, jnp.tanh, lambda a: -a,
            lambda a: a.sum(), lambda a: a @ a.T if a.ndim == 2 else a - 1,
            lambda a: jnp.concatenate([a, a], -1) if a.ndim else jnp.exp(a),
        ))  # fmt: skip
        size = max(1, a.size)
        Program.coarse = True
        return Value(f(a).astype("float32"), False, x.bound**2 * size + 8)

    def control(self, pool, depth):
        """A loop or a branch around operations of its own."""
        x = self.pick(pool)
        seed = int(self.rng.integers(2**31))
        size = int(self.rng.integers(1, 5))

        def body(array):
            inner = Program.__new__(Program)
            inner.rng = np.random.default_rng(seed)
            inner.size, inner.extents = size, self.extents
            value = Value(array, False, 2.0)
            made = inner.grow([value, *outside], size, depth + 1)
            same = [
                v for v in made
                if v.shape == array.shape and v.array.dtype == array.dtype
            ]  # fmt: skip
            result = same[-1].array if same else array
            if jnp.issubdtype(array.dtype, jnp.floating):
                return jnp.tanh(result)
            return result

        outside = [dataclasses.replace(self.pick(pool), exact=False)]
        start = jnp.tanh(x.array) if x.is_float else x.array
        kind = self.pick(("for", "cond", "switch", "while"))
        exact = not x.is_float
        if kind == "while":
            counts = [v for v in pool if v.is_integer]
            most = int(self.rng.integers(1, 4))
            limit = jnp.int32(most)
            if counts:
                limit = self.pick(counts).array.sum(dtype=jnp.int32) % 4
            a, _ = lax.while_loop(
                lambda carry: carry[1] < limit,
                lambda carry: (body(carry[0]), carry[1] + 1),
                (start, jnp.int32(0)),
            )
            return Value(a, exact, 1.0)
        if kind == "for":
            trips = int(self.rng.integers(0, 4))
            a = lax.fori_loop(0, trips, lambda _, v: body(v), start)
            return Value(a, exact, 1.0)
        flags = [v for v in pool if v.is_integer]
        if not flags:
            return None
        flag = self.pick(flags).array.sum(dtype=jnp.int32)
        if kind == "cond":
            a = lax.cond(flag > 3, body, lambda v: v, start)
        else:
            a = lax.switch(
                flag % 3, [body, lambda v: v, lambda v: v + v], start
            )
        return Value(a, exact, 2.0)
