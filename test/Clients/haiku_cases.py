"""Modules and control flow of haiku."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import haiku as hk
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers


def net(function: Callable[[Any], Any], *shape: int, **options: Any) -> Client:
    return given(function, lambda: normal(1, BATCH, *shape), **options)


def given(
    function: Callable[[Any], Any], inputs: Callable[[], Any], **options: Any
) -> Client:
    """A function of haiku; its state and key are the step's."""

    def build() -> Program:
        x = inputs()
        transformed = hk.transform_with_state(function)
        params, state = transformed.init(jax.random.key(0), x)

        def apply(params: Any, extra: Any, x: Any) -> Any:
            key, use = jax.random.split(extra[1])
            y, state = transformed.apply(params, extra[0], use, x)
            return y, (state, key)

        return client.layer(apply, params, x, extra=(state, jax.random.key(2)))

    return Client(build, **options)


def unrolled(make: Callable[[], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        core = make()
        return hk.dynamic_unroll(
            core, x, core.initial_state(BATCH), time_major=False
        )[0]

    return function


def deep(x: Any) -> Any:
    core = hk.DeepRNN([hk.LSTM(5), jax.nn.relu, hk.GRU(4)])
    return hk.dynamic_unroll(
        core, x, core.initial_state(BATCH), time_major=False
    )[0]


def reset(x: Any) -> Any:
    core = hk.ResetCore(hk.LSTM(5))
    resets = x[..., 0] > 1
    return hk.dynamic_unroll(
        core, (x, resets), core.initial_state(BATCH), time_major=False
    )[0]


def attention(x: Any) -> Any:
    mask = jnp.tril(jnp.ones((1, 1, x.shape[1], x.shape[1])))
    h = hk.LayerNorm(-1, True, True)(x)
    h = hk.MultiHeadAttention(2, 4, w_init_scale=1.0, model_size=8)(
        h, h, h, mask
    )
    return x + hk.dropout(hk.next_rng_key(), 0.2, h)


def stacked(x: Any) -> Any:
    @hk.experimental.layer_stack(3)
    def one(x: Any) -> Any:
        return x + jnp.tanh(hk.Linear(6)(x))

    return one(x)


def scanned(x: Any) -> Any:
    layer = hk.Linear(6)
    last, sums = hk.scan(
        lambda h, _: (jnp.tanh(layer(h)), h.sum(-1)), x, None, length=3
    )
    return last, sums.T


def repeated(x: Any) -> Any:
    layer = hk.Linear(6)
    layer(x)
    return hk.fori_loop(0, 3, lambda _, h: h + 0.1 * layer(h), x)


def remat(x: Any) -> Any:
    return hk.remat(
        lambda x: jnp.tanh(hk.Linear(6)(jnp.tanh(hk.Linear(8)(x))))
    )(x)


def branches(x: Any) -> Any:
    """A branch that a key of the step chooses."""
    layers = [hk.Linear(4, name=f"choice{i}") for i in range(3)]
    if hk.running_init():
        return sum(layer(x) for layer in layers)
    chosen = jax.random.randint(hk.next_rng_key(), (), 0, 3)
    return hk.switch(chosen, [lambda x, f=f: f(x) for f in layers], x)


def averaged(x: Any) -> Any:
    h = hk.Linear(6)(x)
    average = hk.ExponentialMovingAverage(0.9)(jax.lax.stop_gradient(h).mean(0))
    return h - average


def quantized(x: Any) -> Any:
    h = hk.Linear(4)(x)
    result = hk.nets.VectorQuantizer(4, 6, 0.25)(h, is_training=True)
    return result["quantize"], result["loss"] * jnp.ones((BATCH, 1))


def pooled(x: Any) -> Any:
    x = hk.Conv2D(4, 3, stride=2, rate=1)(x)
    x = hk.max_pool(x, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
    return hk.avg_pool(x, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def embedded(tokens: Any) -> Any:
    words = hk.Embed(7, 5)(tokens)
    return words + hk.get_parameter(
        "places", (1, 3, 5), init=hk.initializers.RandomNormal()
    )


def mixed(x: Any) -> Any:
    """In half precision, by a policy of its own."""
    return hk.Linear(8)(x.astype(jnp.bfloat16)).astype(jnp.float32)


# What they keep is a mean over the mini-batch.
REFUSED = {"stages": client.JOINS_SAMPLES}

CASES = {
    "mlp": net(
        lambda x: hk.nets.MLP([8, 6])(
            x, dropout_rate=0.2, rng=hk.next_rng_key()
        ),
        6,
    ),
    "bilinear": net(
        lambda x: jnp.tanh(hk.Linear(8)(x)) * hk.Bias()(x[:, :1]), 6
    ),
    "conv": net(
        lambda x: hk.Conv2D(4, 3, rate=2, feature_group_count=1)(x), 6, 6, 3
    ),
    "depthwise": net(lambda x: hk.SeparableDepthwiseConv2D(2, 3)(x), 5, 5, 3),
    "conv_transpose": net(lambda x: hk.Conv2DTranspose(4, 3, 2)(x), 4, 4, 3),
    "pool": net(pooled, 8, 8, 3),
    "lstm": net(unrolled(lambda: hk.LSTM(6)), 5, 4),
    "gru": net(unrolled(lambda: hk.GRU(6)), 5, 4),
    "vanilla": net(unrolled(lambda: hk.VanillaRNN(6)), 5, 4),
    "conv_lstm": net(unrolled(lambda: hk.Conv1DLSTM((5,), 3, 3)), 4, 5, 2),
    "deep": net(deep, 5, 4),
    "reset": net(reset, 5, 4),
    "attention": net(attention, 5, 8),
    "layer_stack": net(stacked, 6),
    "scan": net(scanned, 6),
    "fori_loop": net(repeated, 6),
    "remat": net(remat, 6),
    "switch": net(branches, 6),
    "embed": given(embedded, lambda: numbers(1, 7, BATCH, 3)),
    "group_norm": net(lambda x: hk.GroupNorm(2)(hk.Conv2D(4, 3)(x)), 5, 5, 3),
    "instance_norm": net(
        lambda x: hk.InstanceNorm(True, True)(
            hk.Conv2D(4, 3, with_bias=False)(x)
        ),
        5,
        5,
        3,
    ),
    "rms_norm": net(lambda x: hk.RMSNorm(-1)(hk.Linear(8)(x)), 6),
    "spectral_norm": net(
        lambda x: (
            x
            @ hk.SpectralNorm()(
                hk.get_parameter(
                    "w", (6, 8), init=hk.initializers.RandomNormal()
                )
            )
        ),
        6,
    ),
    "moving_average": net(averaged, 6),
    "quantized": net(quantized, 6, refused=REFUSED),
    "half": net(mixed, 6, tolerance=2e-2),
}
