"""Layers and transformations of equinox, each before a linear head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import equinox as eqx
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers

KEY = jax.random.key(0)


def layer(make: Callable[[], Any], *shape: int) -> Client:
    """A module, mapped over the batch."""

    def build() -> Program:
        params, static = eqx.partition(make(), eqx.is_inexact_array)

        def apply(params: Any, x: jax.Array) -> Any:
            return jax.vmap(eqx.combine(params, static))(x)

        return client.layer(apply, params, normal(1, BATCH, *shape))

    return Client(build)


def keyed(make: Callable[[], Any], *shape: int) -> Client:
    """A module that draws numbers: the key is a part of the state."""

    def build() -> Program:
        params, static = eqx.partition(make(), eqx.is_inexact_array)

        def apply(params: Any, key: jax.Array, x: jax.Array) -> Any:
            model = eqx.combine(params, static)
            key, use = jax.random.split(key)
            keys = jax.random.split(use, BATCH)
            return jax.vmap(lambda x, key: model(x, key=key))(x, keys), key

        return client.layer(
            apply, params, normal(1, BATCH, *shape), extra=jax.random.key(7)
        )

    return Client(build)


def stateful(make: Callable[[], Any], *shape: int) -> Client:
    """A module with a state, which the batch shares."""

    def build() -> Program:
        model, state = eqx.nn.make_with_state(make)()
        params, static = eqx.partition(model, eqx.is_inexact_array)

        def apply(params: Any, state: Any, x: jax.Array) -> Any:
            model = eqx.combine(params, static)
            return jax.vmap(
                model, in_axes=(0, None), out_axes=(0, None), axis_name="batch"
            )(x, state)

        return client.layer(
            apply, params, normal(1, BATCH, *shape), extra=state
        )

    return Client(build)


def indexed(make: Callable[[], Any], bound: int) -> Client:
    def build() -> Program:
        params, static = eqx.partition(make(), eqx.is_inexact_array)

        def apply(params: Any, x: jax.Array) -> Any:
            return jax.vmap(jax.vmap(eqx.combine(params, static)))(x)

        return client.layer(apply, params, numbers(1, bound, BATCH, 3))

    return Client(build)


class Recurrent(eqx.Module):
    """A cell in a scan over time."""

    cell: Any

    def __call__(self, x: jax.Array) -> Any:
        size = self.cell.hidden_size
        is_lstm = isinstance(self.cell, eqx.nn.LSTMCell)
        zero = (jnp.zeros(size),) * 2 if is_lstm else jnp.zeros(size)

        def one(carry: Any, x: jax.Array) -> Any:
            carry = self.cell(x, carry)
            return carry, jax.tree.leaves(carry)[0]

        return jax.lax.scan(one, zero, x)[1]


class Stack(eqx.Module):
    """Layers of one kind in one array, scanned, and computed again backward."""

    layers: Any

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.layers = eqx.filter_vmap(lambda k: eqx.nn.Linear(6, 6, key=k))(
            keys
        )

    def __call__(self, x: jax.Array) -> Any:
        arrays, static = eqx.partition(self.layers, eqx.is_array)

        @jax.checkpoint
        def one(x: jax.Array, arrays: Any) -> Any:
            return jnp.tanh(eqx.combine(arrays, static)(x)), None

        return jax.lax.scan(one, x, arrays)[0]


class Ensemble(eqx.Module):
    """Nets of their own for one input."""

    nets: Any

    def __init__(self, key: jax.Array) -> None:
        def make(key: jax.Array) -> Any:
            return eqx.nn.Linear(6, 4, key=key)

        self.nets = eqx.filter_vmap(make)(jax.random.split(key, 3))

    def __call__(self, x: jax.Array) -> Any:
        return eqx.filter_vmap(lambda net, x: net(x), in_axes=(0, None))(
            self.nets, x
        )


class Block(eqx.Module):
    """A layer of a transformer, its mask and positions."""

    norm: Any
    attention: Any
    rope: Any
    mlp: Any

    def __init__(self, key: jax.Array) -> None:
        a, b = jax.random.split(key)
        self.norm = eqx.nn.RMSNorm(8)
        self.attention = eqx.nn.MultiheadAttention(2, 8, key=a)
        self.rope = eqx.nn.RotaryPositionalEmbedding(4)
        self.mlp = eqx.nn.MLP(8, 8, 16, 1, jax.nn.gelu, key=b)

    def __call__(self, x: jax.Array) -> Any:
        h = jax.vmap(self.norm)(x)

        def turn(q: Any, k: Any, v: Any) -> Any:
            rotate = jax.vmap(self.rope, 1, 1)
            return rotate(q), rotate(k), v

        mask = jnp.tril(jnp.ones((len(x), len(x)), bool))
        x = x + self.attention(h, h, h, mask, process_heads=turn)
        return x + jax.vmap(self.mlp)(x)


@eqx.filter_custom_vjp
def clipped(x: jax.Array) -> Any:
    return x


@clipped.def_fwd
def clipped_forward(perturbed: Any, x: jax.Array) -> Any:
    return x, None


@clipped.def_bwd
def clipped_backward(residuals: Any, grad: Any, perturbed: Any, x: Any) -> Any:
    return jnp.clip(grad, -0.01, 0.01)


def normalized(x: jax.Array) -> Any:
    return eqx.nn.LayerNorm(6)(clipped(x))


def spectral() -> Any:
    linear = eqx.nn.Linear(6, 8, key=KEY)
    return eqx.nn.SpectralNorm(linear, "weight", key=KEY)


def conv(kind: Any, **options: Any) -> Callable[[], Any]:
    return lambda: kind(3, 4, 3, key=KEY, **options)


def sequence(*layers: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: eqx.nn.Sequential([make() for make in layers])


def linear() -> Any:
    return eqx.nn.Linear(6, 8, key=KEY)


CASES = {
    "mlp": layer(lambda: eqx.nn.MLP(6, 8, 8, 2, key=KEY), 6),
    "conv1d": layer(conv(eqx.nn.Conv1d, dilation=2), 3, 9),
    "conv2d": layer(conv(eqx.nn.Conv2d, stride=2, padding="SAME"), 3, 6, 6),
    "conv_circular": layer(
        conv(eqx.nn.Conv2d, padding=1, padding_mode="CIRCULAR"), 3, 5, 5
    ),
    "conv3d": layer(conv(eqx.nn.Conv3d), 3, 4, 4, 4),
    "conv_groups": layer(
        lambda: eqx.nn.Conv2d(4, 8, 3, groups=2, key=KEY), 4, 5, 5
    ),
    "conv_transpose": layer(
        conv(eqx.nn.ConvTranspose2d, stride=2, output_padding=1), 3, 4, 4
    ),
    "max_pool": layer(
        sequence(
            conv(eqx.nn.Conv2d), lambda: eqx.nn.MaxPool2d(2, 2, use_ceil=True)
        ),
        *(3, 7, 7),
    ),
    "average_pool": layer(
        sequence(conv(eqx.nn.Conv2d), lambda: eqx.nn.AvgPool2d(3, 2, 1)),
        3,
        7,
        7,
    ),
    "adaptive_pool": layer(
        sequence(conv(eqx.nn.Conv2d), lambda: eqx.nn.AdaptiveAvgPool2d(3)),
        3,
        7,
        7,
    ),
    "gru": layer(lambda: Recurrent(eqx.nn.GRUCell(4, 6, key=KEY)), 5, 4),
    "lstm": layer(lambda: Recurrent(eqx.nn.LSTMCell(4, 6, key=KEY)), 5, 4),
    "attention": layer(lambda: Block(KEY), 5, 8),
    "stack": layer(lambda: Stack(KEY), 6),
    "ensemble": layer(lambda: Ensemble(KEY), 6),
    "layer_norm": layer(sequence(linear, lambda: eqx.nn.LayerNorm(8)), 6),
    "prelu": layer(lambda: eqx.nn.PReLU(0.2), 6),
    "group_norm": layer(
        sequence(conv(eqx.nn.Conv2d), lambda: eqx.nn.GroupNorm(2, 4)), 3, 5, 5
    ),
    "custom_vjp": layer(
        sequence(linear, lambda: eqx.nn.Lambda(lambda x: normalized(x[:6]))), 6
    ),
    "embedding": indexed(lambda: eqx.nn.Embedding(7, 5, key=KEY), 7),
    "dropout": keyed(sequence(linear, lambda: eqx.nn.Dropout(0.4)), 6),
    "spectral_norm": stateful(spectral, 6),
    "weight_norm": layer(
        lambda: eqx.nn.WeightNorm(eqx.nn.Linear(6, 8, key=KEY), "weight"), 6
    ),
}
