"""Runs a program on the processor and on an emulated GPU, whose threads run in
several orders."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
from cases import Tensor
from run import compiled, run_compiled

from whale import native
from whale.dtypes import element_name

SEED = "WHALE_EMULATOR_SEED"
# Of the orders of threads in which tests run a program.
SEEDS = ["0", "29"]
if "WHALE_TEST_FULL" in os.environ:
    SEEDS += ["1", "2", "3", "4", "5", "77"]


def describe(out_info: Any) -> list[Tensor]:
    return [
        Tensor(element_name(np.dtype(leaf.dtype)), leaf.shape)
        for leaf in jax.tree.leaves(out_info)
    ]


def run_text(text: str, arguments: Any, out_info: Any) -> list[np.ndarray]:
    """The results on the processor."""
    flat = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    with compiled(text, "1") as path:
        return run_compiled(path, flat, describe(out_info))[0]


def run_orders(
    lowered: Any, arguments: Any
) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """The processor's results, and the GPU's in the order of each of SEEDS.

    Args:
        lowered: a `jax.stages.Lowered`, or what has as_text and out_info.
    """
    text = lowered.as_text(debug_info=True)
    flat = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    types = describe(lowered.out_info)
    expected = run_text(text, arguments, lowered.out_info)
    runs = []
    with compiled(text, "1", "cuda-emulated") as path:
        for seed in SEEDS:
            os.environ[SEED] = seed
            runs.append(run_compiled(path, flat, types)[0])
        # A seed that was not read would not be missed either.
        os.environ[SEED] = "none"
        try:
            run_compiled(path, flat, types)
        except native.extension().RuntimeError as error:
            assert SEED in str(error), error
        else:
            raise AssertionError(f"{SEED} was not read")
        finally:
            del os.environ[SEED]
    return expected, runs
