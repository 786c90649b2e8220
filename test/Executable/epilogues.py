"""Training steps whose products take GELU, its gradient and those of biases.

usage: epilogues.py

What a step gives on an emulated GPU and on the CUDA device of a test machine
must differ from what it gives on the processor, which has no epilogues, by at
most 1e-4 of each tensor's magnitude (2e-2 in bf16). Each of the products that
could have an epilogue has it, and none has where GELU is exact or the
configuration says no.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import gpu_steps
import jax
import jax.numpy as jnp
import numpy as np
from cases import Tensor
from run import compiled, run_compiled

import whale as wh
from whale.dtypes import element_name

GELU = "gelu_aux_bias dgelu_bgrad bias"
# By name: the type, whether the backward pass computes GELU again, whether it
# is the approximate one, the configuration, and the epilogues.
CASES: dict[str, tuple[Any, bool, bool, dict[str, Any], str]] = {
    "f32": (jnp.float32, True, True, {}, "gelu_bias " + GELU),
    "bf16": (jnp.bfloat16, False, True, {}, GELU),
    "exact": (jnp.float32, False, False, {}, "bias"),
    "none": (jnp.float32, False, True, {"gpu.epilogues": False}, ""),
}


def make_step(
    remat: bool, approximate: bool
) -> Callable[..., tuple[Any, jax.Array]]:
    def block(params: Any, x: jax.Array) -> jax.Array:
        hidden = jax.nn.gelu(x @ params["up"] + params["b"], approximate)
        return hidden @ params["down"]

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        out = (jax.checkpoint(block) if remat else block)(params, x)
        return jnp.mean((out - y).astype(jnp.float32) ** 2)

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        # A projection that a product alone reads.
        seen = (x @ params["see"] + params["c"]) @ params["see"]
        return value, gradient, seen

    return step


def epilogues_of(path: str) -> list[str]:
    """The epilogues of a program's products."""
    found: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            if "epilogue" in node:
                found.append(node["epilogue"]["function"])
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                visit(child)

    for file in pathlib.Path(path).glob("*.json"):
        visit(json.loads(file.read_text()))
    return found


def check(name: str) -> list[str]:
    """What is wrong with a step."""
    dtype, remat, approximate, config, wanted = CASES[name]
    random = np.random.default_rng(1)

    def make(*shape: int) -> jax.Array:
        return jnp.asarray(random.normal(0, 0.3, shape), dtype)

    params = {
        "up": make(32, 64),
        "b": make(64),
        "down": make(64, 40),
        "see": make(32, 32),
        "c": make(32),
    }
    arguments = (params, make(4, 16, 32), make(4, 16, 40))
    wh.init(wh.Config(config))
    step = make_step(remat, approximate)
    text = wh.jit(step, cluster=1).lower(*arguments).as_text()
    flat = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    types = [
        Tensor(element_name(np.dtype(leaf.dtype)), leaf.shape)
        for leaf in jax.tree.leaves(jax.eval_shape(step, *arguments))
    ]
    with compiled(text, "1") as path:
        expected = run_compiled(path, flat, types)[0]
        problems = [f"{name}: {e} on the processor" for e in epilogues_of(path)]
    for target in ("cuda-emulated", "cuda-test"):
        os.environ["WHALE_TEST_CUDA"] = "3"
        try:
            with compiled(text, "1", target) as path:
                found = run_compiled(path, flat, types)[0]
                epilogues = epilogues_of(path)
        finally:
            del os.environ["WHALE_TEST_CUDA"]
        problems += gpu_steps.compare(
            f"{target}, {name}", expected, [found], ""
        )
        if sorted(epilogues) != sorted(wanted.split()):
            problems.append(f"{target}, {name}: epilogues {epilogues}")
    return problems


if __name__ == "__main__":
    faults = [fault for name in CASES for fault in check(name)]
    print("\n".join(faults) or f"{len(CASES)} steps are right")
    sys.exit(bool(faults))
