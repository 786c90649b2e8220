"""What the families of cases are made of: types, arguments, texts."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from whale.dtypes import numpy_dtype  # noqa: E402

FLOATS = ["f32", "bf16", "f16", "f64"]
SMALL_FLOATS = ["f8E4M3FN", "f8E5M2"]
SIGNED = ["i4", "i8", "i16", "i32", "i64"]
UNSIGNED = ["ui4", "ui8", "ui16", "ui32", "ui64"]
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ["complex<f32>", "complex<f64>"]
EVERY = FLOATS + SMALL_FLOATS + INTEGERS + COMPLEX + ["i1"]
NUMBERS = FLOATS + INTEGERS + COMPLEX

# (name, text or what makes it, arguments)
Item = tuple[str, str | Callable[[], str], list[np.ndarray]]


def tensor(shape: tuple[int, ...] | list[int], dtype: str) -> str:
    return "tensor<" + "".join(f"{extent}x" for extent in shape) + dtype + ">"


class Values:
    """Arguments, from one random generator."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def edge(self, dtype: str) -> list:
        """What arithmetic goes wrong with."""
        kind = numpy_dtype(dtype)
        if dtype == "i1":
            return [False, True]
        if dtype.lstrip("u").startswith("i"):
            bits = int(dtype.lstrip("u")[1:])
            if dtype[0] == "u":
                return [0, 1, 2, 3, bits, 2 ** (bits - 1), 2**bits - 1]
            low = -(2 ** (bits - 1))
            return [0, 1, -1, 2, low, low + 1, 3, -low - 1]
        if dtype.startswith("complex"):
            return [0, 1, 1j, -1 - 1j, 3e3 + 2j, 1e-5 - 1e-6j]
        tiny = float(np.float32(1e-3)) if kind.itemsize < 4 else 1e-30
        return [
            0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, tiny, np.inf, -np.inf,
            np.nan,
        ]  # fmt: skip

    def make(
        self, shape: tuple[int, ...], dtype: str, edges: bool = False
    ) -> np.ndarray:
        """A tensor of a range in which nothing overflows, unless `edges`."""
        count = int(np.prod(shape, dtype=np.int64))
        rng = self.rng
        if dtype == "i1":
            value = rng.integers(0, 2, count).astype(bool)
        elif dtype.lstrip("u").startswith("i"):
            low = 0 if dtype[0] == "u" else -4
            value = rng.integers(low, 5, count)
        elif dtype.startswith("complex"):
            value = rng.normal(size=count) + 1j * rng.normal(size=count)
        else:
            value = rng.normal(size=count) * 2
        value = value.astype(numpy_dtype(dtype))
        if edges and count:
            found = self.edge(dtype)
            places = rng.permutation(count)[: len(found)]
            for place, edge in zip(places, rng.permutation(len(found))):
                value[place] = np.asarray(found[edge]).astype(
                    numpy_dtype(dtype)
                )
        return value.reshape(shape)

    def summands(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Numbers that can be added or multiplied in any order: what is
        rounded in between is up to who computes it."""
        if numpy_dtype(dtype).itemsize > 2 or dtype[0] not in "bf":
            return self.make(shape, dtype)
        value = self.rng.choice([-1, 1], shape)
        if dtype in ("f16", "bf16"):
            value = value * self.rng.choice([0.5, 1, 2], shape)
        return np.asarray(value).astype(numpy_dtype(dtype))

    def distinct(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Small numbers that mostly differ; exact in every type."""
        count = int(np.prod(shape, dtype=np.int64))
        value = self.rng.permutation(count) % 7
        return value.astype(numpy_dtype(dtype)).reshape(shape)


def text(operands: list[str], results: list[str], body: str) -> str:
    """A module of one function; %0... name the results."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    returned = ", ".join(f"%r{i}" for i in range(len(results)))
    types = ", ".join(results)
    return (
        f"module {{\n  func.func public @main({arguments}) -> ({types}) {{\n"
        f"{body}\n    return {returned} : {types}\n  }}\n}}\n"
    )


def one(
    name: str, body: str, types: list[str], result: str, values: list
) -> tuple[str, str, list[np.ndarray]]:
    """A case of one operation: `body` follows `%r0 = `."""
    return name, text(types, [result], f"    %r0 = {body}"), values
