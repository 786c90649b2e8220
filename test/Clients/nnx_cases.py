"""Layers and transformations of flax nnx, as parameters and the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers
from flax import nnx


def layer(make: Callable[[nnx.Rngs], Any], *shape: int) -> Client:
    return given(make, lambda: normal(1, BATCH, *shape))


def given(make: Callable[[nnx.Rngs], Any], inputs: Callable[[], Any]) -> Client:
    def build() -> Program:
        model = make(nnx.Rngs(0, dropout=1))
        parts: Any = nnx.split(model, nnx.Param, ...)
        graph, params, rest = parts

        def apply(params: Any, rest: Any, x: Any) -> Any:
            model = nnx.merge(graph, params, rest, copy=True)
            y = model(x)
            return y, nnx.state(model, nnx.Not(nnx.Param))

        return client.layer(apply, params, inputs(), extra=rest)

    return Client(build)


class Attention(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.attention = nnx.MultiHeadAttention(
            *(2, 8),
            dropout_rate=0.2,
            normalize_qk=True,
            deterministic=False,
            decode=False,
            rngs=rngs,
        )

    def __call__(self, x: Any) -> Any:
        return self.attention(x, mask=nnx.make_causal_mask(x[..., 0]))


class Decoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.attention = nnx.MultiHeadAttention(2, 8, decode=True, rngs=rngs)
        self.attention.init_cache((BATCH, 5, 8))

    def __call__(self, x: Any) -> Any:
        return self.attention(x)


class Residual(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(6, rngs=rngs)
        self.linear = nnx.Linear(6, 6, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return x + nnx.gelu(self.linear(self.norm(x)))


class Scanned(nnx.Module):
    """Layers in one array, each computed again backward."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=3)
        @nnx.vmap
        def make(rngs: nnx.Rngs) -> Residual:
            return Residual(rngs)

        self.layers = make(rngs)

    def __call__(self, x: Any) -> Any:
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        @nnx.remat
        def one(x: Any, layer: Residual) -> Any:
            return layer(x)

        return one(x, self.layers)


class Ensemble(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=3)
        @nnx.vmap
        def make(rngs: nnx.Rngs) -> Any:
            return nnx.Linear(6, 4, rngs=rngs)

        self.layers = make(rngs)

    def __call__(self, x: Any) -> Any:
        return nnx.vmap(
            lambda layer, x: layer(x), in_axes=(0, None), out_axes=1
        )(self.layers, x)


class Counted(nnx.Module):
    """Variables of its own kind, and metrics."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(6, 8, rngs=rngs)
        self.calls = nnx.Intermediate(jnp.zeros((), jnp.int32))
        self.metrics = nnx.MultiMetric(mean=nnx.metrics.Average("values"))

    def __call__(self, x: Any) -> Any:
        y = nnx.relu(self.linear(x))
        self.calls[...] += 1
        self.metrics.update(values=jax.lax.stop_gradient(y))
        return y


def sequence(*makes: Callable[[nnx.Rngs], Any]) -> Callable[[nnx.Rngs], Any]:
    return lambda rngs: nnx.Sequential(*(make(rngs) for make in makes))


def linear(rngs: nnx.Rngs) -> Any:
    return nnx.Linear(6, 8, rngs=rngs)


def conv(rngs: nnx.Rngs) -> Any:
    return nnx.Conv(3, 4, (3, 3), use_bias=False, rngs=rngs)


def recurrent(cell: Any) -> Callable[[nnx.Rngs], Any]:
    return lambda rngs: nnx.RNN(cell(4, 6, rngs=rngs))


CASES = {
    "linear_general": layer(
        lambda rngs: nnx.LinearGeneral(
            (3, 4), (2, 4), axis=(-2, -1), rngs=rngs
        ),
        3,
        4,
    ),
    "einsum": layer(
        lambda rngs: nnx.Einsum("btd,dhe->bthe", (4, 2, 5), (2, 5), rngs=rngs),
        3,
        4,
    ),
    "conv": layer(
        sequence(
            conv,
            lambda _: nnx.relu,
            lambda rngs: nnx.Conv(
                4, 4, (3, 3), strides=2, feature_group_count=2, rngs=rngs
            ),
        ),
        6,
        6,
        3,
    ),
    "conv_transpose": layer(
        lambda rngs: nnx.ConvTranspose(3, 4, (3, 3), 2, rngs=rngs), 4, 4, 3
    ),
    "lora": layer(lambda rngs: nnx.LoRALinear(6, 8, lora_rank=2, rngs=rngs), 6),
    "embed": given(
        lambda rngs: nnx.Embed(7, 5, rngs=rngs), lambda: numbers(1, 7, BATCH, 3)
    ),
    "lstm": layer(recurrent(nnx.OptimizedLSTMCell), 5, 4),
    "gru": layer(recurrent(nnx.GRUCell), 5, 4),
    "bidirectional": layer(
        lambda rngs: nnx.Bidirectional(
            nnx.RNN(nnx.GRUCell(4, 6, rngs=rngs)),
            nnx.RNN(nnx.GRUCell(4, 6, rngs=rngs)),
        ),
        *(5, 4),
    ),
    "attention": layer(Attention, 5, 8),
    "decode": layer(Decoder, 1, 8),
    "scan_remat": layer(Scanned, 6),
    "vmap": layer(Ensemble, 6),
    "metrics": layer(Counted, 6),
    "layer_norm": layer(
        sequence(linear, lambda r: nnx.LayerNorm(8, rngs=r)), 6
    ),
    "group_norm": layer(
        sequence(conv, lambda r: nnx.GroupNorm(4, 2, rngs=r)), 5, 5, 3
    ),
    "instance_norm": layer(
        sequence(conv, lambda r: nnx.InstanceNorm(4, rngs=r)), 5, 5, 3
    ),
    "dropout": layer(sequence(linear, lambda r: nnx.Dropout(0.3, rngs=r)), 6),
    "spectral_norm": layer(
        lambda rngs: nnx.SpectralNorm(linear(rngs), rngs=rngs), 6
    ),
    "weight_norm": layer(
        lambda rngs: nnx.WeightNorm(linear(rngs), rngs=rngs), 6
    ),
}
