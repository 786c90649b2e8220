"""``feedback``: which result is the next step's value of which argument.

In: the leaves and trees of a step's arguments and results, at the top level.
Out: pairs of leaves, as the user says or as only one match has them
(`matching`). Each argument is compared with each result.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from whale.arguments import Argument
from whale.matching import only_longest_match
from whale.signature import Leaf


def find_feedback(
    arguments: Sequence[Argument],
    in_tree: jax.tree_util.PyTreeDef,
    results: Sequence[Any],
    out_tree: jax.tree_util.PyTreeDef,
    feedback: Mapping[int, int] | None,
) -> dict[int, int]:
    """Which result is the next step's value of which argument, by leaf."""
    # The top-level positions: each a tree and its leaves' indices.
    given: dict[int, tuple[Any, list[int]]] = {}
    args_tree, kwargs_tree = in_tree.children()
    offset = 0
    for tree in [*args_tree.children(), *kwargs_tree.children()]:
        leaves = list(range(offset, offset + tree.num_leaves))
        offset += tree.num_leaves
        place = arguments[leaves[0]].parameter if leaves else None
        if isinstance(place, int):
            given[place] = (tree, leaves)
    data = out_tree.node_data()
    parts = (
        out_tree.children() if data and data[0] in (tuple, list) else [out_tree]
    )
    starts = itertools.accumulate((p.num_leaves for p in parts), initial=0)
    taken = [
        (tree, list(range(start, start + tree.num_leaves)))
        for tree, start in zip(parts, starts)
    ]

    kinds = _Kinds()
    given_kinds = {
        position: kinds.number(tree, [arguments[i].aval for i in leaves])
        for position, (tree, leaves) in given.items()
    }
    taken_kinds = [
        kinds.number(tree, [results[i] for i in leaves])
        for tree, leaves in taken
    ]
    pairs: Sequence[tuple[int, int]]
    if feedback is None:
        state = sorted(
            p for p in given if _may_be_state(arguments, given[p][1])
        )
        match = only_longest_match(
            [given_kinds[position] for position in state], taken_kinds
        )
        pairs = [(state[i], result) for i, result in match]
    else:
        pairs = tuple(feedback.items())
        for number in itertools.chain(*pairs):
            if isinstance(number, bool) or not isinstance(number, int):
                raise ValueError(f"feedback: not a position: {number!r}")
        for position, result in pairs:
            if position not in given:
                raise ValueError(
                    f"feedback: there is no argument {position} with arrays in "
                    f"this call, only {sorted(given)}"
                )
            if not 0 <= result < len(taken):
                raise ValueError(
                    f"feedback: there is no result {result}; the step has "
                    f"{len(taken)}"
                )
            if given_kinds[position] != taken_kinds[result]:
                raise ValueError(
                    f"feedback: result {result} is not of the tree, shapes and "
                    f"dtypes of argument {position}"
                )
    return {
        leaf: other
        for position, result in pairs
        for leaf, other in zip(given[position][1], taken[result][1])
    }


class _Kinds:
    """Numbers trees with the shapes and dtypes of their leaves."""

    def __init__(self) -> None:
        # Data of trees may have no hash.
        self._known: dict[tuple[Leaf, ...], list[tuple[Any, int]]] = {}
        self._count = 0

    def number(self, tree: Any, leaves: Sequence[Any]) -> int:
        """Equal for those that are alike."""
        key = tuple(Leaf.of(leaf, "") for leaf in leaves)
        known = self._known.setdefault(key, [])
        for other, number in known:
            if tree == other:
                return number
        self._count += 1
        known.append((tree, self._count))
        return self._count


def _may_be_state(arguments: Sequence[Argument], leaves: list[int]) -> bool:
    """Batches come from the data, and a Python number is a setting."""
    given = [arguments[leaf] for leaf in leaves]
    return all(a.batch_dim is None for a in given) and not all(
        a.aval.weak_type for a in given
    )
