"""Element types: their StableHLO names and their NumPy dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_SMALL_FLOATS = (
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)

_BY_NAME: dict[str, np.dtype] = {
    "i1": np.dtype(np.bool_),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "i2": np.dtype(ml_dtypes.int2),
    "i4": np.dtype(ml_dtypes.int4),
    "ui2": np.dtype(ml_dtypes.uint2),
    "ui4": np.dtype(ml_dtypes.uint4),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
    # float8_e4m3fn is f8E4M3FN.
    **{
        "f" + name.removeprefix("float").replace("_", "").upper(): np.dtype(
            getattr(ml_dtypes, name)
        )
        for name in _SMALL_FLOATS
    },
}
_BY_DTYPE = {dtype: name for name, dtype in _BY_NAME.items()}


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a StableHLO element type."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"no NumPy dtype for element type {name!r}") from None


def element_name(dtype: np.dtype) -> str:
    """The StableHLO element type of a NumPy dtype."""
    try:
        return _BY_DTYPE[np.dtype(dtype)]
    except KeyError:
        raise ValueError(f"no StableHLO element type for {dtype}") from None
