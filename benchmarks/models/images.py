"""Models of images, by convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from models.workload import (
    Params,
    Workload,
    convolve,
    drawer,
    mean_loss,
    norm_params,
    random_images,
)


def convnet(annotate: bool, batch: int = 128, image: int = 32) -> Workload:
    """Three 3 x 3 convolutions with two max-poolings, and a classifier."""
    channels = (3, 32, 64, 128)
    classes = 10

    def init(key: jax.Array) -> Params:
        weight = drawer(key, 0.1)
        layers = [
            {"kernel": weight(3, 3, fan, out), "bias": jnp.zeros(out)}
            for fan, out in zip(channels, channels[1:])
        ]
        return {"layers": layers, "head": weight(channels[-1], classes)}

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        for number, layer in enumerate(params["layers"]):
            x = convolve(x, layer["kernel"])
            x = jax.nn.relu(x + layer["bias"])
            if number < 2:
                x = jax.lax.reduce_window(
                    x,
                    -jnp.inf,
                    jax.lax.max,
                    (1, 2, 2, 1),
                    (1, 2, 2, 1),
                    "VALID",
                )
        logits = x.mean((1, 2)) @ params["head"]
        return mean_loss(logits, labels)

    rows = random_images(batch, image, classes)
    return Workload(init, loss, rows)


def small_convolution(
    annotate: bool, batch: int = 48, size: int = 6, channels: int = 48
) -> Workload:
    """A step of some tenths of a millisecond, one convolution and its
    gradient: what threads cost that wait for one another."""

    def init(key: jax.Array) -> Params:
        return jax.random.normal(key, (3, 3, 2, channels)) / 4

    def loss(params: Params, x: jax.Array) -> jax.Array:
        return jnp.square(convolve(x, params)).mean()

    random = np.random.default_rng(0)
    images = random.standard_normal((batch, size, size, 2), np.float32)
    return Workload(init, loss, images, optax.sgd(1e-3))


def classifier(
    annotate: bool, batch: int = 64, image: int = 24, classes: int = 10000
) -> Workload:
    """Convolutions with batch norm and a wide output layer."""
    # By layer: kernel, channels, stride.
    layers = ((5, 16, 2), (3, 128, 1), (1, 128, 1))

    def init(key: jax.Array) -> Params:
        weight = drawer(key, 0.1)
        kernels, fan = [], 3
        for size, channels, _ in layers:
            kernels.append(weight(size, size, fan, channels))
            fan = channels
        return {
            "kernels": kernels,
            "norms": [norm_params(width) for width in (layers[0][1], fan)],
            "head": weight(fan, classes),
        }

    def norm(params: Params, x: jax.Array) -> jax.Array:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x - mean).mean((0, 1, 2))
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
        return x * params["scale"] + params["bias"]

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        strides = [stride for *_, stride in layers]
        first, second, third = params["kernels"]
        x = convolve(x, first, strides[0])
        x = jax.nn.relu(norm(params["norms"][0], x))
        window = (1, 3, 3, 1)
        x = jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, window, (1, 2, 2, 1), "SAME"
        )
        x = jax.nn.relu(convolve(x, second, strides[1]))
        x = convolve(x, third, strides[2])
        x = jax.nn.relu(norm(params["norms"][1], x))
        logits = x.mean((1, 2)) @ params["head"]
        return mean_loss(logits, labels)

    rows = random_images(batch, image, classes)
    return Workload(init, loss, rows, optax.sgd(1e-2, momentum=0.9))


# Of ResNet-50: how many bottlenecks each stage has.
RESNET_50 = (3, 4, 6, 3)


def resnet_params(
    layer: Callable[[int, int, int], Params], blocks: Sequence[int], width: int
) -> tuple[Params, int]:
    """The parameters of a ResNet up to its head, and the features there.

    ``layer(size, fan, out)`` makes those of a convolution.
    """
    params: Params = {"stem": layer(7, 3, width), "blocks": []}
    fan = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for number in range(count):
            block = {
                "reduce": layer(1, fan, inner),
                "inner": layer(3, inner, inner),
                "expand": layer(1, inner, 4 * inner),
            }
            if number == 0:
                block["shortcut"] = layer(1, fan, 4 * inner)
            params["blocks"].append(block)
            fan = 4 * inner
    return params, fan


def resnet_features(
    layer: Callable[..., jax.Array],
    params: Params,
    x: jax.Array,
    blocks: Sequence[int],
) -> jax.Array:
    """What a ResNet makes of images, up to the mean over each.

    ``layer(params, x, stride)`` is a convolution and its normalization; strides
    are in the 3 x 3 ones.
    """

    def bottleneck(params: Params, x: jax.Array, stride: int) -> jax.Array:
        inner = jax.nn.relu(layer(params["reduce"], x))
        inner = jax.nn.relu(layer(params["inner"], inner, stride))
        inner = layer(params["expand"], inner)
        if "shortcut" in params:
            x = layer(params["shortcut"], x, stride)
        return jax.nn.relu(x + inner)

    x = jax.nn.relu(layer(params["stem"], x, 2))
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "SAME")
    each = iter(params["blocks"])
    for stage, count in enumerate(blocks):
        for number in range(count):
            is_smaller = stage > 0 and number == 0
            x = bottleneck(next(each), x, 2 if is_smaller else 1)
    return x


def resnet(
    annotate: bool,
    blocks: tuple[int, ...] = RESNET_50,
    width: int = 64,
    batch: int = 128,
    image: int = 224,
    classes: int = 1000,
    dtype: str = "float32",
) -> Workload:
    """A ResNet with bottlenecks, by default ResNet-50, with the strides in the
    3 x 3 convolutions. Convolutions compute in `dtype`; parameters and
    statistics are in f32."""

    def init(key: jax.Array) -> Params:
        weight = drawer(key, 1.0)

        def layer(size: int, fan: int, out: int) -> Params:
            scale = np.sqrt(2 / (size * size * fan))
            kernel = weight(size, size, fan, out) * scale
            return {"kernel": kernel} | norm_params(out)

        params, fan = resnet_params(layer, blocks, width)
        return params | {"head": weight(fan, classes) * 0.01}

    def layer(params: Params, x: jax.Array, stride: int = 1) -> jax.Array:
        """A convolution and batch norm."""
        x = convolve(x, params["kernel"].astype(dtype), stride)
        wide = x.astype(jnp.float32)
        mean = wide.mean((0, 1, 2))
        variance = jnp.square(wide).mean((0, 1, 2)) - jnp.square(mean)
        scale = params["scale"] * jax.lax.rsqrt(variance + 1e-5)
        return ((wide - mean) * scale + params["bias"]).astype(dtype)

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        x = resnet_features(layer, params, x.astype(dtype), blocks)
        logits = x.astype(jnp.float32).mean((1, 2)) @ params["head"]
        return mean_loss(logits, labels)

    rows = random_images(batch, image, classes)
    return Workload(init, loss, rows, optax.sgd(0.1, momentum=0.9))
