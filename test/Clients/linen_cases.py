"""Layers and lifted transformations of flax linen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import flax.linen as nn
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers


def layer(make: Callable[[], Any], *shape: int, **options: Any) -> Client:
    return given(make, lambda: (normal(1, BATCH, *shape),), **options)


def given(
    make: Callable[[], Any], inputs: Callable[[], Any], **options: Any
) -> Client:
    """A module on its inputs; all but parameters is a part of the state, with a
    key for what the module draws."""

    def build() -> Program:
        module, x = make(), inputs()
        rngs = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
        variables = dict(nn.unbox(module.init(rngs, *x)))
        params = variables.pop("params", {})

        def apply(params: Any, extra: Any, *x: jax.Array) -> Any:
            key, use = jax.random.split(extra["key"])
            y, after = module.apply(
                {"params": params, **extra["variables"]},
                *x,
                mutable=list(variables),
                rngs={"dropout": use},
            )
            return y, {"key": key, "variables": after}

        extra = {"key": jax.random.key(2), "variables": variables}
        return client.layer(apply, params, *x, extra=extra)

    return Client(build, **options)


class Attention(nn.Module):
    """Causal attention with dropout."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(x[..., 0])
        return nn.MultiHeadDotProductAttention(
            2, dropout_rate=0.2, deterministic=False
        )(x, mask=mask)


class Decoder(nn.Module):
    """One token, with those before it in a cache."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        cache = nn.MultiHeadDotProductAttention(2, decode=True)
        if self.is_initializing():
            return cache(jnp.zeros((BATCH, 5, 8)))[:, :1]
        return cache(x)


class Residual(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        return x + nn.Dense(x.shape[-1])(nn.relu(nn.LayerNorm()(x))), None


class Scanned(nn.Module):
    """Layers in one array, each computed again backward."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        many = nn.scan(
            nn.remat(Residual, prevent_cse=False),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=3,
        )
        return many()(x, None)[0]


class Mapped(nn.Module):
    """An ensemble by nn.vmap."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        many = nn.vmap(
            nn.Dense,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=None,
            axis_size=3,
            out_axes=1,
        )
        return many(4)(x)


class Tied(nn.Module):
    """An embedding that is the head, too."""

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        embed = nn.Embed(11, 6)
        return embed.attend(nn.tanh(embed(tokens)))


class Experts(nn.Module):
    """A choice among layers by a condition on the batch's own key."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        gates = nn.softmax(nn.Dense(3)(x))
        parts = [nn.Dense(4, name=f"expert{i}")(x) for i in range(3)]
        return jnp.einsum("be,ebd->bd", gates, jnp.stack(parts))


class Partitioned(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        init = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "m"))
        return nn.Dense(8, kernel_init=init)(x)


class Spectral(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.SpectralNorm(nn.Dense(8))(x, update_stats=True)


def recurrent(cell: Any, **options: Any) -> Callable[[], Any]:
    return lambda: nn.RNN(cell(6), **options)


def sequence(*layers: Any) -> Callable[[], Any]:
    return lambda: nn.Sequential(list(layers))


def tokens() -> Any:
    return (numbers(1, 11, BATCH, 4),)


def lengths() -> Any:
    return normal(1, BATCH, 5, 4), numbers(2, 5, BATCH) + 1


class Lengths(nn.Module):
    """Sequences of unlike lengths, in both directions."""

    @nn.compact
    def __call__(self, x: Any, lengths: Any) -> Any:
        return nn.Bidirectional(nn.RNN(nn.GRUCell(6)), nn.RNN(nn.GRUCell(6)))(
            x, seq_lengths=lengths
        )


CASES = {
    "dense_general": layer(
        lambda: nn.DenseGeneral((2, 4), axis=(-2, -1)), 3, 4
    ),
    "einsum": layer(lambda: nn.Einsum((4, 2, 5), "btd,dhe->bthe"), 3, 4),
    "conv": layer(
        lambda: nn.Conv(4, (3, 3), strides=2, feature_group_count=2), 6, 6, 4
    ),
    "conv_local": layer(lambda: nn.ConvLocal(4, (3,)), 6, 3),
    "conv_transpose": layer(
        lambda: nn.ConvTranspose(4, (3, 3), (2, 2)), 4, 4, 3
    ),
    "lstm": layer(recurrent(nn.OptimizedLSTMCell), 5, 4),
    "gru_reverse": layer(recurrent(nn.GRUCell, reverse=True), 5, 4),
    "mgu": layer(recurrent(nn.MGUCell), 5, 4),
    "conv_lstm": layer(lambda: nn.RNN(nn.ConvLSTMCell(3, (3,))), 4, 5, 2),
    "bidirectional": given(Lengths, lengths),
    "attention": layer(Attention, 5, 8),
    "decode": layer(Decoder, 1, 8),
    "scan_remat": layer(Scanned, 6),
    "vmap": layer(Mapped, 6),
    "embed": given(Tied, tokens),
    "experts": layer(Experts, 6),
    "partitioned": layer(Partitioned, 6),
    "rms_norm": layer(sequence(nn.Dense(8), nn.RMSNorm()), 6),
    "group_norm": layer(sequence(nn.Conv(4, (3,)), nn.GroupNorm(2)), 6, 3),
    # The bias before the norm has no gradient but rounding.
    "instance_norm": layer(
        sequence(nn.Conv(4, (3,)), nn.InstanceNorm()), 6, 3, tolerance=1e-3
    ),
    "weight_norm": layer(lambda: nn.WeightNorm(nn.Dense(8)), 6),
    "spectral_norm": layer(Spectral, 6),
    "prelu": layer(sequence(nn.Dense(8), nn.PReLU()), 6),
    "dropout": layer(
        sequence(nn.Dense(8), nn.Dropout(0.3, deterministic=False)), 6
    ),
    "pool": layer(
        sequence(
            nn.Conv(4, (3, 3)),
            lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"),
            lambda x: nn.avg_pool(x, (2, 2), count_include_pad=False),
        ),
        *(6, 6, 3),
    ),
    "fp8": layer(
        lambda: nn.Dense(8, dot_general_cls=nn.Fp8DotGeneral), 8, tolerance=1e-3
    ),
}
