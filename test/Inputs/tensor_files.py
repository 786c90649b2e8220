"""Tensors of every element type in safetensors files."""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

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
    header, data = {}, b""
    for name, value in tensors.items():
        content = np.ascontiguousarray(value).tobytes()
        dtype = element_name(value.dtype)
        header[name] = {
            "dtype": file_type(dtype),
            "shape": list(value.shape) + [2] * (dtype == "complex<f64>"),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read(path: pathlib.Path) -> dict[str, bytes]:
    """The bytes of each tensor."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    return {
        name: body[slice(*entry["data_offsets"])]
        for name, entry in header.items()
        if name != "__metadata__"
    }
