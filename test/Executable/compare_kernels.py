"""Runs StableHLO files through Whale's kernels and through XLA, and compares.

usage: compare_kernels.py TOOL FILE... [--seed N] [--tolerance X] [--share]
       [--extreme] [--verbose]

TOOL is whale-kernels-test. chlo is expanded first, by jaxlib. Arguments are
random; integers are small and not negative, unless --extreme asks for what
arithmetic goes wrong with. The difference is relative to the largest magnitude
of each result; a file is wrong if it is larger than the tolerance, or if any
integer differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "i1": np.bool_, "i8": np.int8,
    "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8,
    "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3, "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}  # fmt: skip
# Largest relative difference by element type; what is computed from half
# precision is no better. (XLA keeps some intermediate results in f32.)
TOLERANCES = {"f64": 1e-12, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}


def load(text):
    """The module without chlo."""
    stablehlo.register_stablehlo_passes()
    context = jax_mlir.make_ir_context()
    with context:
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(
            "builtin.module(func.func(stablehlo-legalize-composite-to-call,"
            "chlo-legalize-to-stablehlo))"
        ).run(module.operation)
    return context, module


def describe(types):
    shapes = []
    for t in types:
        t = ir.RankedTensorType(t)
        shapes.append((tuple(t.shape), str(t.element_type)))
    return shapes


# What arithmetic goes wrong with first.
# fmt: off
EXTREMES = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 3e38, -3e38,
    1e-30, 127.5, -128.5, 255.5, 3e9, -3e9, 1e19,
]
# fmt: on


def make_argument(rng, shape, name, extreme):
    dtype = np.dtype(DTYPES[name])
    if extreme and dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(
            info.min, info.max, shape, dtype=dtype, endpoint=True
        )
        small = rng.integers(0, 2, shape).astype(np.bool_)
        ends = rng.choice([0, 1, 2, 7, 31, info.min, info.max], shape)
        return np.where(small, ends.astype(dtype), values)
    if extreme and dtype.kind == "f":
        values = rng.standard_normal(shape) * 3
        odd = rng.integers(0, 2, shape).astype(np.bool_)
        with np.errstate(over="ignore"):
            return np.where(odd, rng.choice(EXTREMES, shape), values).astype(
                dtype
            )
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def run_xla(context, module, arguments):
    client = jax.devices("cpu")[0].client
    options = _jax.CompileOptions()
    with context:
        executable = client.compile_and_load(
            module, _jax.DeviceList(tuple(client.local_devices()[:1])), options
        )
    buffers = [jax.device_put(a, client.local_devices()[0]) for a in arguments]
    outs = executable.execute_sharded(buffers)
    return [
        np.asarray(o[0]) for o in outs.disassemble_into_single_device_arrays()
    ]


def run_whale(tool, text, arguments, results, flags):
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (
            os.path.join(folder, n) for n in ("in.mlir", "in.bin", "out.bin")
        )
        with open(source, "w") as f:
            f.write(text)
        with open(inputs, "wb") as f:
            for a in arguments:
                f.write(np.ascontiguousarray(a).tobytes())
        process = subprocess.run(
            [tool, source, "--arguments", inputs, "--results", outputs, *flags],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if process.returncode != 0:
            raise RuntimeError(process.stderr[:1500])
        with open(outputs, "rb") as f:
            data = f.read()
    values, position = [], 0
    for shape, name in results:
        dtype = np.dtype(DTYPES[name])
        count = int(np.prod(shape, dtype=np.int64))
        values.append(
            np.frombuffer(data, dtype, count, position).reshape(shape)
        )
        position += count * dtype.itemsize
    return values, process.stderr


def difference(ours, theirs):
    """The relative difference, infinite where one is not a number alone."""
    if ours.dtype.kind in "iub":
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if ours.size == 0:
        return 0.0
    special = ~(np.isfinite(ours) & np.isfinite(theirs))
    if not np.array_equal(ours[special], theirs[special], equal_nan=True):
        return np.inf
    ours, theirs = ours[~special], theirs[~special]
    if ours.size == 0:
        return 0.0
    scale = max(np.max(np.abs(theirs)), 1e-30)
    return float(np.max(np.abs(ours - theirs)) / scale)


def check(path, options, flags):
    """Compares one file and prints a line; 0 if the results agree."""
    name = os.path.basename(path)
    try:
        with open(path) as f:
            context, module = load(f.read())
        with context:
            function = next(
                op for op in module.body.operations
                if str(getattr(op, "name", "")).strip('"') == "main"
            )  # fmt: skip
            types = function.type
            inputs, results = describe(types.inputs), describe(types.results)
            text = module.operation.get_asm(print_generic_op_form=True)
        rng = np.random.default_rng(options.seed)
        arguments = [make_argument(rng, *a, options.extreme) for a in inputs]
        expected = run_xla(context, module, arguments)
        got, log = run_whale(options.tool, text, arguments, results, flags)
        worst, verdict = 0.0, "ok"
        for number, (g, e, (_, dtype)) in enumerate(
            zip(got, expected, results, strict=True)
        ):
            d = difference(g, e)
            if options.verbose:
                print(f"  {number} {dtype}{e.shape} {d:.2e}")
            limit = options.tolerance or max(
                [TOLERANCES.get(dtype, 0.1)]
                + [TOLERANCES[t] for t in ("bf16", "f16") if f"x{t}>" in text]
            )
            if d > limit:
                verdict = f"WRONG (result {number}, {dtype}{e.shape})"
            worst = max(worst, d)
        if options.verbose:
            print(log, end="")
        print(f"{verdict:8} {worst:.2e} {name}", flush=True)
        return int(verdict != "ok")
    except Exception as e:  # A file that fails must not hide the others.
        print(f"FAILED   {name}: {str(e)[:600]}", flush=True)
        return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tool")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--extreme", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    flags = ["--share"] if options.share else []
    bad = 0
    for path in options.files:
        # XLA may take the process down with it.
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(check(path, options, flags))
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(f"CRASHED  {os.path.basename(path)}", flush=True)
        bad += status != 0
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
