"""Result pytrees as JSON, so that a saved program gives the same ones back.

Dictionaries, lists, tuples, None and named tuples are written out. Any other
node (a flax state, a dataclass) is written as the place in the arguments where
an equal node stands: training state comes back in the tree it was passed in.
"""

from __future__ import annotations

import collections
import importlib
from typing import Any, TypeAlias

import jax

TreeDef: TypeAlias = jax.tree_util.PyTreeDef
Json: TypeAlias = Any

_LEAF = object()


def encode(tree: TreeDef, arguments: TreeDef) -> Json:
    """Describes `tree`, with references into the tree of the arguments.

    Raises:
        TypeError: for a node that is neither known nor in the arguments.
    """
    data = tree.node_data()
    if data is None:
        return "leaf"
    kind, detail = data
    if kind is type(None):
        return "none"
    children = tree.children()
    if kind in (list, tuple):
        return {kind.__name__: [encode(c, arguments) for c in children]}
    if kind in (dict, collections.OrderedDict) and all(
        isinstance(key, (str, int)) for key in detail
    ):
        name = "dict" if kind is dict else "ordered_dict"
        values = [encode(child, arguments) for child in children]
        return {name: [[key, value] for key, value in zip(detail, values)]}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {
            "namedtuple": f"{kind.__module__}:{kind.__qualname__}",
            "fields": [encode(child, arguments) for child in children],
        }
    path = _find(tree, arguments)
    if path is None:
        raise TypeError(
            f"the result holds a {kind.__module__}.{kind.__qualname__}, which "
            "a saved program cannot make again: no argument holds an equal "
            "one. Return its leaves in a dictionary or a tuple instead"
        )
    return {"argument": path}


def decode(description: Json, arguments: TreeDef) -> TreeDef:
    """The tree that `encode` described, for these arguments.

    Raises:
        ValueError: where the description is not one.
    """
    try:
        return jax.tree.structure(_example(description, arguments))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"damaged result tree: {error!r}") from None


def _example(description: Json, arguments: TreeDef) -> Any:
    if description == "leaf":
        return _LEAF
    if description == "none":
        return None
    if "list" in description:
        return [_example(child, arguments) for child in description["list"]]
    if "tuple" in description:
        return tuple(
            _example(child, arguments) for child in description["tuple"]
        )
    for name, kind in (
        ("dict", dict),
        ("ordered_dict", collections.OrderedDict),
    ):
        if name in description:
            return kind(
                (key, _example(child, arguments))
                for key, child in description[name]
            )
    if "namedtuple" in description:
        named_tuple = _named_tuple(description["namedtuple"])
        return named_tuple(
            *(_example(child, arguments) for child in description["fields"])
        )
    node = arguments
    for index in description["argument"]:
        node = node.children()[index]
    return jax.tree.unflatten(node, [_LEAF] * node.num_leaves)


def _named_tuple(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        kind: Any = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError, ValueError):
        raise ValueError(f"result tree: there is no {path!r} here") from None
    if not (
        isinstance(kind, type)
        and issubclass(kind, tuple)
        and hasattr(kind, "_fields")
    ):
        raise ValueError(f"result tree: {path!r} is no named tuple")
    return kind


def _find(tree: TreeDef, within: TreeDef) -> list[int] | None:
    if tree == within:
        return []
    for index, child in enumerate(within.children()):
        path = _find(tree, child)
        if path is not None:
            return [index, *path]
    return None
