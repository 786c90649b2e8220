"""``wh.Placement``: which part of an array each rank holds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

Index: TypeAlias = tuple[slice, ...]


@dataclasses.dataclass(frozen=True)
class Placement:
    """Which part of an array is on each rank.

    Parts are boxes in `view`, a shape with the array's elements in the same
    order. That is the array's own shape, unless a dimension is cut in pieces
    that are no ranges of it: of heads times features, for instance. Typed PRNG
    keys have their words as the last dimensions.
    """

    view: tuple[int, ...]
    # By rank the index of its part in the view; None where it holds nothing.
    indices: tuple[Index | None, ...]

    @staticmethod
    def of(entry: Mapping[str, Any]) -> Placement:
        """The placement of an argument or result of a program's manifest."""
        return Placement(
            tuple(entry["view"]), tuple(map(_index, entry["boxes"]))
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that hold a part."""
        return tuple(
            rank for rank, part in enumerate(self.indices) if part is not None
        )

    @functools.cached_property
    def parts(self) -> dict[tuple[int, ...], Index]:
        """The distinct parts, each with the ranks that hold it."""
        # Slices cannot be hashed in every version of Python.
        held: dict[Any, tuple[list[int], Index]] = {}
        for rank, part in enumerate(self.indices):
            if part is not None:
                key = tuple((axis.start, axis.stop) for axis in part)
                held.setdefault(key, ([], part))[0].append(rank)
        return {tuple(ranks): part for ranks, part in held.values()}

    @property
    def is_replicated(self) -> bool:
        """Whether every rank that holds a part holds the whole."""
        whole = tuple(slice(0, extent) for extent in self.view)
        return all(part == whole for part in self.parts.values())

    def __str__(self) -> str:
        parts = "; ".join(
            f"{named(ranks)}: {_written(part, self.view)}"
            for ranks, part in self.parts.items()
        )
        return f"{list(self.view)} on {parts or 'no rank'}"

    def __repr__(self) -> str:
        return f"Placement({self})"


def _index(box: Any) -> Index | None:
    if box is None:
        return None
    return tuple(
        slice(start, start + size) for start, size in zip(*box, strict=True)
    )


def named(ranks: tuple[int, ...]) -> str:
    """Ranks as one names them: ``ranks 0-2, 5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    names = ", ".join("-".join(map(str, run)) for run in runs)
    return f"rank{'s' if len(ranks) > 1 else ''} {names}"


def _written(part: Index, view: tuple[int, ...]) -> str:
    """An index as one writes it; a whole dimension is a colon."""
    if part == tuple(slice(0, extent) for extent in view):
        return "all"
    ranges = [
        f"{axis.start}:{axis.stop}" if axis != slice(0, extent) else ":"
        for axis, extent in zip(part, view, strict=True)
    ]
    return f"[{', '.join(ranges)}]"
