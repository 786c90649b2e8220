"""Lets `jax.jit`, `jax.grad` and the rest take a `wh.Array` as an argument.

JAX calls ``__jax_array__`` in `jax.numpy` functions alone; a type that its
transformations take has to be registered with them, for which there is no
public function yet.
"""

from __future__ import annotations

from typing import Any

import jax
from jax._src import core, dtypes
from jax._src.interpreters import pxla

from whale.array import Array, KeyArray


def _aval(array: Array) -> core.AbstractValue:
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        return core.typeof(array.__jax_array__())
    return core.ShapedArray(array.shape, array.dtype)


def _shard(arrays: Any, *rest: Any) -> Any:
    values = [array.__jax_array__() for array in arrays]
    return pxla.shard_arg_handlers[type(values[0])](values, *rest)


def register() -> None:
    """Registers `wh.Array` with JAX."""
    for kind in (Array, KeyArray):
        core.pytype_aval_mappings[kind] = _aval
        dtypes.register_canonicalize_value_handler(kind, Array.__jax_array__)
        pxla.shard_arg_handlers[kind] = _shard
