"""Runs programs given as text on XLA's CPU client and on whale-opt's output."""

import os
import pathlib
import subprocess
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHALE_OPT = os.environ.get("WHALE_OPT", str(ROOT / "build/bin/whale-opt"))

_DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def whale_opt(text: str, *passes: str) -> str:
    """The text after `passes`; raises with the diagnostics if they fail."""
    run = subprocess.run(
        [WHALE_OPT, *passes],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


def argument_types(text: str) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Shape and dtype of each argument of @main."""
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        for op in module.body.operations:
            if op.operation.name != "func.func":
                continue
            if ir.StringAttr(op.attributes["sym_name"]).value != "main":
                continue
            types = ir.FunctionType(
                ir.TypeAttr(op.attributes["function_type"]).value
            ).inputs
            shaped = [ir.RankedTensorType(type) for type in types]
            return [
                (tuple(t.shape), np.dtype(_DTYPES[str(t.element_type)]))
                for t in shaped
            ]
    raise ValueError("no @main")


def random_arguments(text: str, seed: int = 0) -> list[np.ndarray]:
    """Small numbers of the types that @main takes."""
    rng = np.random.default_rng(seed)
    result = []
    for shape, dtype in argument_types(text):
        if dtype == np.bool_:
            value: Any = rng.integers(0, 2, shape)
        elif np.issubdtype(dtype, np.integer):
            value = rng.integers(0, 4, shape)
        else:
            value = rng.normal(size=shape) * 0.5
        result.append(np.asarray(value).astype(dtype))
    return result


def run(text: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """What XLA computes."""
    device = jax.devices("cpu")[0]
    client = device.client
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        executable = client.compile_and_load(
            module,
            xla_client.DeviceList((device,)),
            xla_client.CompileOptions(),
        )
    # Without x64, JAX would narrow the arguments.
    with jax.enable_x64(True):
        buffers = [jax.device_put(a, device) for a in arguments]
        return [np.asarray(out) for out in executable.execute(buffers)]


def assert_close(expected, actual, tolerance: float) -> None:
    """Equal but for `tolerance` times the largest magnitude."""
    assert len(expected) == len(actual)
    for i, (e, a) in enumerate(zip(expected, actual)):
        assert e.dtype == a.dtype and e.shape == a.shape, i
        if not np.issubdtype(e.dtype, np.floating) and e.dtype.kind != "V":
            np.testing.assert_array_equal(e, a, err_msg=f"result {i}")
            continue
        e, a = e.astype(np.float64), a.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(e), np.isnan(a))
        np.testing.assert_array_equal(np.isinf(e), np.isinf(a))
        finite = np.isfinite(e)
        if finite.any():
            scale = np.abs(e[finite]).max()
            error = np.abs(e[finite] - a[finite]).max()
            assert error <= tolerance * scale + 1e-30, (i, error, scale)
