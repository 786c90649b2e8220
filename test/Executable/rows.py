"""Functions of rows, as one kernel and as several: the same bits.

usage: rows.py TOOL [--emulated]

TOOL is whale-kernels-test. Each function is run with and without
whale-fuse-rows, on buffers of its own and in place, and beside XLA; with
--emulated on an emulated GPU, beside the processor. Where nothing is fused the
function tests nothing, which is an error, too.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import compare_kernels
import jax
import jax.numpy as jnp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "Conformance")]

from cases import Tensor  # noqa: E402
from run import run_compiled  # noqa: E402

from whale import compiler  # noqa: E402

Function = Callable[..., Any]


def layer_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def masked_softmax(x: jax.Array, scale: jax.Array) -> jax.Array:
    """The mask has some of the row dimensions alone, and uses their indices."""
    rows, columns = x.shape[-2:]
    mask = jnp.arange(rows)[:, None] + 3 >= jnp.arange(columns)
    return jax.nn.softmax(jnp.where(mask, x * scale, -1e9))


def cross_entropy(x: jax.Array, scale: jax.Array) -> jax.Array:
    labels = jnp.arange(x.size // x.shape[-1]).reshape(x.shape[:-1]) % 5
    logits = jax.nn.log_softmax(x * scale)
    return -jnp.take_along_axis(logits, labels[..., None], -1)


def gradient(function: Function) -> Function:
    """The value, and the gradient of a sum with different weights."""

    def loss(x: jax.Array, scale: jax.Array) -> Any:
        value = function(x, scale)
        weights = jnp.arange(value.size, dtype=value.dtype) % 7
        return (value * weights.reshape(value.shape)).sum(), value

    return jax.grad(loss, (0, 1), has_aux=True)


FUNCTIONS = [layer_norm, rms_norm, masked_softmax, cross_entropy]
# Blocks of rows that end early, tails of lanes, several row dimensions.
CASES = [("f32", (3, 37, 100)), ("f32", (2, 3, 16, 129)), ("bf16", (40, 256))]
# For a GPU: several rows in a warp and in a block, several warps in a row.
BLOCK_CASES = [("f32", (2048, 64)), ("bf16", (4, 2, 1536))]
# Rows of which no values are kept.
LONG_CASE = ("f32", (128, 12500))


def run(tool: str, text: str, inputs: Any, results: Any, *flags: str) -> Any:
    values, _ = compare_kernels.run_whale(
        tool, text, inputs, results, list(flags)
    )
    return values


def run_emulated(text: str, inputs: Any, results: Any) -> Any:
    """The same for an emulated GPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.whale"
        compiler.compile(text, "1", path, target="cuda-emulated")
        types = [Tensor(dtype, shape) for shape, dtype in results]
        return run_compiled(path, inputs, types)[0]


def is_fused(text: str, options: str) -> bool:
    """Whether whale-fuse-rows makes a kernel of it."""
    passes = "lower-library-ops", "stablehlo-to-linalg", "fuse-kernels"
    done = subprocess.run(
        [
            "whale-opt",
            "--pass-pipeline=builtin.module(func.func("
            + "".join(f"whale-{name}," for name in passes)
            + f"whale-fuse-rows{{remarks {options}}}))",
            "-o",
            "/dev/null",
        ],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return "one kernel for" in done.stderr


class Case(NamedTuple):
    """A function, lowered."""

    text: str
    arguments: Any
    results: Any


def lower(function: Function, shape: tuple[int, ...], dtype: str) -> Case:
    random = np.random.default_rng(len(shape))
    arguments = [
        random.standard_normal(shape).astype(compare_kernels.DTYPES[dtype]),
        random.standard_normal(shape[-1:]).astype(
            compare_kernels.DTYPES[dtype]
        ),
    ]
    lowered = jax.jit(gradient(function)).lower(*arguments)
    context, module = compare_kernels.load(lowered.as_text())
    with context:
        main = next(
            op for op in module.body.operations if op.name.value == "main"
        )
        results = compare_kernels.describe(main.type.results)
        text = module.operation.get_asm(print_generic_op_form=True)
    return Case(text, arguments, results)


def check_emulated(
    tool: str, function: Function, shape: tuple[int, ...], dtype: str
) -> str | None:
    """What is wrong on an emulated GPU, if anything is."""
    text, arguments, results = lower(function, shape, dtype)
    if not is_fused(text, "target=sm_80"):
        return "nothing is fused"
    fused = run(tool, text, arguments, results)
    emulated = run_emulated(text, arguments, results)
    for number, (a, b) in enumerate(zip(emulated, fused, strict=True)):
        difference = compare_kernels.difference(a, b)
        if difference > compare_kernels.TOLERANCES[dtype]:
            return f"result {number} is {difference:.1e} away"
    return None


def check(
    tool: str, function: Function, shape: tuple[int, ...], dtype: str
) -> str | None:
    """What is wrong, if anything is."""
    text, arguments, results = lower(function, shape, dtype)
    fused = run(tool, text, arguments, results)
    for flags in (["--fuse-rows=false"], ["--share"]):
        other = run(tool, text, arguments, results, *flags)
        for number, (a, b) in enumerate(zip(fused, other, strict=True)):
            if a.tobytes() != b.tobytes():
                return f"result {number} has other bits with {flags[0]}"
    if not is_fused(text, ""):
        return "nothing is fused"
    if dtype == "bf16":  # XLA keeps sums in f32 where jax.grad rounds them.
        return None
    expected = jax.tree.leaves(jax.jit(gradient(function))(*arguments))
    for number, (a, b) in enumerate(zip(fused, expected, strict=True)):
        difference = compare_kernels.difference(a, np.asarray(b))
        if difference > 4 * compare_kernels.TOLERANCES[dtype]:
            return f"result {number} is {difference:.1e} away from XLA's"
    return None


def main() -> None:
    bad = 0
    emulated = "--emulated" in sys.argv
    checks = check_emulated if emulated else check
    is_full = "WHALE_TEST_FULL" in os.environ
    for number, function in enumerate(FUNCTIONS):
        cases = CASES + BLOCK_CASES * emulated
        # Each function has some of the shapes, and each shape some functions.
        cases = cases if is_full else cases[number % 2 :: 2]
        if emulated and function is masked_softmax:
            cases.append(LONG_CASE)
        for dtype, shape in cases:
            wrong = checks(sys.argv[1], function, shape, dtype)
            print(function.__name__, shape, dtype, wrong or "ok")
            bad += wrong is not None
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
