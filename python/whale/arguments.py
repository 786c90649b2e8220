"""The leaves of a step's arguments, as the compiler gets them."""

from __future__ import annotations

import dataclasses

import jax

from whale.parameters import Parameter


@dataclasses.dataclass(frozen=True)
class Argument:
    """What the compiler gets about one leaf of the arguments."""

    aval: jax.ShapeDtypeStruct
    label: str
    # Of the function: its position, or its name if only a keyword gives it.
    parameter: Parameter
    donated: bool
    batch_dim: int | None
    # Where another program has it, as the compiler reads it.
    place: str | None = None
