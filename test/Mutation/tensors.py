"""Random tensors of every element type, and how close two are."""

from __future__ import annotations

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from whale.dtypes import element_name, numpy_dtype  # noqa: E402

# Relative to the largest number: what is added in another order, and fused
# otherwise, differs by so much.
TOLERANCES = {
    "f64": 1e-9, "f32": 1e-4, "f16": 1e-2, "bf16": 4e-2,
    "complex<f64>": 1e-9, "complex<f32>": 1e-4,
}  # fmt: skip


def random_tensor(
    rng: np.random.Generator, shape: list[int], dtype: str
) -> np.ndarray:
    kind = numpy_dtype(dtype)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.lstrip("u").startswith("i"):
        return np.asarray(rng.integers(0, 4, shape)).astype(kind)
    value = np.asarray(rng.normal(size=shape) * 0.5)
    if dtype.startswith("complex"):
        value = value + 1j * rng.normal(size=shape)
    return value.astype(kind)


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(
        np.complex128 if value.dtype.kind == "c" else np.float64
    )


def difference(
    actual: np.ndarray, expected: np.ndarray, nearby: np.ndarray
) -> str:
    """What is wrong with a result; nothing if it is as close to what XLA gives
    as precision allows. `nearby` is what XLA gives of arguments a little
    different: numbers that change much with them say nothing."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return (
            f"{actual.dtype}{actual.shape}, "
            f"not {expected.dtype}{expected.shape}"
        )
    if not actual.size:
        return ""
    with np.errstate(all="ignore"):
        if expected.dtype.kind in "iub" or "int" in expected.dtype.name:
            wrong = (actual != expected) & (expected == nearby)
        else:
            a, e, n = _wide(actual), _wide(expected), _wide(nearby)
            name = element_name(expected.dtype)
            tolerance = TOLERANCES.get(name, 0.3)
            finite = np.abs(e[np.isfinite(e)])
            largest = finite.max() if finite.size else 0.0
            room = tolerance * largest + 1e-30
            wrong = ~(
                (np.abs(a - e) <= room) | (a == e) | (np.isnan(a) & np.isnan(e))
            )
            wrong &= np.abs(e - n) <= room / 10
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{list(at)}: {actual[at]}, not {expected[at]}; "
        f"{int(wrong.sum())} of {wrong.size}"
    )
