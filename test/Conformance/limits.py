#!/usr/bin/env python
"""Runs operations on what is infinite, no number, zero, huge or tiny.

Complex functions must give what XLA or NumPy gives for each number: both
follow annex G of the C standard, but not at the same places.
reduce_precision must give XLA's bits.
"""

from __future__ import annotations

import sys
import warnings

import jax
import numpy as np
from generate import jax_mlir, run_xla
from run import Tensor, run_program
from values import one, tensor

PARTS = [
    0.0, -0.0, 1.0, -1.0, 2.5, -0.5, np.inf, -np.inf, np.nan, 1e-30, 1e30,
    89.0, -800.0,
]  # fmt: skip
UNARY = {
    "abs": np.abs, "cosine": np.cos, "exponential": np.exp,
    "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "negate": np.negative, "rsqrt": None, "sine": np.sin, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "divide": None,
}  # fmt: skip


def grid(dtype: type, parts: list[float]) -> np.ndarray:
    """All numbers with these parts."""
    re, im = np.meshgrid(parts, parts)
    z: np.ndarray = np.empty(re.size, dtype)
    z.real, z.imag = re.ravel(), im.ravel()
    return z


def agree(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same numbers, up to rounding."""
    near = np.abs(a - b) <= 1e-5 * np.abs(b)
    if np.iscomplexobj(a):
        return near | (agree(a.real, b.real) & agree(a.imag, b.imag))
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def complex_cases(element: str, dtype: type) -> int:
    """Prints what differs and returns its count."""
    z = grid(dtype, PARTS)
    pairs = [x.ravel() for x in np.meshgrid(*[grid(dtype, PARTS[:9])] * 2)]
    wrong = 0
    for name, numpy in {**UNARY, **BINARY}.items():
        arguments = pairs if name in BINARY else [z]
        size = arguments[0].shape
        type_, result = tensor(size, element), tensor(size, element)
        if name == "abs":
            result = tensor(size, element[8:11])
        names = ", ".join(f"%a{i}" for i in range(len(arguments)))
        ends = ", ".join([type_] * len(arguments))
        _, source, _ = one(
            name, f"stablehlo.{name} {names} : ({ends}) -> {result}",
            [type_] * len(arguments), result, arguments,
        )  # fmt: skip
        got = run_program(source, arguments, [Tensor.parse(result)], "1")[0]
        right = agree(got, run_xla(CONTEXT, source, arguments)[0])
        if numpy:
            wide = [a.astype(np.complex128) for a in arguments]
            right |= agree(got, numpy(*wide).astype(got.dtype))
        for place in np.flatnonzero(~right):
            inputs = [a[place] for a in arguments]
            print(f"{name} of {inputs} is {got[place]}")
        wrong += int(np.sum(~right))
    return wrong


def precision_cases(element: str, dtype: type) -> int:
    """Prints the formats that differ and returns their number."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x = np.random.default_rng(0).integers(0, 2 ** (8 * bits.itemsize), 500,
                                          bits)  # fmt: skip
    x = np.concatenate([x.view(dtype), np.array(PARTS).astype(dtype)])
    type_ = tensor(x.shape, element)
    wrong = 0
    for form in ("e1m0", "e1m2", "e2m0", "e5m2", "e5m10", "e8m7", "e11m52"):
        # Half precision that is not its own exponent XLA computes in f32.
        if element == "f16" and int(form[1:].split("m")[0]) > 5:
            continue
        _, source, _ = one(
            form, f"stablehlo.reduce_precision %a0, format = {form} : {type_}",
            [type_], type_, [x],
        )  # fmt: skip
        got = run_program(source, [x], [Tensor.parse(type_)], "1")[0]
        want = run_xla(CONTEXT, source, [x])[0]
        same = (got.view(bits) == want.view(bits)) | (
            np.isnan(got) & np.isnan(want)
        )
        for place in np.flatnonzero(~same):
            print(f"{form} of {x[place]} is {got[place]}, not {want[place]}")
        wrong += int(np.sum(~same))
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    CONTEXT = jax_mlir.make_ir_context()
    sys.exit(
        bool(
            complex_cases("complex<f32>", np.complex64)
            + complex_cases("complex<f64>", np.complex128)
            + precision_cases("f16", np.float16)
            + precision_cases("f32", np.float32)
            + precision_cases("f64", np.float64)
        )
    )
