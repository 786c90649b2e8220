"""Random training steps: a network of random layers, its loss, the gradients
of its parameters and their update.

In: a seed and a size. Out: `Step`, a function for `jax.jit` with parameters,
optimizer state and a mini-batch. fuzz.py runs it under XLA and Whale and
compares, in half precision within 5e-2. A difference means that forward,
backward or update are wrong in some combination of layers, ranks and strategy.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Step:
    """A training step `step(params..., x, y)` of random layers.

    Rows of `x` and `y` are samples. Whatever a layer does stays smooth, so
    that a difference in the last bit stays one.
    """

    def __init__(self, seed: int, size: int):
        self.rng = np.random.default_rng(seed)
        self.batch = int(self.rng.integers(1, 9))
        self.length = int(self.rng.integers(1, 5))
        self.width = int(self.pick((1, 2, 3, 4, 6, 8)))
        self.dtype = self.pick(("float32",) * 4 + ("bfloat16", "float16"))
        self.optimizer = self.pick(("sgd", "momentum", "adam"))
        self.params: list[np.ndarray] = []
        self.layers = [self.layer() for _ in range(max(1, size // 3))]
        self.classes = int(self.rng.integers(2, 5))
        self.head = self.parameter(self.width, self.classes)
        # Tokens are looked up, features are projected.
        self.tokens = bool(self.rng.integers(2))
        rows = int(self.rng.integers(2, 8))
        self.entry = self.parameter(rows, self.width)
        shape = (self.batch, self.length)
        if self.tokens:
            x = self.rng.integers(0, rows, shape).astype(np.int32)
        else:
            x = self.rng.normal(size=(*shape, rows)).astype(np.float32)
        y = self.rng.integers(0, self.classes, self.batch).astype(np.int32)
        state = []
        if self.optimizer != "sgd":
            state = [0.1 * abs(p) for p in self.params]
        self.arguments = [*self.params, *state, x, y]
        self.batch_arguments = range(
            len(self.arguments) - 2, len(self.arguments)
        )

    @property
    def coarse(self) -> bool:
        return self.dtype != "float32"

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def parameter(self, *shape) -> int:
        scale = 0.7 / max(1.0, float(np.prod(shape[:-1]))) ** 0.5
        value = self.rng.normal(size=shape) * scale
        self.params.append(value.astype(np.float32))
        return len(self.params) - 1

    def layer(self):
        """A function of the parameters and of activations
        [batch, length, width] that keeps their shape."""
        w, n = self.width, self.length
        kinds = [
            self.dense, self.gated, self.normalize, self.attention,
            self.convolution, self.recurrent, self.shuffle, self.running,
            self.pooled, self.experts, self.branch, self.scatter,
        ]  # fmt: skip
        return self.pick(kinds)(n, w)

    def activation(self):
        return self.pick((
            jnp.tanh, jax.nn.gelu, jax.nn.sigmoid, jnp.sin, jax.nn.softplus,
            lambda x: x * jax.nn.sigmoid(x),
        ))  # fmt: skip

    def dense(self, n, w):
        hidden = int(self.rng.integers(1, 2 * w + 2))
        up, down = self.parameter(w, hidden), self.parameter(hidden, w)
        bias, f = self.parameter(hidden), self.activation()
        flat = bool(self.rng.integers(2))

        def run(p, x):
            h = x.reshape(-1, w) if flat else x
            h = f(h @ p[up] + p[bias]) @ p[down]
            return x + h.reshape(x.shape)

        return run

    def gated(self, n, w):
        """One product whose columns are several projections."""
        both = self.parameter(w, 2 * w)
        by_slice = bool(self.rng.integers(2))

        def run(p, x):
            h = x @ p[both]
            if by_slice:
                gate, value = h[..., :w], h[..., w:]
            else:
                gate, value = jnp.split(h.reshape(*x.shape[:2], 2, w), 2, 2)
                gate, value = gate[:, :, 0], value[:, :, 0]
            return x + jax.nn.sigmoid(gate) * value

        return run

    def normalize(self, n, w):
        scale = self.parameter(w)
        axes = self.pick(((-1,), (1, 2)))

        def run(p, x):
            mean = x.mean(axes, keepdims=True)
            spread = ((x - mean) ** 2).mean(axes, keepdims=True)
            return (x - mean) * lax.rsqrt(spread + 0.1) * (1 + p[scale])

        return run

    def attention(self, n, w):
        heads = self.pick([h for h in (1, 2, 3, 4) if w % h == 0])
        qkv, out = self.parameter(w, 3 * w), self.parameter(w, w)
        causal = bool(self.rng.integers(2))

        def run(p, x):
            q, k, v = jnp.split(x @ p[qkv], 3, axis=-1)
            q, k, v = (
                t.reshape(-1, n, heads, w // heads).transpose(0, 2, 1, 3)
                for t in (q, k, v)
            )
            scores = jnp.einsum("bhqd,bhkd->bhqk", q, k)
            if causal:
                mask = jnp.tril(jnp.ones((n, n), bool))
                scores = jnp.where(mask, scores, -1e4)
            h = jax.nn.softmax(scores, -1) @ v
            return x + h.transpose(0, 2, 1, 3).reshape(x.shape) @ p[out]

        return run

    def convolution(self, n, w):
        taps = int(self.rng.integers(1, 4))
        groups = self.pick([g for g in (1, 1, 2, w) if w % g == 0])
        dilation = int(self.rng.integers(1, 3))
        kernel = self.parameter(taps, w // groups, w)

        def run(p, x):
            return x + lax.conv_general_dilated(
                x, p[kernel], (1,), "SAME", rhs_dilation=(dilation,),
                dimension_numbers=("NWC", "WIO", "NWC"),
                feature_group_count=groups,
            )  # fmt: skip

        return run

    def recurrent(self, n, w):
        inner, outer = self.parameter(w, w), self.parameter(w, w)
        reverse = bool(self.rng.integers(2))

        def run(p, x):
            def turn(h, row):
                h = jnp.tanh(row @ p[outer] + h @ p[inner])
                return h, h

            start = jnp.zeros_like(x[:, 0])
            _, rows = lax.scan(
                turn, start, x.transpose(1, 0, 2), reverse=reverse
            )
            return rows.transpose(1, 0, 2)

        return run

    def shuffle(self, n, w):
        """Moves without arithmetic: flips, rolls, pads and cuts."""
        by, kind = int(self.rng.integers(0, 3)), int(self.rng.integers(5))

        def run(p, x):
            if kind == 0:
                return jnp.roll(x, by, axis=1)
            if kind == 1:
                return jnp.flip(x, 2)
            if kind == 2:
                zero = jnp.zeros((), x.dtype)
                return lax.pad(x, zero, ((0, 0, 0), (by, -by, 0), (0, 0, 0)))
            if kind == 3:
                pair = jnp.concatenate([x, x * 0.5], 2)
                return pair.reshape(-1, n, w, 2)[..., by % 2]
            return jnp.concatenate([x[:, ::2], x[:, 1::2]], 1)

        return run

    def running(self, n, w):
        reverse = bool(self.rng.integers(2))
        return lambda p, x: lax.cumsum(x, 1, reverse) / n

    def pooled(self, n, w):
        size = int(self.rng.integers(1, 4))
        combine = self.pick((lax.add, lax.max))

        def run(p, x):
            # JAX differentiates what it knows the identity of.
            start = np.array(0 if combine is lax.add else -np.inf, x.dtype)
            window, strides = (1, size, 1), (1, 1, 1)
            total = lax.reduce_window(
                x, start, combine, window, strides, "SAME"
            )
            return x - total / size

        return run

    def experts(self, n, w):
        count = int(self.rng.integers(1, 4))
        gate, weights = self.parameter(w, count), self.parameter(count, w, w)

        def run(p, x):
            shares = jax.nn.softmax(x @ p[gate], -1)
            each = jnp.einsum("bnw,ewv->bnev", x, p[weights])
            return x + jnp.einsum("bne,bnev->bnv", shares, jnp.tanh(each))

        return run

    def branch(self, n, w):
        """A condition on a parameter's sum, and a checkpointed layer."""
        weights = self.parameter(w, w)

        @jax.checkpoint
        def first(x, weight):
            return jnp.tanh(x @ weight)

        def run(p, x):
            weight = p[weights].astype(x.dtype)
            return lax.cond(
                p[weights][0, 0] > 0, first, lambda x, v: x + x @ v, x, weight
            )

        return run

    def scatter(self, n, w):
        """Adds positions up where fixed or counted indices say."""
        at = self.rng.integers(0, n, n).astype(np.int32)
        rows = self.parameter(n, w)

        def run(p, x):
            moved = jnp.zeros_like(x).at[:, at].add(x)
            return 0.5 * moved + jnp.take(p[rows], jnp.asarray(at), axis=0)

        return run

    def loss(self, params, x, y):
        p = [value.astype(self.dtype) for value in params]
        table = p[self.entry]
        if self.tokens:
            h = jnp.take(table, x, axis=0)
        else:
            h = x.astype(self.dtype) @ table
        for layer in self.layers:
            h = layer(p, h)
        h = jnp.tanh(h).mean(1)
        logits = (h @ p[self.head]).astype(jnp.float32)
        picked = jnp.take_along_axis(
            jax.nn.log_softmax(logits), y[:, None], axis=1
        )
        return -picked.mean()

    def __call__(self, *arguments):
        count = len(self.params)
        params, state = arguments[:count], arguments[count:-2]
        value, grads = jax.value_and_grad(self.loss)(params, *arguments[-2:])
        if self.optimizer == "sgd":
            return (*(p - 0.1 * g for p, g in zip(params, grads)), value)
        if self.optimizer == "momentum":
            state = [0.9 * m + g for m, g in zip(state, grads)]
            params = [p - 0.1 * m for p, m in zip(params, state)]
        else:
            state = [0.9 * m + 0.1 * g * g for m, g in zip(state, grads)]
            params = [
                p - 0.01 * g / (jnp.sqrt(m) + 0.1)
                for p, m, g in zip(params, state, grads)
            ]
        return (*params, *state, value)
