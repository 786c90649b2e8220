"""What the paper does not print of its runs, each with its range.

Figures are made with `value`, and again with `low` and `high` where the table
shows a spread. They were fixed before any figure was simulated.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting, between which values it may have been, and why."""

    value: Any
    low: Any
    high: Any
    reason: str


SETTINGS: dict[str, Setting] = {
    "resnet.batch": Setting(
        64, 32, 96, "images of a GPU; with 32, f32 sums would exceed the wire"
    ),
    "resnet.optimizer": Setting(
        "adam", "momentum", "adam", "FastNN's example of split has Adam"
    ),
    "bert.batch": Setting(
        6, 4, 12, "sequences of a GPU: the slides' plot of memory has 6"
    ),
    "bert.length": Setting(384, 128, 512, "FastNN's script for pipelines"),
    "bert.micro_batches": Setting(
        10, 8, 16, "of a mini-batch: FastNN's script for pipelines has 10"
    ),
    "gnmt.batch": Setting(128, 64, 128, "pairs of sentences of a GPU"),
    "gnmt.length": Setting(50, 30, 50, "tokens of a sentence"),
    "t5.batch": Setting(2, 1, 4, "sequences of a micro-batch of a pipeline"),
    "t5.length": Setting(512, 128, 512, "FastNN's t5_large"),
    "t5.micro_batches": Setting(10, 8, 16, "as BertLarge"),
    "m6.batch": Setting(8, 4, 16, "sequences of a micro-batch, of 35"),
    "m6 experts.length": Setting(128, 64, 256, "tokens of a sequence"),
    "m6.length": Setting(512, 256, 512, "tokens of a sequence"),
    "overlap": Setting(
        False,
        False,
        True,
        "whether gradients are exchanged while the backward pass goes on; the "
        "paper's shares of communication are those of the whole exchange",
    ),
    "optimizer": Setting("adam", "momentum", "adam", "but for M6: Adafactor"),
    "dtype": Setting(
        "f32", "f32", "f32", "TensorFlow 1.12; nothing is said of f16"
    ),
    "fused attention": Setting(
        False,
        False,
        False,
        "TensorFlow 1.12 had none. Steps are lowered as for a processor: not "
        "looked at in programs",
    ),
}


def value(name: str) -> Any:
    """What figures are made with."""
    return SETTINGS[name].value
