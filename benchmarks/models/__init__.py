"""The models that are timed: plain JAX, nothing of them made for Whale but
the strategy of the experts.

In: sizes, and whether to annotate. Out: a `Workload`: initial parameters from a
key, a loss, a fixed mini-batch and an optimizer. Both sides of a measurement
build the same one, without the annotation for JAX, so a difference in time is
the compiler's or the runtime's. Making one costs its mini-batch in memory;
parameters are made by `init` only.
"""

from models.example import gpt_data, gpt_model
from models.experts import capacity_of, moe, moe_transformer
from models.images import classifier, convnet, resnet, small_convolution
from models.sequences import lstm, small_parameters, wavenet
from models.transformers import (
    biased_transformer,
    gpt,
    rope_transformer,
    vision_transformer,
)
from models.workload import Workload, mean_loss

__all__ = [
    "Workload",
    "biased_transformer",
    "capacity_of",
    "classifier",
    "convnet",
    "gpt",
    "gpt_data",
    "gpt_model",
    "lstm",
    "mean_loss",
    "moe",
    "moe_transformer",
    "resnet",
    "rope_transformer",
    "small_convolution",
    "small_parameters",
    "vision_transformer",
    "wavenet",
]
