"""Convolutions, each forward and both gradients: sixty by name, and as many as
wanted that are drawn from a seed.

A `Shape` makes the step that computes one of the three, with its operands.
They are those of models: of series and sound, of images, of volumes; dilated,
causal, of groups and of single channels, transposed, strided, with few and with
many channels. Making one costs its tensors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# What is timed of each shape.
PARTS = ("forward", "image", "filter")


@dataclasses.dataclass(frozen=True)
class Shape:
    """A convolution of `batch` images of `inputs` channels.

    Images are channels last but where `first` says otherwise. `padding` is
    what `jax.lax.conv_general_dilated` takes, or "CAUSAL": all of it in front.
    `spread` is the stride of a transposed convolution.
    """

    name: str
    batch: int
    image: tuple[int, ...]
    inputs: int
    features: int
    kernel: tuple[int, ...]
    stride: int = 1
    dilation: int = 1
    spread: int = 1
    padding: str | int = "SAME"
    groups: int = 1
    first: bool = False
    dtype: str = "float32"

    def convolve(self, x: jax.Array, w: jax.Array) -> jax.Array:
        """The forward convolution."""
        rank = len(self.image)
        space = "DHW"[-rank:]
        order = "NC" + space if self.first else f"N{space}C"
        reach = [(size - 1) * self.dilation for size in self.kernel]
        padding: Any = self.padding
        if padding == "CAUSAL":
            padding = [(zeros, 0) for zeros in reach]
        elif self.spread > 1:
            zeros = [size - 1 - int(self.padding or 0) for size in self.kernel]
            padding = [(each, each) for each in zeros]
        elif isinstance(padding, int):
            padding = [(padding, padding)] * rank
        return jax.lax.conv_general_dilated(
            x,
            w,
            (self.stride,) * rank,
            padding,
            lhs_dilation=(self.spread,) * rank,
            rhs_dilation=(self.dilation,) * rank,
            dimension_numbers=(order, space + "IO", order),
            feature_group_count=self.groups,
        )

    def tensors(self) -> tuple[Any, Any, Any]:
        """Shapes of the image, the filter and the result."""
        space = self.image
        image = (self.batch, *space, self.inputs)
        if self.first:
            image = (self.batch, self.inputs, *space)
        kernel = (*self.kernel, self.inputs // self.groups, self.features)
        x, w = (
            jax.ShapeDtypeStruct(shape, self.dtype) for shape in (image, kernel)
        )
        return x, w, jax.eval_shape(self.convolve, x, w)

    def make(
        self, part: str
    ) -> tuple[Callable[..., Any], Any, tuple[Any, ...]]:
        """The step `state, *data -> state, result` of a part, without a state,
        and its data."""
        x, w, y = self.tensors()

        def step(state: Any, a: jax.Array, b: jax.Array) -> Any:
            if part == "forward":
                return state, self.convolve(a, b)
            if part == "image":
                transposed = jax.linear_transpose(
                    lambda image: self.convolve(image, a), x
                )
            else:
                transposed = jax.linear_transpose(
                    lambda kernel: self.convolve(a, kernel), w
                )
            return state, transposed(b)[0]

        random = np.random.default_rng(0)
        operands = {"forward": (x, w), "image": (w, y), "filter": (x, y)}[part]
        data = tuple(
            jnp.asarray(random.standard_normal(each.shape), each.dtype)
            for each in operands
        )
        return step, (), data


def _bf16(shape: Shape) -> Shape:
    return dataclasses.replace(
        shape, name=shape.name + "-bf16", dtype="bfloat16"
    )


_ONE = (
    # Causal: WaveNet, a temporal convolution net, byte-level models.
    Shape("wavenet-2-1", 4, (2048,), 64, 64, (2,), padding="CAUSAL"),
    Shape(
        "wavenet-2-16", 4, (2048,), 64, 64, (2,), dilation=16, padding="CAUSAL"
    ),
    Shape(
        "wavenet-2-512",
        4,
        (2048,),
        64,
        64,
        (2,),
        dilation=512,
        padding="CAUSAL",
    ),
    Shape(
        "wavenet-gate", 4, (2048,), 64, 128, (2,), dilation=8, padding="CAUSAL"
    ),
    Shape(
        "causal-3-4", 2, (1024,), 128, 128, (3,), dilation=4, padding="CAUSAL"
    ),
    Shape(
        "causal-7-3", 1, (512,), 256, 256, (7,), dilation=3, padding="CAUSAL"
    ),
    Shape("tcn-3-2", 8, (1024,), 32, 32, (3,), dilation=2, padding="CAUSAL"),
    Shape("speech-stem", 2, (1500,), 80, 256, (3,)),
    Shape("speech-stride", 2, (1500,), 256, 256, (3,), stride=2),
    Shape("series-first", 8, (512,), 64, 64, (9,), first=True),
    Shape("waves-in", 4, (16000,), 1, 128, (16,), stride=8, padding="VALID"),
    Shape("waves-out", 4, (1999,), 128, 1, (16,), spread=8, padding=0),
    Shape("one-long", 2, (200,), 512, 512, (64,), groups=16),
    Shape("one-grouped", 4, (512,), 256, 256, (3,), groups=8),
    Shape(
        "one-depth-4",
        2,
        (1024,),
        1024,
        1024,
        (4,),
        padding="CAUSAL",
        groups=1024,
    ),
    Shape("one-depth-31", 4, (512,), 256, 256, (31,), groups=256),
    Shape(
        "one-depth-dilated", 4, (1024,), 128, 128, (3,), dilation=4, groups=128
    ),
)
_TWO = (
    Shape("vgg-56", 4, (56, 56), 64, 64, (3, 3)),
    Shape("vgg-28", 8, (28, 28), 128, 128, (3, 3)),
    Shape("vgg-14", 8, (14, 14), 256, 256, (3, 3)),
    Shape("vgg-7", 8, (7, 7), 512, 512, (3, 3)),
    Shape("unet-16", 2, (16, 16), 320, 320, (3, 3)),
    Shape("factored-17", 8, (17, 17), 128, 128, (1, 7)),
    Shape("point-56", 4, (56, 56), 64, 256, (1, 1)),
    Shape("point-stride", 8, (28, 28), 256, 512, (1, 1), stride=2),
    Shape("cifar-stem", 64, (32, 32), 3, 32, (3, 3)),
    Shape("cifar-16", 32, (32, 32), 16, 16, (3, 3)),
    Shape("digits-1", 128, (28, 28), 1, 32, (5, 5)),
    Shape("digits-2", 64, (14, 14), 32, 64, (5, 5)),
    Shape("resnet-stem", 2, (224, 224), 3, 64, (7, 7), stride=2),
    Shape("large-image", 1, (512, 512), 3, 8, (3, 3)),
    Shape("to-colours", 2, (256, 256), 8, 3, (3, 3)),
    Shape("first-32", 16, (32, 32), 64, 64, (3, 3), first=True),
    Shape("first-stride", 16, (32, 32), 64, 128, (3, 3), stride=2, first=True),
    Shape("stride-56", 4, (56, 56), 64, 128, (3, 3), stride=2),
    Shape("patches-4", 4, (128, 128), 3, 96, (4, 4), stride=4, padding="VALID"),
    Shape(
        "patches-16",
        8,
        (224, 224),
        3,
        192,
        (16, 16),
        stride=16,
        padding="VALID",
    ),
    Shape("dilated-2", 4, (32, 32), 64, 64, (3, 3), dilation=2),
    Shape("dilated-6", 4, (16, 16), 256, 256, (3, 3), dilation=6),
    Shape("depth-56", 4, (56, 56), 96, 96, (3, 3), groups=96),
    Shape("depth-7x7", 8, (28, 28), 96, 96, (7, 7), groups=96),
    Shape("depth-stride", 8, (28, 28), 144, 144, (5, 5), stride=2, groups=144),
    Shape("depth-first", 16, (32, 32), 64, 64, (3, 3), groups=64, first=True),
    Shape("grouped-32", 8, (28, 28), 128, 128, (3, 3), groups=32),
    Shape("grouped-4", 8, (28, 28), 64, 64, (3, 3), groups=4),
    Shape("transposed-4x4", 16, (16, 16), 128, 64, (4, 4), spread=2, padding=1),
    Shape("transposed-3x3", 16, (14, 14), 64, 32, (3, 3), spread=2, padding=1),
    Shape("transposed-2x2", 8, (28, 28), 128, 64, (2, 2), spread=2, padding=0),
)
_THREE = (
    Shape("three-16", 2, (16, 32, 32), 16, 32, (3, 3, 3)),
    Shape("three-stem", 2, (8, 56, 56), 3, 32, (3, 3, 3)),
    Shape("three-time", 2, (8, 14, 14), 128, 128, (3, 1, 1)),
    Shape("three-stride", 2, (16, 28, 28), 32, 64, (3, 3, 3), stride=2),
    Shape("three-depth", 2, (8, 28, 28), 64, 64, (3, 3, 3), groups=64),
    Shape(
        "three-transposed",
        2,
        (8, 14, 14),
        64,
        32,
        (2, 2, 2),
        spread=2,
        padding=0,
    ),
)
_HALF = tuple(
    _bf16(shape)
    for shape in (*_ONE, *_TWO, *_THREE)
    if shape.name
    in (
        "wavenet-2-16",
        "vgg-28",
        "point-56",
        "depth-56",
        "stride-56",
        "three-16",
    )
)
# One to three dimensions, and some of these in bf16.
SHAPES = _ONE + _TWO + _THREE + _HALF


# What is drawn computes about this many FLOPs, like those above.
_FEWEST, _MOST = 1e7, 5e8
_CHANNELS = (1, 3, 8, 12, 16, 20, 32, 40, 48, 64, 72, 96, 100, 128, 160, 256)
_IMAGES = {1: (64, 4096), 2: (7, 160), 3: (5, 28)}


def flops(shape: Shape) -> float:
    """What a part of it takes as it is written, two a product of numbers."""
    _, w, y = shape.tensors()
    points = math.prod(y.shape) / shape.features
    return 2.0 * points * math.prod(w.shape)


def _draw(random: np.random.Generator, name: str) -> Shape:
    """A convolution of any size."""

    def pick(*options: Any) -> Any:
        return options[random.integers(len(options))]

    rank = pick(1, 1, 2, 2, 2, 3)
    least, most = np.log(_IMAGES[rank])
    inputs, features = pick(*_CHANNELS), pick(*_CHANNELS)
    reach = {1: (2, 3, 5, 9, 16), 2: (1, 3, 3, 5, 7), 3: (1, 3)}[rank]
    form: dict[str, Any] = pick(
        {},
        {"stride": pick(2, 2, 3, 4)},
        {"dilation": pick(2, 3, 4, 8)},
        {"dilation": pick(1, 4, 32), "padding": "CAUSAL"} if rank == 1 else {},
        {"spread": 2, "padding": pick(0, 1)},
        {"groups": inputs},
        {"groups": pick(2, 4, 8)},
    )
    groups = form.get("groups", 1)
    if groups == inputs:
        features = inputs * pick(1, 1, 2)
    elif groups > 1:
        inputs, features = (
            -(-c // groups) * groups for c in (inputs, features)
        )
    return Shape(
        name,
        pick(1, 2, 4, 8, 16, 32, 64),
        tuple(int(np.exp(random.uniform(least, most))) for _ in range(rank)),
        inputs,
        features,
        (pick(*reach),) * rank,
        **form,
        first=pick(False, False, False, True),
        dtype=pick("float32", "float32", "float32", "bfloat16"),
    )


def draw(seed: int, count: int) -> list[Shape]:
    """As many convolutions, of all forms, sizes and types, the same for the
    same seed: none has been looked at when something was made faster."""
    random = np.random.default_rng(seed)
    shapes: list[Shape] = []
    while len(shapes) < count:
        shape = _draw(random, f"drawn-{seed}-{len(shapes)}")
        reach = (shape.kernel[0] - 1) * shape.dilation
        # Of some of these JAX takes half a minute for the gradient.
        is_slow = (
            1 < shape.groups < shape.inputs and math.prod(shape.kernel) > 9
        )
        if (
            reach < min(shape.image)
            and _FEWEST < flops(shape) < _MOST
            and not is_slow
        ):
            shapes.append(shape)
    return shapes
