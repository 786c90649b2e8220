"""Tensors of every element type in safetensors files."""

from __future__ import annotations

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

import gpu_cases  # noqa: E402

from whale.dtypes import element_name  # noqa: E402

# Element types that a file names otherwise; each of the rest, of a byte or
# less, is there as bytes.
_NAMES = {
    "i1": "BOOL", "complex<f32>": "C64", "complex<f64>": "F64",
    "f8E4M3FN": "F8_E4M3", "f8E4M3FNUZ": "F8_E4M3FNUZ", "f8E5M2": "F8_E5M2",
    "f8E5M2FNUZ": "F8_E5M2FNUZ", "f8E8M0FNU": "F8_E8M0", "i2": "I8", "i4": "I8",
    **{f"ui{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{name: name.upper()
       for name in ("i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64")},
}  # fmt: skip


def file_type(dtype: str) -> str:
    """What a file calls a StableHLO element type."""
    return _NAMES.get(dtype, "U8")


def write(path: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    """Makes a file; the tensors' order there is theirs here."""
    entries: gpu_cases.Tensors = {}
    for name, value in tensors.items():
        dtype = element_name(value.dtype)
        shape = list(value.shape) + [2] * (dtype == "complex<f64>")
        content = np.ascontiguousarray(value).tobytes()
        entries[name] = file_type(dtype), shape, content
    gpu_cases.write(path, entries)


def read(path: pathlib.Path) -> dict[str, bytes]:
    """The bytes of each tensor."""
    return {name: entry[2] for name, entry in gpu_cases.read(path).items()}
