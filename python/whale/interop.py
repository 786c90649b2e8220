"""Makes `wh.Array` a type that JAX's transformations take.

JAX looks up the exact type of a value in some tables, for which it has no
public functions yet. This module alone touches them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax._src
from jax._src import core
from jax._src.interpreters import mlir, pxla

from whale.array import Array
from whale.versions import RANGE


def _plain(array: Array) -> jax.Array:
    return array.__jax_array__()


def _aval(array: Array) -> core.ShapedArray:
    return array.aval


def _shard(arrays: Any, *rest: Any) -> Any:
    # Keys and other arrays are of one class here, and of two in JAX.
    results: list[Any] = []
    for array, *details in zip(arrays, *rest):
        value = array.__jax_array__()
        handler = pxla.shard_arg_handlers[type(value)]
        results += handler([value], *([detail] for detail in details))
    return results


def _constant(array: Array, *rest: Any) -> Any:
    value = array.__jax_array__()
    return mlir.get_constant_handler(type(value))(value, *rest)


def _add(one: Any, other: Any) -> Any:
    return jax.numpy.add(one, other)


# The tables of `jax._src`, and what `Array` is in each.
_TABLES: Mapping[str, Callable[..., Any]] = {
    "core.pytype_aval_mappings": _aval,
    "dtypes.canonicalize_value_handlers": _plain,
    "interpreters.pxla.shard_arg_handlers": _shard,
    "interpreters.mlir._constant_handlers": _constant,
    "ad_util.raw_jaxval_adders": _add,
}
# The pytrees that the dispatch of compiled functions sees, and nobody else.
_DISPATCH = "tree_util.dispatch_registry"


def register() -> None:
    """Registers `wh.Array` with JAX.

    Raises:
        ImportError: where JAX lacks a table.
    """
    for name, entry in _TABLES.items():
        _table(name)[Array] = entry
    _table(_DISPATCH).register_node(
        Array,
        lambda array: ((array.__jax_array__(),), None),
        lambda _, children: children[0],
    )


def _table(name: str) -> Any:
    try:
        return operator.attrgetter(name)(jax._src)
    except AttributeError:
        raise ImportError(
            f"jax {jax.__version__} has no jax._src.{name}, where wh.Array is "
            f"to be registered; install a version from {RANGE}"
        ) from None
