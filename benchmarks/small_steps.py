"""A hundred small steps, of the kinds that are slow when they are small.

Each kind is a function of sizes that makes a step `state, *data -> state,
output` with its state and data, most of them the training step of a small
model; five sizes of each kind are listed with it. The last two of each are for
measuring alone: whoever makes a kind faster tries the first three.

A step takes from some hundredths of a millisecond to some milliseconds; its
results are finite, so that a caller can compare them with those of `jax.jit`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

Made = tuple[Callable[..., Any], Any, tuple[Any, ...]]
MEASURED_ALONE = 2


@dataclasses.dataclass(frozen=True)
class SmallStep:
    """One kind at one size; `make` gives the step, its state and its data."""

    kind: str
    sizes: tuple[int, ...]
    is_tuned: bool
    build: Callable[..., Made]

    @property
    def name(self) -> str:
        """Such as `mlp/8-32`."""
        return f"{self.kind}/{'-'.join(map(str, self.sizes))}"

    def make(self) -> Made:
        """The step, its state and its data."""
        return self.build(*self.sizes)


STEPS: list[SmallStep] = []


def kind(*sizes: tuple[int, ...]) -> Callable[[Any], Any]:
    """Lists a kind at each of the sizes, under its function's name."""

    def enter(build: Callable[..., Made]) -> Callable[..., Made]:
        name = build.__name__.replace("_", "-")
        for number, size in enumerate(sizes):
            is_tuned = number < len(sizes) - MEASURED_ALONE
            STEPS.append(SmallStep(name, size, is_tuned, build))
        return build

    return enter


def draw(seed: int, *shape: int) -> jax.Array:
    """Normal numbers."""
    return jax.random.normal(jax.random.key(seed), shape)


def weights(seed: int, *shape: int) -> jax.Array:
    """A matrix that keeps the size of what it is multiplied with."""
    return draw(seed, *shape) / shape[-2] ** 0.5


def descend(loss: Callable[..., jax.Array], state: Any, *data: Any) -> Made:
    """The step of gradient descent on `loss(state, *data)`."""

    def step(state: Any, *data: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(state, *data)
        new = jax.tree.map(lambda p, g: p - 1e-3 * g, state, gradient)
        return new, value

    return step, state, data


@kind((4,), (256,), (4096,), (31,), (1000,))
def add(count: int) -> Made:
    """The least that a call can do."""
    return lambda x: (x + 1, x[0]), draw(0, count), ()


@kind((8, 16), (64, 64), (128, 100), (32, 48), (4, 256))
def mlp(batch: int, width: int) -> Made:
    """Three layers, momentum."""

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.mean((x - y) ** 2)

    def step(state: Any, x: jax.Array, y: jax.Array) -> Any:
        params, speed = state
        value, grads = jax.value_and_grad(loss)(params, x, y)
        speed = jax.tree.map(lambda s, g: 0.9 * s + g, speed, grads)
        params = jax.tree.map(lambda p, s: p - 0.01 * s, params, speed)
        return (params, speed), value

    params = [(weights(i, width, width), jnp.zeros(width)) for i in range(3)]
    state = (params, jax.tree.map(jnp.zeros_like, params))
    return step, state, (draw(5, batch, width), jnp.ones((batch, width)))


@kind((16, 64), (64, 1000), (8, 256), (32, 300), (4, 2048))
def spectrum(batch: int, length: int) -> Made:
    """A filter in the frequencies of real signals."""

    def loss(gains: jax.Array, x: jax.Array) -> jax.Array:
        spectrum = jnp.fft.rfft(x) * gains
        return jnp.mean(jnp.fft.irfft(spectrum, n=length) ** 2)

    return descend(loss, jnp.ones(length // 2 + 1), draw(1, batch, length))


@kind((8, 32), (16, 64), (4, 31), (6, 48), (2, 100))
def image_transform(batch: int, size: int) -> Made:
    """Two-dimensional complex transforms, there and back."""

    def loss(phase: jax.Array, x: jax.Array) -> jax.Array:
        spectrum = jnp.fft.fft2(x) * jnp.exp(1j * phase)
        return jnp.mean(jnp.abs(jnp.fft.ifft2(spectrum)) ** 2 * x)

    return descend(loss, draw(2, size, size), draw(3, batch, size, size))


@kind(
    (4, 16, 16, 6),
    (2, 32, 16, 8),
    (8, 16, 8, 4),
    (2, 24, 20, 8),
    (1, 64, 8, 12),
)
def fno(batch: int, size: int, width: int, modes: int) -> Made:
    """A Fourier neural operator of two layers."""

    def loss(params: Any, x: jax.Array) -> jax.Array:
        y = x @ params["lift"]
        for re, im, w in params["layers"]:
            spectrum = jnp.fft.rfft2(y, axes=(1, 2))
            low = spectrum[:, :modes, :modes]
            low = jnp.einsum("bxyi,xyio->bxyo", low, re + 1j * im)
            spectrum = jnp.zeros_like(spectrum).at[:, :modes, :modes].set(low)
            y = jnp.fft.irfft2(spectrum, s=(size, size), axes=(1, 2)) + y @ w
            y = jax.nn.gelu(y)
        return jnp.mean((y @ params["drop"] - x) ** 2)

    part = [weights(i, modes, modes, width, width) for i in range(4)]
    params = {
        "lift": weights(5, 1, width),
        "drop": weights(6, width, 1),
        "layers": [
            (part[2 * i], part[2 * i + 1], weights(7 + i, width, width))
            for i in range(2)
        ],
    }
    return descend(loss, params, draw(9, batch, size, size, 1))


@kind(
    (4, 128, 16, 8),
    (2, 512, 32, 16),
    (8, 64, 8, 8),
    (4, 200, 24, 8),
    (1, 1024, 16, 32),
)
def s4(batch: int, length: int, width: int, order: int) -> Made:
    """A diagonal state-space layer, as a convolution by transforms."""

    def loss(params: Any, u: jax.Array) -> jax.Array:
        decay = -jnp.exp(params["re"]) + 1j * params["im"]
        step = jnp.exp(params["step"])[:, None]
        c = (params["c"][..., 0] + 1j * params["c"][..., 1]) * step
        powers = jnp.exp((decay * step)[..., None] * jnp.arange(length))
        kernel = 2 * jnp.einsum("hn,hnl->hl", c, powers).real
        spectrum = jnp.fft.rfft(kernel, n=2 * length)
        y = jnp.fft.rfft(u, n=2 * length, axis=-1) * spectrum
        y = jnp.fft.irfft(y, n=2 * length)[..., :length] + u
        return jnp.mean((jax.nn.gelu(y) - 1) ** 2)

    params = {
        "re": jnp.full((width, order), -0.7),
        "im": jnp.tile(
            jnp.pi * jnp.arange(order, dtype=jnp.float32), (width, 1)
        ),
        "step": jnp.linspace(-5.0, -2.0, width),
        "c": draw(1, width, order, 2),
    }
    return descend(loss, params, draw(2, batch, width, length))


@kind((64, 4096, 8), (128, 512, 2), (16, 1000, 32), (32, 2048, 5), (256, 64, 4))
def top_k(rows: int, columns: int, k: int) -> Made:
    """The gradient of the mean of each row's largest."""

    def loss(scale: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.top_k(x * scale, k)[0].mean()

    return descend(loss, jnp.ones(columns), draw(1, rows, columns))


@kind(
    (64, 16, 8, 2),
    (128, 32, 4, 1),
    (256, 16, 16, 2),
    (96, 24, 6, 2),
    (32, 64, 8, 1),
)
def experts(tokens: int, width: int, count: int, k: int) -> Made:
    """A layer of experts, of which each token takes `k`."""

    def loss(params: Any, x: jax.Array) -> jax.Array:
        gates = jax.nn.softmax(x @ params["gate"])
        best, which = jax.lax.top_k(gates, k)
        chosen = jnp.einsum("tk,tke->te", best, jax.nn.one_hot(which, count))
        hidden = jax.nn.relu(jnp.einsum("td,edh->teh", x, params["up"]))
        y = jnp.einsum("teh,ehd,te->td", hidden, params["down"], chosen)
        return jnp.mean((y - x) ** 2)

    params = {
        "gate": weights(0, width, count),
        "up": weights(1, count, width, 2 * width),
        "down": weights(2, count, 2 * width, width),
    }
    return descend(loss, params, draw(3, tokens, width))


@kind((64, 64), (128, 256), (32, 100), (96, 80), (256, 64))
def half_products(batch: int, width: int) -> Made:
    """Two layers in f16, with a loss scale."""

    def loss(params: Any, x: jax.Array) -> jax.Array:
        for w in params:
            x = jnp.tanh(x @ w.astype(jnp.float16))
        return x.astype(jnp.float32).mean() * 128

    params = [weights(i, width, width) for i in range(2)]
    return descend(loss, params, draw(4, batch, width).astype(jnp.float16))


@kind((64, 64), (256, 256), (32, 100), (96, 48), (128, 130))
def complex_products(rows: int, width: int) -> Made:
    """A product of complex matrices and its gradient."""

    def loss(state: Any, x: jax.Array) -> jax.Array:
        re, im = state
        return jnp.mean(jnp.abs(x @ (re + 1j * im)) ** 2)

    x = draw(2, rows, width) + 1j * draw(3, rows, width)
    state = (weights(0, width, width), weights(1, width, width))
    return descend(loss, state, x)


@kind((256, 4), (64, 16), (16, 32), (100, 8), (8, 48))
def covariances(batch: int, size: int) -> Made:
    """The density of normal numbers by factors of small matrices."""

    def loss(state: jax.Array, x: jax.Array) -> jax.Array:
        matrix = state @ state.mT + size * jnp.eye(size)
        factor = jnp.linalg.cholesky(matrix)
        white = jsp.linalg.solve_triangular(factor, x[..., None], lower=True)
        diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
        return (
            0.5 * (white**2).sum((-1, -2)) + jnp.log(diagonal).sum(-1)
        ).mean()

    return descend(loss, draw(0, batch, size, size), draw(1, batch, size))


@kind(
    (512, 16, 64),
    (4096, 8, 256),
    (1000, 32, 1000),
    (2000, 4, 50),
    (300, 64, 20),
)
def segments(edges: int, width: int, nodes: int) -> Made:
    """Messages along the edges of a graph, summed at its nodes."""

    def loss(params: Any, x: jax.Array, source: Any, to: Any) -> jax.Array:
        messages = jnp.tanh(x @ params)[source]
        sums = jax.ops.segment_sum(messages, to, num_segments=nodes)
        return jnp.mean((sums - x) ** 2)

    key = jax.random.key(1)
    source = jax.random.randint(key, (edges,), 0, nodes)
    to = jnp.sort(jax.random.randint(jax.random.key(2), (edges,), 0, nodes))
    return descend(
        loss, weights(0, width, width), draw(3, nodes, width), source, to
    )


@kind((8, 16, 50), (4, 32, 100), (16, 8, 24), (8, 24, 40), (2, 64, 64))
def recurrence(batch: int, width: int, length: int) -> Made:
    """A gated recurrent network by a scan."""

    def cell(params: Any, h: jax.Array, x: jax.Array) -> tuple[Any, Any]:
        z = jax.nn.sigmoid(jnp.concatenate([x, h], -1) @ params["z"])
        n = jnp.tanh(jnp.concatenate([x, z * h], -1) @ params["n"])
        h = (1 - z) * h + z * n
        return h, h

    def loss(params: Any, x: jax.Array) -> jax.Array:
        h = jnp.zeros((batch, width))
        _, states = jax.lax.scan(lambda h, x: cell(params, h, x), h, x)
        return jnp.mean(states**2)

    params = {name: weights(i, 2 * width, width) for i, name in enumerate("zn")}
    return descend(loss, params, draw(3, length, batch, width))


@kind(
    (4, 30, 8, 6),
    (8, 50, 16, 10),
    (2, 20, 12, 4),
    (4, 40, 24, 8),
    (6, 24, 8, 5),
)
def alignment(batch: int, length: int, width: int, labels: int) -> Made:
    """A recurrent network under CTC, each sample by `vmap`."""
    classes = 12

    def run(params: Any, x: jax.Array) -> jax.Array:
        def cell(h: jax.Array, x: jax.Array) -> tuple[Any, Any]:
            h = jnp.tanh(x @ params["x"] + h @ params["h"])
            return h, h

        _, states = jax.lax.scan(cell, jnp.zeros(width), x)
        return jax.nn.log_softmax(states @ params["out"])

    def align(scores: jax.Array, target: jax.Array) -> jax.Array:
        symbols = jnp.zeros(2 * labels + 1, jnp.int32).at[1::2].set(target)
        skips = (symbols != 0) & (symbols != jnp.roll(symbols, 2))
        start = jnp.full(2 * labels + 1, -1e9).at[0].set(scores[0, 0])
        start = start.at[1].set(scores[0, symbols[1]])

        def advance(a: jax.Array, score: jax.Array) -> tuple[Any, None]:
            one = jnp.roll(a, 1).at[0].set(-1e9)
            two = jnp.roll(a, 2).at[:2].set(-1e9)
            two = jnp.where(skips, two, -1e9)
            a = jax.nn.logsumexp(jnp.stack([a, one, two]), axis=0)
            return a + score[symbols], None

        last, _ = jax.lax.scan(advance, start, scores[1:])
        return -jnp.logaddexp(last[-1], last[-2])

    def loss(params: Any, x: jax.Array, targets: jax.Array) -> jax.Array:
        one = lambda x, target: align(run(params, x), target)  # noqa: E731
        return jax.vmap(one)(x, targets).mean()

    params = {
        "x": weights(0, width, width),
        "h": weights(1, width, width),
        "out": weights(2, width, classes),
    }
    targets = jax.random.randint(jax.random.key(3), (batch, labels), 1, classes)
    return descend(loss, params, draw(4, batch, length, width), targets)


@kind((64, 8), (500, 4), (128, 32), (200, 16), (1000, 3))
def dirichlet(samples: int, classes: int) -> Made:
    """The density of shares under a Dirichlet distribution, with draws."""

    def loss(raw: jax.Array, x: jax.Array, key: jax.Array) -> jax.Array:
        a = jax.nn.softplus(raw) + 0.5
        constant = jsp.special.gammaln(a.sum()) - jsp.special.gammaln(a).sum()
        density = ((a - 1) * jnp.log(x)).sum(-1) + constant
        drawn = jax.random.dirichlet(key, a, (8,))
        return -density.mean() + (drawn**2).sum(-1).mean()

    x = jax.nn.softmax(draw(1, samples, classes))
    return descend(loss, draw(0, classes), x, jax.random.key(2))


@kind((4, 8), (16, 16), (1, 32), (8, 12), (32, 4))
def adaptive(batch: int, width: int) -> Made:
    """An equation that is solved with steps of adapted length."""

    def step(params: Any, x: jax.Array) -> Any:
        def rate(y: jax.Array) -> jax.Array:
            return jnp.tanh(y @ params) - 0.1 * y

        def advance(carry: Any) -> Any:
            t, h, y, count = carry
            h = jnp.minimum(h, 2.0 - t)
            k1 = rate(y)
            k2 = rate(y + h * k1 / 2)
            k3 = rate(y + h * (2 * k2 - k1))
            third = y + h * (k1 + 4 * k2 + k3) / 6
            error = jnp.sqrt(jnp.mean((third - y - h * k2) ** 2)) / 1e-3
            accept = error <= 1
            factor = jnp.clip(0.9 * error ** (-1 / 3), 0.2, 5.0)
            return (
                jnp.where(accept, t + h, t),
                h * factor,
                jnp.where(accept, third, y),
                count + 1,
            )

        start = (jnp.float32(0), jnp.float32(0.05), x, 0)
        last = jax.lax.while_loop(
            lambda c: (c[0] < 2.0 - 1e-6) & (c[3] < 200), advance, start
        )
        return params * 0.999, last[2].mean()

    return step, weights(0, width, width), (draw(1, batch, width),)


@kind((32, 64, 4), (64, 256, 8), (16, 128, 2), (48, 96, 4), (128, 64, 16))
def adapter(batch: int, width: int, rank: int) -> Made:
    """Low-rank adapters of two fixed layers, Adam."""

    def loss(params: Any, fixed: Any, x: jax.Array) -> jax.Array:
        for (a, b), w in zip(params, fixed, strict=True):
            x = jax.nn.gelu(x @ w + (x @ a) @ b)
        return jnp.mean(x**2)

    def step(state: Any, fixed: Any, x: jax.Array) -> Any:
        params, first, second, count = state
        value, grads = jax.value_and_grad(loss)(params, fixed, x)
        tree = jax.tree.map
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = tree(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
        params = tree(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8),
            params,
            first,
            second,
        )
        return (params, first, second, count + 1), value

    params = [
        (weights(i, width, rank), jnp.zeros((rank, width))) for i in range(2)
    ]
    zeros = jax.tree.map(jnp.zeros_like, params)
    fixed = [weights(i, width, width) for i in range(2, 4)]
    state = (params, zeros, zeros, jnp.float32(1))
    return step, state, (fixed, draw(5, batch, width))


@kind(
    (2, 16, 32, 2),
    (4, 32, 32, 4),
    (1, 64, 16, 2),
    (2, 24, 48, 3),
    (8, 10, 16, 2),
)
def attention(batch: int, length: int, width: int, heads: int) -> Made:
    """A block of a transformer."""

    def norm(x: jax.Array) -> jax.Array:
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def loss(params: Any, x: jax.Array) -> jax.Array:
        q, k, v = jnp.split(norm(x) @ params["qkv"], 3, -1)
        q, k, v = (
            y.reshape(batch, length, heads, width // heads) for y in (q, k, v)
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5
        mask = jnp.tril(jnp.ones((length, length), bool))
        shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        y = jnp.einsum("bhqk,bkhd->bqhd", shares, v)
        x = x + y.reshape(batch, length, width) @ params["out"]
        x = x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]
        return jnp.mean(x**2)

    params = {
        "qkv": weights(0, width, 3 * width),
        "out": weights(1, width, width),
        "up": weights(2, width, 4 * width),
        "down": weights(3, 4 * width, width),
    }
    return descend(loss, params, draw(4, batch, length, width))


@kind((4, 12, 8), (8, 16, 4), (2, 28, 8), (4, 20, 6), (16, 8, 12))
def images(batch: int, size: int, channels: int) -> Made:
    """Two convolutions and a mean over each image."""

    def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params: Any, x: jax.Array) -> jax.Array:
        for w in params:
            x = jax.nn.relu(convolve(x, w))
        return jnp.mean((x.mean((1, 2)) - 1) ** 2)

    params = [
        draw(0, 3, 3, 3, channels) / 5,
        draw(1, 3, 3, channels, channels) / (3 * channels**0.5),
    ]
    return descend(loss, params, draw(2, batch, size, size, 3))


@kind((20,), (60,), (120,), (40,), (90,))
def many_parameters(count: int) -> Made:
    """Many small vectors, each scaled and shifted."""

    def loss(params: Any, x: jax.Array) -> jax.Array:
        for scale, shift in params:
            x = jnp.tanh(x * scale + shift)
        return x.sum()

    params = [(jnp.ones(32), jnp.zeros(32)) for _ in range(count // 2)]
    return descend(loss, params, draw(0, 8, 32))
