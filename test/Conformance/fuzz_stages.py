"""Random training steps on random stages.

In: a seed and a size. Out: `Staged`, a function for `jax.jit` and `wh.jit` with
parameters, optimizer state, a random key and a mini-batch, and how it is
spread: scopes or automatic stages, and micro-batches. Its pieces are what users
put around the layers: random augmentation of each sample, permutations and
resized images before them; stacks of layers in Python loops and scans under
policies of recomputation; linear algebra on stacks and on products over the
mini-batch, in penalties and in optimizers; branches and custom derivatives. All
stay smooth and well-conditioned, so that a difference in the last bit stays
one. fuzz.py compares what Whale computes with what XLA does.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

import whale as wh

Array = jax.Array
POLICIES = (
    None,
    jax.checkpoint_policies.dots_saveable,
    jax.checkpoint_policies.nothing_saveable,
    jax.checkpoint_policies.everything_saveable,
    jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    jax.checkpoint_policies.save_only_these_names("kept"),
)
# What a step may ask for that no compiler can honour, or that would be another
# model with micro-batches. Each says at which operation, and what to change.
ALLOWED = (
    r"micro-batches: .* needs operand #\d+ of the whole mini-batch",
    r"micro-batches: \d+ of them are more than",
    r"num_task_graph = \d+: can't cut \d+ forward operations",
    r"num_task_graph = \d+: there is no forward operation with FLOPs",
)


@jax.custom_vjp
def reversed_gradient(x: Array) -> Array:
    return x


reversed_gradient.defvjp(lambda x: (x, x), lambda x, g: (jnp.cos(x) * g,))


@jax.custom_jvp
def soft_step(x: Array) -> Array:
    return jnp.tanh(2 * x)


@soft_step.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return soft_step(x), dx * (1 - jnp.tanh(x) ** 2)


def near_identity(m: Array) -> Array:
    """Symmetric matrices with eigenvalues of at least 1."""
    return m @ jnp.swapaxes(m, -1, -2) + jnp.eye(m.shape[-1], dtype=m.dtype)


def inverse_root(m: Array) -> Array:
    values, vectors = jnp.linalg.eigh(near_identity(m))
    return (vectors * values[..., None, :] ** -0.25) @ jnp.swapaxes(
        vectors, -1, -2
    )


def whitened(m: Array) -> Array:
    factor = jnp.linalg.cholesky(near_identity(m))
    return jax.scipy.linalg.solve_triangular(factor, m, lower=True)


# Matrices to matrices of the same shape, also stacks of them.
OF_SQUARES: tuple[Callable[[Array], Array], ...] = (
    lambda m: jnp.linalg.inv(near_identity(m)),
    lambda m: jnp.linalg.solve(near_identity(m), m),
    lambda m: jnp.linalg.cholesky(near_identity(m)),
    lambda m: jnp.linalg.qr(near_identity(m))[0],
    inverse_root,
    whitened,
    lambda m: m @ jnp.swapaxes(m, -1, -2) @ m,
)
# And to one number for each.
TO_NUMBERS: tuple[Callable[[Array], Array], ...] = (
    lambda m: jnp.linalg.slogdet(near_identity(m))[1],
    lambda m: jnp.linalg.svd(near_identity(m), compute_uv=False).sum(-1),
    lambda m: jnp.linalg.eigvalsh(near_identity(m)).sum(-1),
    lambda m: jnp.linalg.det(near_identity(m)) ** 0.1,
    lambda m: (m**2).sum((-1, -2)),
    lambda m: jnp.trace(m, axis1=-2, axis2=-1),
)


class Staged:
    """A training step `step(params..., state..., key, x, y)`."""

    coarse = False

    def __init__(self, seed: int, size: int):
        self.rng = np.random.default_rng(seed)
        self.batch = int(self.rng.integers(2, 9))
        self.height, self.breadth = self.pick(((2, 2), (2, 3), (3, 2)))
        self.width = self.height * self.breadth
        self.params: list[np.ndarray] = []
        # Of what the layers of a stack read, by the stack's number.
        self.products: dict[int, Array] = {}
        self.state: list[np.ndarray] = []
        self.spread(size)
        self.augmentations = [
            self.pick(self.augmentation_kinds())
            for _ in range(int(self.rng.integers(0, 3)))
        ]
        self.sections = self.make_sections(max(1, size // 4))
        self.head = self.parameter(self.width, 2)
        self.penalties = [
            self.penalty() for _ in range(int(self.rng.integers(0, 3)))
        ]
        self.updates = [self.update(i) for i in range(len(self.params))]
        self.extra = [
            self.pick(self.extra_kinds())
            for _ in range(int(self.rng.integers(0, 3)))
        ]
        self.policy = self.pick(POLICIES)
        self.remat = self.pick(("none", "none", "loss", "sections"))
        x = self.rng.normal(size=(self.batch, self.width)).astype(np.float32)
        y = self.rng.normal(size=(self.batch, 2)).astype(np.float32)
        key = np.asarray(self.rng.integers(0, 2**31, 2)).astype(np.uint32)
        self.arguments = [*self.params, *self.state, key, x, y]
        count = len(self.arguments)
        self.batch_arguments = range(count - 2, count)

    def spread(self, size: int) -> None:
        """How the step is spread over devices."""
        self.form = self.pick(("scopes", "scopes", "auto", "default", "none"))
        most = min(self.batch, 4)
        self.micro_batches = self.pick((1, int(self.rng.integers(1, most + 1))))
        self.stages = int(self.rng.integers(1, 4))
        self.scopes = [
            self.pick((wh.replicate, wh.replicate, wh.split))(
                self.pick((1, 1, 2)), name=f"s{i}"
            )
            for i in range(self.stages)
        ]
        self.outside = self.pick((0.0, 0.0, 0.3))
        self.default = self.pick((wh.replicate, wh.split))()

    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if self.micro_batches > 1:
            config["num_micro_batch"] = self.micro_batches
        if self.form == "auto":
            config["num_task_graph"] = self.stages
        if self.form == "scopes":  # Whatever the number of devices.
            config["cluster.uneven_replicas"] = True
        return config

    def text(self, cluster: Any) -> str:
        """What whale-compile reads: the step with its strategies."""
        wh.init(wh.Config(self.config()))
        if self.form == "default":
            wh.set_default_strategy(self.default)
        step = wh.jit(
            lambda *arguments: self(*arguments),
            cluster=cluster,
            batch_argnums=tuple(self.batch_arguments),
        )
        try:
            return step.lower(*self.arguments).as_text()
        finally:
            wh.init(wh.Config({}))

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def parameter(self, *shape: int) -> int:
        scale = 0.6 / max(1.0, float(shape[-1])) ** 0.5
        value = self.rng.normal(size=shape) * scale
        self.params.append(value.astype(np.float32))
        return len(self.params) - 1

    # ----------------------------------------------------------------------- #
    # Before the layers
    # ----------------------------------------------------------------------- #

    def augmentation_kinds(self):
        return (
            self.scaled, self.masked, self.masked_together, self.shifted,
            self.permuted, self.rolled, self.resized, self.mixed, self.turned,
        )  # fmt: skip

    def scaled(self, key, x):
        return (x - 0.1) * 1.5

    def masked(self, key, x):
        def one(key, row):
            return jnp.where(jax.random.bernoulli(key, 0.8, row.shape), row, 0)

        return jax.vmap(one)(jax.random.split(key, x.shape[0]), x)

    def masked_together(self, key, x):
        return x * jax.random.bernoulli(key, 0.7, x.shape).astype(x.dtype)

    def shifted(self, key, x):
        """A random crop of each image."""

        def one(key, row):
            image = jnp.pad(row.reshape(self.height, self.breadth), 1)
            at = jax.random.randint(key, (2,), 0, 3)
            size = (self.height, self.breadth)
            return lax.dynamic_slice(image, (at[0], at[1]), size).reshape(-1)

        return jax.vmap(one)(jax.random.split(key, x.shape[0]), x)

    def permuted(self, key, x):
        return x[jax.random.permutation(key, x.shape[0])]

    def rolled(self, key, x):
        return jnp.roll(x, 1, axis=0)

    def resized(self, key, x):
        image = x.reshape(-1, self.height, self.breadth)
        shape = (x.shape[0], 2 * self.height, self.breadth + 1)
        large = jax.image.resize(image, shape, "linear")
        return jax.image.resize(large, image.shape, "nearest").reshape(x.shape)

    def mixed(self, key, x):
        share = jax.random.uniform(key, (x.shape[0], 1), x.dtype)
        return share * x + (1 - share) * x[::-1]

    def turned(self, key, x):
        """Some images flipped, by a condition of each."""

        def one(key, row):
            image = row.reshape(self.height, self.breadth)
            flip = jax.random.bernoulli(key)
            return lax.cond(flip, jnp.fliplr, lambda a: a, image).reshape(-1)

        return jax.vmap(one)(jax.random.split(key, x.shape[0]), x)

    # ----------------------------------------------------------------------- #
    # Layers
    # ----------------------------------------------------------------------- #

    def scope(self, at: float):
        """A function that makes the scope of what is at this share of the
        step: its stage, or none."""
        stage = min(int(at * self.stages), self.stages - 1)
        if self.form != "scopes" or self.rng.random() < self.outside:
            return contextlib.nullcontext
        strategy = self.scopes[stage]
        return lambda: type(strategy)(strategy.device_count, strategy.name)

    def make_sections(self, count: int):
        return [
            self.pick((
                self.python_stack, self.scanned, self.two_scans, self.counted,
                self.single,
            ))(i / count, (i + 1) / count)
            for i in range(count)
        ]  # fmt: skip

    def layer(self):
        """A function of a weight, a key, a mask and activations."""
        kind = self.pick((
            "dense", "residual", "dropout", "masked", "cond", "custom",
            "checkpointed", "normalized",
        ))  # fmt: skip

        def run(w, key, mask, h):
            z = h @ w
            if kind == "dense":
                return jnp.tanh(z)
            if kind == "dropout":
                # A key, or one and a number.
                if isinstance(key, tuple):
                    key = jax.random.fold_in(*key)
                keep = jax.random.bernoulli(key, 0.9, z.shape)
                return h + jnp.where(keep, jnp.tanh(z), 0)
            if kind == "masked":
                return h + jnp.where(mask > 0.5, jnp.tanh(z), 0)
            if kind == "cond":
                return lax.cond(
                    w[0, 0] > 0, jnp.tanh, lambda z: 0.5 * jnp.sin(z), z
                )
            if kind == "custom":
                return soft_step(reversed_gradient(z))
            if kind == "checkpointed":
                kept = checkpoint_name(jnp.tanh(z), "kept")
                return 0.5 * h + kept * jax.nn.sigmoid(z)
            if kind == "normalized":
                spread = (z**2).mean(-1, keepdims=True)
                return h + z * lax.rsqrt(spread + 0.5)
            return h + 0.5 * jax.nn.gelu(z)

        if self.rng.random() < 0.25:
            return jax.checkpoint(run, policy=self.pick(POLICIES))
        return run

    def stack(self):
        count = int(self.rng.integers(2, 6))
        return count, self.parameter(count, self.width, self.width)

    def masks(self, count: int):
        """A constant stack, equal everywhere or not."""
        shape = (count, self.batch, self.width)
        if self.rng.random() < 0.5:
            return lambda: jnp.ones(shape, np.float32)
        # Of no sample, as micro-batches would cut nothing else.
        row = self.rng.integers(0, 2, (count, 1, self.width))
        return lambda: jnp.broadcast_to(
            jnp.asarray(row.astype(np.float32)), shape
        )

    def python_stack(self, begin, end):
        count, stack = self.stack()
        layers = [self.layer() for _ in range(count)]
        masks = self.masks(count)
        scopes = [
            self.scope(begin + (end - begin) * i / count) for i in range(count)
        ]

        def run(p, key, h):
            inputs = []
            for i, (layer, scope) in enumerate(zip(layers, scopes)):
                with scope():
                    inputs.append(h)
                    h = layer(p[stack][i], (key, i), masks()[i], h)
            if self.remat == "none":  # Else they are in another trace.
                self.products[stack] = jnp.stack(
                    [a.T @ a / self.batch for a in inputs]
                )
            return h

        return run

    def scanned(self, begin, end):
        count, stack = self.stack()
        layer, scope = self.layer(), self.scope(begin)
        masks, unroll = self.masks(count), self.pick((1, 1, 2, count))
        reverse = self.pick((False, False, True))

        def run(p, key, h):
            def turn(h, given):
                h = layer(*given, h)
                return h, h.mean(-1)

            with scope():
                given = (p[stack], jax.random.split(key, count), masks())
                h, means = lax.scan(
                    turn, h, given, unroll=unroll, reverse=reverse
                )
                return h + 0.1 * means.mean(0)[:, None]

        return run

    def two_scans(self, begin, end):
        count, stack = self.stack()
        first = int(self.rng.integers(1, count))
        layers = self.layer(), self.layer()
        if self.rng.random() < 0.5:
            layers = layers[:1] * 2
        scopes = self.scope(begin), self.scope((begin + end) / 2)
        masks, unrolls = self.masks(count), (self.pick((1, 2)), 2)

        def run(p, key, h):
            keys = jax.random.split(key, count)
            mask = masks()
            for part, layer, scope, unroll in zip(
                (slice(first), slice(first, count)), layers, scopes, unrolls
            ):
                with scope():
                    h, _ = lax.scan(
                        lambda h, given, layer=layer: (layer(*given, h), None),
                        h,
                        (p[stack][part], keys[part], mask[part]),
                        unroll=unroll,
                    )
            return h

        return run

    def counted(self, begin, end):
        """A loop that counts, with a cache of what its turns gave."""
        count, stack = self.stack()
        layer, scope = self.layer(), self.scope(begin)
        masks = self.masks(count)

        def run(p, key, h):
            def turn(i, carry):
                h, cache = carry
                h = layer(p[stack][i], (key, i), mask[i], h)
                return h, lax.dynamic_update_index_in_dim(cache, h, i, 0)

            with scope():
                mask = masks()
                cache = jnp.zeros((count, *h.shape), h.dtype)
                h, cache = lax.fori_loop(0, count, turn, (h, cache))
                return 0.5 * h + 0.5 * cache.mean(0)

        return run

    def single(self, begin, end):
        weight = self.parameter(self.width, self.width)
        layer, scope = self.layer(), self.scope(begin)
        masks = self.masks(1)

        def run(p, key, h):
            with scope():
                return layer(p[weight], key, masks()[0], h)

        return run

    # ----------------------------------------------------------------------- #
    # Around the layers
    # ----------------------------------------------------------------------- #

    def squares(self) -> list[int]:
        return [
            i for i, value in enumerate(self.params)
            if value.ndim >= 2 and value.shape[-1] == value.shape[-2]
        ]  # fmt: skip

    def penalty(self):
        """A number of the parameters and of the last activations."""
        number, matrices = self.pick(TO_NUMBERS), self.pick(OF_SQUARES)
        options = self.squares()
        kind = self.pick(("stack", "stack", "samples", "product"))
        if kind == "product" and self.micro_batches > 1:
            kind = self.pick(("samples", "samples", "product"))
        if not options and kind == "stack":
            kind = "samples"
        which = self.pick(options) if options else 0
        # Samples don't come back to a stage.
        scope = self.scope(self.pick((0.0, 0.99)) if kind == "stack" else 0.99)

        def run(p, h):
            with scope():
                if kind == "stack":
                    return 0.01 * number(matrices(p[which])).mean()
                if kind == "samples":
                    each = jax.vmap(lambda row: number(jnp.outer(row, row)))
                    return 0.01 * each(h).mean()
                return 0.01 * number(h.T @ h / self.batch)

        return run

    def update(self, index: int):
        """The next value of a parameter, and of its state."""
        kinds = ["sgd", "sgd", "momentum", "clipped"]
        if index in self.squares():
            kinds += ["shampoo", "kfac", "kfac", "orthogonal", "guarded"]
        kind, matrices = self.pick(kinds), self.pick(OF_SQUARES)
        shape = self.params[index].shape
        at = None
        if kind in ("momentum", "shampoo"):
            at = len(self.state)
            self.state.append(np.zeros(shape, np.float32))

        def run(p, g, state, norm, products):
            if kind == "kfac" and index in products:
                factor = near_identity(products[index])
                return p - 0.1 * jnp.linalg.solve(factor, g), at, None
            if kind == "momentum":
                m = 0.9 * state[at] + g
                return p - 0.1 * m, at, m
            if kind == "clipped":
                return p - 0.1 * g / (1 + norm), at, None
            if kind == "shampoo":
                s = 0.9 * state[at] + g @ jnp.swapaxes(g, -1, -2)
                return p - 0.1 * inverse_root(s) @ g, at, s
            if kind == "orthogonal":
                return p - 0.1 * matrices(g), at, None
            if kind == "guarded":
                p = lax.cond(
                    jnp.isfinite(norm), lambda p, g: p - 0.1 * g,
                    lambda p, g: p, p, g,
                )  # fmt: skip
            else:
                p = p - 0.1 * g
            return p, at, None

        return run

    def extra_kinds(self):
        return (
            self.sums, self.norms, self.statistics, self.spectrum, self.second,
        )  # fmt: skip

    # Results beside the training state, of which some follow the samples.

    def sums(self, p, g, z, h):
        return z.sum(1)

    def norms(self, p, g, z, h):
        return sum((value**2).sum() for value in g)

    def statistics(self, p, g, z, h):
        """As K-FAC's: a product over the mini-batch, and its inverse."""
        return jnp.linalg.inv(near_identity(h.T @ h / self.batch))

    def spectrum(self, p, g, z, h):
        return [TO_NUMBERS[1](p[i]) for i in self.squares()]

    def second(self, p, g, z, h):
        return (h * z).mean(1)

    def forward(self, p, key, z):
        h = z
        for number, section in enumerate(self.sections):
            one = jax.random.fold_in(key, number)
            if self.remat == "sections":
                section = jax.checkpoint(section, policy=self.policy)
            h = section(p, one, h)
        return h

    def augmented(self, key, x):
        for number, augmentation in enumerate(self.augmentations):
            x = augmentation(jax.random.fold_in(key, 100 + number), x)
        return x

    def __call__(self, *arguments):
        state = self.rng.bit_generator.state
        try:
            return self.run(arguments)
        finally:
            self.rng.bit_generator.state = state

    def run(self, arguments):
        split = len(self.params)
        p, state = arguments[:split], list(arguments[split:-3])
        key, x, y = arguments[-3:]
        z = self.augmented(key, x)

        def loss(p):
            self.products = {}
            h = self.forward(p, key, z)
            with self.last():
                value = ((h @ p[self.head] - y) ** 2).mean()
            value += sum(f(p, h) for f in self.penalties)
            return value, (h, self.products)

        if self.remat == "loss":
            loss = jax.checkpoint(loss, policy=self.policy)
        gradient = jax.value_and_grad(loss, has_aux=True)
        (value, (h, products)), g = gradient(p)
        norm = jnp.sqrt(sum((one**2).sum() for one in g))
        results = []
        for f, one, slope in zip(self.updates, p, g):
            new, at, kept = f(one, slope, state, norm, products)
            results.append(new)
            if kept is not None:
                state[at] = kept
        more = [f(p, g, z, h) for f in self.extra]
        return (*results, *state, value, *jax.tree.leaves(more))

    @functools.cached_property
    def last(self):
        return self.scope(0.99)
