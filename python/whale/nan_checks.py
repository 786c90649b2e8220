"""``debug_nans`` of what ``out_like`` makes.

In: what a program gives whose results lie where another one wants them. Out: a
FloatingPointError that names a result with a NaN. Such a program exchanges
nothing, also not whether an operation has made one, so that its results alone
are looked at. Cost: a pass over what this process holds of them.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from whale import config, distributed
from whale.program import Program


def check_made(program: Program, result: Any) -> None:
    """Raises FloatingPointError where a result has a NaN, and it is asked for;
    in all processes."""
    wanted = (
        config.current()
        .nested()
        .get(
            "debug_nans",
            jax.config.jax_debug_nans,  # type: ignore[attr-defined]
        )
    )
    if not wanted:
        return
    leaves = zip(
        jax.tree.leaves(result), program.signature.results, strict=True
    )
    found = next((leaf.label for array, leaf in leaves if _has_nan(array)), "")
    if distributed.job() is not None:
        everyone = distributed.all_gather("NaNs", found.encode())
        found = next((text.decode() for text in everyone if text), "")
    if found:
        raise FloatingPointError(
            f"there is a NaN in {found}; which operation made it is said of "
            "the function under wh.jit without out_like"
        )


def _has_nan(array: Any) -> bool:
    """Whether what this process holds of an array has any."""
    if not jax.numpy.issubdtype(array.dtype, jax.numpy.inexact):
        return False
    return any(
        bool(np.isnan(np.asarray(shard.data)).any())
        for shard in array.addressable_shards
    )
