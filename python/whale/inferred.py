"""``batch_argnums="auto"``: which arguments carry the mini-batch.

In: the leaves of a step's arguments, and which of them are state: donated, or
the next value of a result. Out: the same, those that carry the mini-batch with
its dimension 0, where one choice alone is possible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set

from jax.extend.core import Jaxpr, Literal, Var

from whale import waste
from whale.arguments import Argument
from whale.notices import warn


def infer_batch(
    arguments: Sequence[Argument], fed_by: Mapping[int, int], jaxpr: Jaxpr
) -> list[Argument]:
    """Marks all arrays that are no state, which must have as many rows.

    Where anything is donated, that is the state. Else what a result feeds is,
    unless it may as well be the mini-batch, as where a model gives what has its
    input's shape: then neither is taken.

    Args:
        arguments: the leaves.
        fed_by: what results feed, as leaves and results.
        jaxpr: the step, whose inputs are the leaves.

    Raises:
        ValueError: where there are none, or some of other sizes, or of one
            product's features, or where it may be either of two.
    """
    features = _summed_as_features(jaxpr)
    donated = {a.parameter for a in arguments if a.donated}
    fed = {arguments[leaf].parameter for leaf in fed_by}
    rest = {a.parameter for a in arguments} - fed
    batch = _find(arguments, donated or fed, jaxpr, features)
    if fed and not donated:
        try:
            other = _find(arguments, rest, jaxpr, features)
        except ValueError:
            other = []
        if other:
            raise ValueError(
                f"batch_argnums='auto': the mini-batch may be {_names(batch)}, "
                f"or {_names(other)}, which a result may replace; name what "
                "carries it, or donate the state"
            )
    places = dict.fromkeys(a.parameter for a in batch)
    warn(
        f"batch_argnums='auto' takes {_names(batch)} for the mini-batch of "
        f"{batch[0].aval.shape[0]} samples; give "
        + _as_written(list(places))
        + " to say so yourself"
    )
    return [
        dataclasses.replace(a, batch_dim=0) if a in batch else a
        for a in arguments
    ]


def _names(arguments: Sequence[Argument]) -> str:
    more = ", ..." if len(arguments) > 6 else ""
    return ", ".join(a.label for a in arguments[:6]) + more


def _find(
    arguments: Sequence[Argument],
    state: Set[int | str],
    jaxpr: Jaxpr,
    features: Set[Var],
) -> list[Argument]:
    """What carries the mini-batch if these parameters are the state."""
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
    (size,) = sizes
    for argument, leaf in zip(arguments, jaxpr.invars, strict=False):
        if argument in found and leaf in features:
            raise ValueError(
                f"batch_argnums='auto': {argument.label} may have the {size} "
                "rows of the mini-batch by chance, as a product sums over them "
                "with another dimension of its other operand; name what "
                "carries the mini-batch"
            )
    return found


def _summed_as_features(jaxpr: Jaxpr) -> set[Var]:
    """The inputs whose first dimension a product sums over as a parameter's.

    That of a mini-batch is summed with the samples of the other operand, which
    are its first dimension, too.
    """
    inputs = set(jaxpr.invars)
    return {
        mine
        for (mine, dim), (_, other) in _contracted(jaxpr, {})
        if mine in inputs and dim == 0 and other != 0
    }


# A dimension of a value, before it was transposed or converted.
_Dim = tuple[Var | None, int]


def _shape(value: Var | Literal) -> tuple[int, ...]:
    shape: tuple[int, ...] = getattr(value.aval, "shape", ())
    return shape


def _contracted(
    jaxpr: Jaxpr, known: dict[Var, list[_Dim]]
) -> Iterator[tuple[_Dim, _Dim]]:
    """Pairs of dimensions that products sum over, in both orders."""

    def dims_of(value: Var | Literal) -> list[_Dim]:
        own = None if isinstance(value, Literal) else value
        dims = [(own, dim) for dim in range(len(_shape(value)))]
        return dims if own is None else known.get(own, dims)

    for equation in jaxpr.eqns:
        operands = equation.invars
        name = equation.primitive.name
        if name == "dot_general":
            (lhs, rhs), _ = equation.params["dimension_numbers"]
            for one, other in zip(lhs, rhs, strict=True):
                mine, its = (
                    dims_of(operands[0])[one],
                    dims_of(operands[1])[other],
                )
                yield mine, its
                yield its, mine
        elif name in ("convert_element_type", "copy"):
            known[equation.outvars[0]] = dims_of(operands[0])
        elif name == "transpose":
            dims = dims_of(operands[0])
            order = equation.params["permutation"]
            known[equation.outvars[0]] = [dims[dim] for dim in order]
        for inner in ("jaxpr", "call_jaxpr"):
            called = equation.params.get(inner)
            called = getattr(called, "jaxpr", called)
            if called is None or len(called.invars) != len(operands):
                continue
            # What a loop reads row by row has other dimensions inside.
            known.update(
                (inside, dims_of(value))
                for inside, value in zip(called.invars, operands, strict=True)
                if _shape(inside) == _shape(value)
            )
            yield from _contracted(called, known)


def _as_written(places: Sequence[int | str]) -> str:
    numbers = tuple(p for p in places if isinstance(p, int))
    names = tuple(p for p in places if isinstance(p, str))
    parts = [f"batch_argnums={numbers}"] if numbers else []
    parts += [f"batch_argnames={names}"] if names else []
    return " and ".join(parts)
