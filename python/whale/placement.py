"""``wh.Placement``: which part of an array each rank holds."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
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

    def text(self) -> str:
        """What the compiler reads, docs/placement.md has it.

        Raises:
            ValueError: where the parts are no splits of splits and replicas.
        """
        region = tuple((0, extent) for extent in self.view)
        parts = {
            rank: tuple((axis.start, axis.stop) for axis in part)
            for rank, part in enumerate(self.indices)
            if part is not None
        }
        tree = _node(parts, region)
        return f"#whale.placement<{list(self.view)} {tree}>"

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


# By dimension where a part begins and ends.
_Region: TypeAlias = tuple[tuple[int, int], ...]


def _volume(region: _Region) -> int:
    return math.prod(end - start for start, end in region)


def _node(parts: Mapping[int, _Region], region: _Region) -> str:
    """The ranks that hold a region, as a tree of splits and replicas."""
    ranks = list(parts)
    empty = [rank for rank in ranks if _volume(parts[rank]) == 0]
    if len(empty) == len(ranks) or set(parts.values()) == {region}:
        kind = f"replicate {len(ranks)} " if len(ranks) > 1 else ""
        return f"{kind}on {ranks}"
    if empty:
        held = {rank: parts[rank] for rank in ranks if rank not in empty}
        extent = region[0][1] - region[0][0]
        children = [_node(held, region), *(f"on [{rank}]" for rank in empty)]
        return _split(0, [extent, *[0] * len(empty)], children)
    for dim, (low, high) in enumerate(region):
        cuts = _cuts([part[dim] for part in parts.values()], low, high)
        if len(cuts) == 2:
            continue
        children = []
        for start, end in itertools.pairwise(cuts):
            inside = (*region[:dim], (start, end), *region[dim + 1 :])
            held = {r: p for r, p in parts.items() if start <= p[dim][0] < end}
            children.append(_node(held, inside))
        sizes = [end - start for start, end in itertools.pairwise(cuts)]
        return _split(dim, sizes, children)
    return _replicas(parts, region)


def _split(dim: int, sizes: list[int], children: list[str]) -> str:
    leaves = [re.fullmatch(r"on \[(\d+)\]", child) for child in children]
    below = (
        "{" + ", ".join(children) + "}"
        if None in leaves
        else f"on [{', '.join(leaf[1] for leaf in leaves if leaf)}]"
    )
    return f"split {dim} ({', '.join(map(str, sizes))}) {below}"


def _cuts(intervals: list[tuple[int, int]], low: int, high: int) -> list[int]:
    """Where a dimension can be cut, so that no interval is: with its ends."""
    cuts = [low]
    reached = low
    for start, end in sorted(set(intervals)):
        if start >= reached > cuts[-1]:
            cuts.append(reached)
        reached = max(reached, end)
    return [*cuts, high]


def _replicas(parts: Mapping[int, _Region], region: _Region) -> str:
    """Several groups, each of which holds all of a region by itself."""
    groups: list[dict[int, _Region]] = [{}]
    held = 0
    for rank, part in parts.items():
        if held == _volume(region):
            groups.append({})
            held = 0
        groups[-1][rank] = part
        held += _volume(part)
    if held != _volume(region) or len(groups) == 1:
        raise ValueError(
            f"no splits and replicas have the parts {dict(parts)} of {region}"
        )
    children = ", ".join(_node(group, region) for group in groups)
    return f"replicate {len(groups)} {{{children}}}"
