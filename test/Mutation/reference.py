"""What XLA computes: run as a process of its own, which may crash or hang.

Reads a pickled (text, arguments) from standard input for each request, and
writes a pickled answer: ("results", arrays, arrays of arguments changed in the
last bits) or ("refused", message).
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, cast

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# It counts the trips of some loops wrongly: of those with steps near 2**31, and
# of those whose condition (>=, a step upwards) is false at once.
os.environ["XLA_FLAGS"] = (
    "--xla_disable_hlo_passes="
    "simplify-while-loops,while-loop-trip-count-annotator"
)

import jax
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
from jaxlib import lapack


def prepare(operation: Any) -> None:
    """Removes Whale's attributes, which mean nothing to XLA, and what XLA
    lacks."""
    for name in list(operation.attributes.keys()):
        if name.startswith("whale."):
            del operation.attributes[name]
        elif name in ("arg_attrs", "res_attrs"):
            operation.attributes[name] = ir.ArrayAttr.get([
                ir.DictAttr.get({
                    entry.name: entry.attr
                    for entry in cast(Any, ir.DictAttr(dictionary))
                    if not entry.name.startswith("whale.")
                })
                for dictionary in ir.ArrayAttr(operation.attributes[name])
            ])  # fmt: skip
    for region in operation.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                prepare(inner.operation)
    if operation.name == "stablehlo.cbrt":
        expand_complex_cbrt(operation)


def expand_complex_cbrt(operation: Any) -> None:
    """Writes the cube root of complex numbers, which StableHLO has and XLA
    refuses, as the power that it is the principal value of."""
    type_ = operation.results[0].type
    element = ir.RankedTensorType(type_).element_type
    if not isinstance(element, ir.ComplexType):
        return
    is_wide = isinstance(element.element_type, ir.F64Type)
    third: Any = np.full(
        ir.RankedTensorType(type_).shape,
        1 / 3,
        np.complex128 if is_wide else np.complex64,
    )
    with ir.InsertionPoint(operation), operation.location:
        exponent = hlo.constant(ir.DenseElementsAttr.get(third, type=element))
        power = hlo.power(operation.operands[0], exponent)
    operation.results[0].replace_all_uses_with(power)
    operation.erase()


def changed(arguments: list[np.ndarray], size: float) -> list[np.ndarray]:
    """The arguments, each float a little off, as reassociation makes it."""
    rng = np.random.default_rng(1)
    result = []
    for value in arguments:
        if value.dtype.kind in "iub":
            result.append(value)
            continue
        factor = 1 + size * rng.choice([-1, 1], value.shape)
        with np.errstate(all="ignore"):
            wide = value.astype(
                np.complex128 if value.dtype.kind == "c" else np.float64
            )
            result.append((wide * factor).astype(value.dtype))
    return result


def run(text: str, arguments: list[np.ndarray]) -> tuple:
    device = jax.devices("cpu")[0]
    with jax_mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(text)
            prepare(module.operation)
            # Donation means nothing here, and a wrong one is an error.
            executable = device.client.compile_and_load(
                module,
                xla_client.DeviceList((device,)),
                xla_client.CompileOptions(),
            )
        except Exception as error:  # Whatever it says, it is refused.
            return ("refused", str(error))
    runs = []
    with jax.enable_x64(True):
        for size in (0, 1e-6):
            values = changed(arguments, size) if size else arguments
            buffers = [jax.device_put(value, device) for value in values]
            try:
                outs = executable.execute(buffers)
                runs.append([np.asarray(out) for out in outs])
            except Exception as error:
                return ("refused", str(error))
    return ("results", *runs)


def main() -> None:
    # What JAX calls of LAPACK.
    lapack._lapack.initialize()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Whatever libraries print isn't an answer.
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(run(*request), answers)
        answers.flush()


if __name__ == "__main__":
    main()
