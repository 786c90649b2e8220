"""``batch_argnums="auto"``: which arguments carry the mini-batch.

In: the leaves of a step's arguments, and which of them are state: donated, or
the next value of a result. Out: the same, those that carry the mini-batch with
its dimension 0, where one choice alone is possible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from whale import waste
from whale.arguments import Argument
from whale.notices import warn


def infer_batch(
    arguments: Sequence[Argument], fed_by: Mapping[int, int]
) -> list[Argument]:
    """Marks all arrays that are no state, which must have as many rows.

    Where anything is donated, that is the state; else what a result feeds is.

    Raises:
        ValueError: where there are none, or some of other sizes.
    """
    state = {a.parameter for a in arguments if a.donated} or {
        arguments[leaf].parameter for leaf in fed_by
    }
    found = [
        a
        for a in arguments
        if a.parameter not in state and waste.may_be_batch(a)
    ]
    sizes: dict[int, str] = {}
    for argument in found:
        sizes.setdefault(argument.aval.shape[0], argument.label)
    if not sizes:
        raise ValueError(
            "batch_argnums='auto': no argument but the state is an array; "
            "leave it out, or name what carries the mini-batch"
        )
    if len(sizes) > 1:
        raise ValueError(
            "batch_argnums='auto': the arguments differ in their first "
            "dimension ("
            + ", ".join(f"{size} in {label}" for size, label in sizes.items())
            + "); name those that carry the mini-batch"
        )
    places = dict.fromkeys(a.parameter for a in found)
    (size,) = sizes
    warn(
        f"batch_argnums='auto' takes {', '.join(a.label for a in found[:6])}"
        f"{', ...' if len(found) > 6 else ''} for the mini-batch of {size} "
        "samples; give " + _as_written(list(places)) + " to say so yourself"
    )
    return [
        dataclasses.replace(a, batch_dim=0) if a in found else a
        for a in arguments
    ]


def _as_written(places: Sequence[int | str]) -> str:
    numbers = tuple(p for p in places if isinstance(p, int))
    names = tuple(p for p in places if isinstance(p, str))
    parts = [f"batch_argnums={numbers}"] if numbers else []
    parts += [f"batch_argnames={names}"] if names else []
    return " and ".join(parts)
