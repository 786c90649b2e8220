"""Layers, optimizers and losses of keras, on its backend of JAX."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import client  # noqa: E402
import jax  # noqa: E402
import keras  # noqa: E402
from client import BATCH, Client, Program, normal, numbers, part  # noqa: E402
from keras import layers, losses, optimizers  # noqa: E402


def values(variables: Any) -> list[Any]:
    return [variable.value for variable in variables]


def layer(make: Callable[[], Any], *shape: int) -> Client:
    return given(make, lambda: normal(1, BATCH, *shape))


def given(make: Callable[[], Any], inputs: Callable[[], Any]) -> Client:
    """A layer in training; what it keeps and draws is a part of the state."""

    def build() -> Program:
        keras.utils.set_random_seed(0)
        model, x = make(), inputs()
        model(x)

        def apply(params: Any, fixed: Any, x: Any) -> Any:
            return model.stateless_call(
                params, fixed, x, **({"training": True} if trains else {})
            )

        trains = model._call_has_training_arg
        return client.layer(
            apply,
            values(model.trainable_variables),
            x,
            extra=values(model.non_trainable_variables),
        )

    return Client(build)


def net(
    optimizer: Callable[[], Any],
    loss: Any = losses.MeanSquaredError,
    target: Callable[[], Any] = lambda: normal(2, BATCH, 4),
    last: str | None = None,
) -> Client:
    """A net of two layers under an optimizer of keras."""

    def build() -> Program:
        keras.utils.set_random_seed(0)
        body = layers.Dense(8, "tanh")
        head = layers.Dense(4, last)
        body.build((None, 6))
        head.build((None, 8))
        criterion, rule = loss(), optimizer()
        variables = body.trainable_variables + head.trainable_variables
        rule.build(variables)

        def step(params: Any, state: Any, x: Any, y: Any) -> Any:
            def value(params: Any) -> Any:
                with part("body"):
                    h, _ = body.stateless_call(params[:2], [], x)
                with part("head"):
                    h, _ = head.stateless_call(params[2:], [], h)
                    return criterion(y, h)

            result, grads = jax.value_and_grad(value)(params)
            params, state = rule.stateless_apply(state, grads, params)
            return params, state, result

        state = values(variables), values(rule.variables)
        return Program(step, state, (normal(1, BATCH, 6), target()))

    return Client(build)


def of_loss(
    loss: Any, target: Callable[[], Any], last: str | None = None
) -> Client:
    return net(lambda: optimizers.SGD(0.1), loss, target, last)


def sequence(*makes: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential([make() for make in makes])


def after_dense(make: Callable[[], Any]) -> Client:
    return layer(sequence(lambda: layers.Dense(8), make), 6)


def after_conv(make: Callable[[], Any]) -> Client:
    return layer(
        sequence(lambda: layers.Conv2D(4, 3, padding="same"), make),
        *(6, 6, 3),
    )


class Attention(keras.Model):
    """Attention to itself, with a mask."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def call(self, x: Any, training: bool = False) -> Any:
        return self.attention(x, x, use_causal_mask=True, training=training)


class Additive(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.query = layers.Dense(4)
        self.attention = layers.AdditiveAttention()

    def call(self, x: Any) -> Any:
        return self.attention([self.query(x), x[..., :4]])


def functional() -> Any:
    """Layers that join and part."""
    x = keras.Input((6,))
    a = layers.Dense(5, "gelu")(x)
    b = layers.Dense(5, "silu")(x)
    y = layers.Concatenate()([layers.Add()([a, b]), layers.Multiply()([a, b])])
    y = layers.Concatenate()([y, layers.Maximum()([a, b])])
    return keras.Model(x, [y, layers.Dot(1)([a, b])])


def one_hot() -> Any:
    return jax.nn.one_hot(numbers(2, 4, BATCH), 4)


def words() -> Any:
    return numbers(1, 7, BATCH, 4)


RATES: dict[str, Callable[[], Any]] = {
    "adadelta": lambda: optimizers.Adadelta(1.0),
    "adafactor": lambda: optimizers.Adafactor(1e-2),
    "adagrad": lambda: optimizers.Adagrad(1e-2),
    "adam": lambda: optimizers.Adam(1e-2, amsgrad=True, clipnorm=0.1),
    "adamax": lambda: optimizers.Adamax(1e-2),
    "adamw": lambda: optimizers.AdamW(
        optimizers.schedules.CosineDecay(
            1e-2, 9, warmup_target=0.1, warmup_steps=2
        ),
        global_clipnorm=0.1,
    ),
    "ema": lambda: optimizers.SGD(
        0.1,
        momentum=0.9,
        nesterov=True,
        use_ema=True,
        ema_overwrite_frequency=2,
    ),
    "ftrl": lambda: optimizers.Ftrl(1e-2, l1_regularization_strength=0.01),
    "lamb": lambda: optimizers.Lamb(1e-2),
    "lion": lambda: optimizers.Lion(1e-3),
    "muon": lambda: optimizers.Muon(1e-2),
    "nadam": lambda: optimizers.Nadam(1e-2),
    "rmsprop": lambda: optimizers.RMSprop(1e-2, centered=True),
    "accumulated": lambda: optimizers.Adam(1e-2, gradient_accumulation_steps=2),
    "scaled": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(1e-2)),
}

CASES = {
    "dense_lora": layer(lambda: layers.Dense(8, "relu", lora_rank=2), 6),
    "einsum_dense": layer(
        lambda: layers.EinsumDense("btd,dhe->bthe", (3, 2, 5), bias_axes="he"),
        3,
        4,
    ),
    "conv1d_causal": layer(
        lambda: layers.Conv1D(4, 3, padding="causal", dilation_rate=2), 8, 3
    ),
    "conv2d": layer(lambda: layers.Conv2D(4, 3, 2, "same", groups=2), 6, 6, 4),
    "conv3d": layer(lambda: layers.Conv3D(4, 2), 3, 4, 4, 2),
    "separable": layer(lambda: layers.SeparableConv2D(4, 3), 5, 5, 3),
    "depthwise": layer(
        lambda: layers.DepthwiseConv2D(3, depth_multiplier=2), 5, 5, 3
    ),
    "conv_transpose": layer(
        lambda: layers.Conv2DTranspose(4, 3, 2, "same"), 4, 4, 3
    ),
    "lstm": layer(
        lambda: layers.LSTM(6, dropout=0.2, recurrent_dropout=0.2), 5, 4
    ),
    "gru": layer(lambda: layers.GRU(6, return_sequences=True), 5, 4),
    "rnn": layer(lambda: layers.SimpleRNN(6, go_backwards=True), 5, 4),
    "bidirectional": layer(lambda: layers.Bidirectional(layers.LSTM(5)), 5, 4),
    "conv_lstm": layer(lambda: layers.ConvLSTM1D(3, 3), 4, 5, 2),
    "stacked_cells": layer(
        lambda: layers.RNN(
            layers.StackedRNNCells([layers.LSTMCell(5), layers.GRUCell(4)])
        ),
        *(5, 4),
    ),
    "time_distributed": layer(
        lambda: layers.TimeDistributed(layers.Dense(5)), 4, 3
    ),
    "attention": layer(
        lambda: Attention(layers.MultiHeadAttention(2, 4, dropout=0.1)), 5, 8
    ),
    "grouped_attention": layer(
        lambda: Attention(layers.GroupQueryAttention(4, 4, 2)), 5, 8
    ),
    "additive_attention": layer(Additive, 5, 4),
    "embedding_masked": given(
        sequence(
            lambda: layers.Embedding(7, 5, mask_zero=True),
            lambda: layers.LSTM(4),
        ),
        words,
    ),
    "layer_norm": after_dense(lambda: layers.LayerNormalization()),
    "rms_norm": after_dense(lambda: layers.RMSNormalization()),
    "unit_norm": after_dense(lambda: layers.UnitNormalization()),
    "group_norm": after_conv(lambda: layers.GroupNormalization(2)),
    "spectral_norm": layer(
        lambda: layers.SpectralNormalization(layers.Dense(8)), 6
    ),
    "dropout": after_dense(lambda: layers.Dropout(0.3)),
    "alpha_dropout": after_dense(lambda: layers.AlphaDropout(0.3)),
    "spatial_dropout": after_conv(lambda: layers.SpatialDropout2D(0.3)),
    "noise": after_dense(lambda: layers.GaussianNoise(0.1)),
    "prelu": after_dense(lambda: layers.PReLU()),
    "max_pool": after_conv(lambda: layers.MaxPooling2D(3, 2, "same")),
    "average_pool": after_conv(
        lambda: layers.AveragePooling2D(2, padding="same")
    ),
    "global_pool": after_conv(lambda: layers.GlobalAveragePooling2D()),
    "adaptive_pool": after_conv(lambda: layers.AdaptiveAveragePooling2D(4)),
    "up_sampling": after_conv(
        lambda: layers.UpSampling2D(2, interpolation="bilinear")
    ),
    "resizing": after_conv(lambda: layers.Resizing(4, 9)),
    "cropped": after_conv(
        sequence(
            lambda: layers.Cropping2D(1),
            lambda: layers.ZeroPadding2D(((0, 2), (1, 0))),
            lambda: layers.Permute((3, 1, 2)),
        )
    ),
    "functional": layer(functional, 6),
    **{f"optimizer_{name}": net(make) for name, make in RATES.items()},
    "loss_sparse": of_loss(
        lambda: losses.SparseCategoricalCrossentropy(from_logits=True),
        lambda: numbers(2, 4, BATCH),
    ),
    "loss_crossentropy": of_loss(
        lambda: losses.CategoricalCrossentropy(label_smoothing=0.1),
        *(one_hot, "softmax"),
    ),
    "loss_focal": of_loss(
        losses.CategoricalFocalCrossentropy, one_hot, "softmax"
    ),
    "loss_dice": of_loss(losses.Dice, one_hot, "sigmoid"),
    "loss_tversky": of_loss(losses.Tversky, one_hot, "sigmoid"),
    "loss_hinge": of_loss(losses.CategoricalHinge, one_hot),
    "loss_huber": of_loss(losses.Huber, lambda: normal(2, BATCH, 4)),
    "loss_cosine": of_loss(
        losses.CosineSimilarity, lambda: normal(2, BATCH, 4)
    ),
}
