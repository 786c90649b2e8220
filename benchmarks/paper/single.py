"""Rates of one GPU, by which no constant was chosen: what the fastest of some
frameworks attains beside what a simulated step does.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics

from paper import models
from paper.constants import A100, H100, P100, V100, alone
from paper.figures import Numbers, Values
from paper.recurrent import gnmt
from paper.simulate import Run, simulate


@dataclasses.dataclass(frozen=True)
class Cell:
    """A model on a device: the batch, and samples (of GNMT tokens) a second of
    the fastest framework."""

    model: str
    kind: str
    batch: int
    theirs: float
    source: str
    length: int = 0

    @property
    def name(self) -> str:
        length = f" {self.length}" if self.model == "BertLarge" else ""
        return f"{self.model}{length}, {self.kind}, batch {self.batch}"

    def run(self, optimizer: str) -> Run:
        if self.model == "ResNet-50":
            make = functools.partial(
                models.resnet, self.batch, optimizer=optimizer
            )
        elif self.model == "BertLarge":
            make = functools.partial(
                models.bert, self.batch, self.length, optimizer
            )
        else:
            make = functools.partial(gnmt, self.batch, self.length, optimizer)
        return Run(make, alone(self.kind))


_DLE = "NVIDIA/DeepLearningExamples"
CELLS: tuple[Cell, ...] = (
    Cell("ResNet-50", P100, 128, 203, "Gavel, 203 at 128"),
    Cell("ResNet-50", V100, 128, 432, f"{_DLE}, TensorFlow with XLA"),
    Cell("ResNet-50", A100, 128, 1066, f"{_DLE}, TF32"),
    Cell("ResNet-50", H100, 640, 1895, f"{_DLE}, TF32"),
    Cell("BertLarge", V100, 32, 46.8, f"{_DLE}, TensorFlow", 128),
    Cell("BertLarge", V100, 12, 12.4, "Lambda, 12 sequences", 384),
    Cell("BertLarge", A100, 64, 75, f"{_DLE}, TF32", 384),
    Cell("BertLarge", H100, 64, 147, f"{_DLE}, TF32", 384),
    Cell("BertLarge", V100, 8, 10.7, f"{_DLE}, TensorFlow", 512),
    Cell("GNMT", V100, 128, 25583, f"{_DLE}, PyTorch (DGX-2H)", 50),
    Cell("GNMT", A100, 128, 83214, f"{_DLE}, TF32", 50),
    Cell("GNMT", H100, 512, 247000, f"{_DLE}, TF32, batch 1,024", 50),
)


def rates(values: Values) -> Numbers:
    """By cell; and of all the median of what ours differ from theirs by, and
    whether devices come in the right order."""
    numbers: Numbers = {}
    for cell in CELLS:
        rate = simulate(cell.run(values["optimizer"])).rate(True)
        # Tokens of both sides.
        tokens = 2 * cell.length if cell.model == "GNMT" else 1
        numbers[cell.name] = rate * tokens
    numbers["median"] = statistics.median(
        abs(numbers[cell.name] / cell.theirs - 1) for cell in CELLS
    )
    numbers["in order"] = float(
        all(
            (numbers[one.name] < numbers[other.name])
            == (one.theirs < other.theirs)
            for one in CELLS
            for other in CELLS
            if (one.model, one.length) == (other.model, other.length)
            and one is not other
        )
    )
    return numbers
