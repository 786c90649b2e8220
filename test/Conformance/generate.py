#!/usr/bin/env python
"""Writes conformance cases for every operation and element type.

    generate.py FOLDER [--only NAMES] [--part NAMES] [--seed N] [--texts]

Each case is NAME.mlir with one small function @main, and NAME.npz with its
arguments (random numbers and those that arithmetic goes wrong with) and the
results that XLA's CPU backend gives. run.py runs them. With --texts there are
only the .mlir files, and XLA is not asked. NAMES is a regular expression;
--part counts unless WHALE_TEST_FULL is in the environment.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import numpy as np
from arithmetic import conversions, elementwise
from factorizations import factorizations
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax, lapack
from jaxlib.mlir import ir
from movement import indexing, shapes
from reductions import contractions, reductions
from specification import (
    alone,
    constants,
    normalized,
    several,
    sized,
    spelled,
)
from structures import algebra, control, functions
from values import Values, numpy_dtype

FAMILIES = (
    elementwise, conversions, shapes, indexing, reductions, contractions,
    algebra, control, functions, spelled, several, sized, normalized, alone,
    constants, factorizations,
)  # fmt: skip


def run_xla(context, source: str, arguments: list) -> list[np.ndarray]:
    """The results of @main on one CPU. Raises what XLA raises."""
    device = jax.devices("cpu")[0]
    values = list(arguments)
    if not values:
        # jaxlib crashes where there is nothing to pass.
        source = source.replace("@main()", "@main(%unused: tensor<f32>)")
        values = [np.float32(0)]
    with context:
        module = ir.Module.parse(source)
        program = device.client.compile_and_load(
            module, _jax.DeviceList((device,)), _jax.CompileOptions()
        )
    arrays = [jax.device_put(value, device) for value in values]
    return [np.asarray(array) for array in program.execute(arrays)]


def expect(
    context, name: str, source: str, arguments: list
) -> list[np.ndarray]:
    """What a case should give: XLA's results. Where XLA rounds each of many
    steps to half precision, those of f32, rounded once."""
    for dtype in ("bf16", "f16"):
        if name.startswith("batch_norm_") and f"x{dtype}>" in source:
            wide = [np.asarray(value, np.float32) for value in arguments]
            results = run_xla(context, source.replace(dtype, "f32"), wide)
            return [value.astype(numpy_dtype(dtype)) for value in results]
    return run_xla(context, source, arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression")
    parser.add_argument(
        "--part", default="", help="the same, unless tests are long"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", action="store_true")
    args = parser.parse_args()
    if "WHALE_TEST_FULL" not in os.environ:
        args.only = args.only or args.part
    args.folder.mkdir(parents=True, exist_ok=True)
    context = jax_mlir.make_ir_context()
    lapack._lapack.initialize()
    count, refused = 0, []
    for number, family in enumerate(FAMILIES):
        for name, source, arguments in family(Values(args.seed + number)):
            name = re.sub(r"[<>]", "", name)
            if not re.search(args.only, name):
                continue
            source = source if isinstance(source, str) else source()
            if args.texts:
                (args.folder / f"{name}.mlir").write_text(source)
                count += 1
                continue
            try:
                results = expect(context, name, source, arguments)
            except Exception as error:
                refused.append(f"{name}: {str(error).splitlines()[0]}")
                continue
            tensors: dict[str, Any] = {
                f"arg{i}": value for i, value in enumerate(arguments)
            }
            tensors |= {f"result{i}": value for i, value in enumerate(results)}
            # NumPy's files hold no types of others: only their bits.
            for key, value in tensors.items():
                if value.dtype.isbuiltin != 1:
                    width = 8 * value.dtype.itemsize
                    tensors[key] = value.view(f"uint{width}")
            (args.folder / f"{name}.mlir").write_text(source)
            np.savez(args.folder / f"{name}.npz", **tensors)
            count += 1
    for line in refused:
        print(f"XLA refuses {line}", file=sys.stderr)
    print(f"{count} cases, {len(refused)} that XLA refuses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
