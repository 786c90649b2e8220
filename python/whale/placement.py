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
    if set(parts.values()) == {region} or (
        len(parts) == 1 and _volume(region) == 0
    ):
        kind = f"replicate {len(parts)} " if len(parts) > 1 else ""
        return f"{kind}on {list(parts)}"
    # Where all are empty, they are cut as others are.
    held = {r: p for r, p in parts.items() if _volume(p) > 0} or dict(parts)
    dims = range(len(region))
    # Ranks without a part first: these have all of other dimensions.
    for dim in sorted(
        dims,
        key=lambda dim: (
            not any(
                _is_nothing_of(part, region, dim) for part in parts.values()
            )
        ),
    ):
        parts_of_dim = _children(parts, held, region, dim)
        if len(parts_of_dim) > 1:
            return _split(
                dim,
                [end - start for start, end, _ in parts_of_dim],
                [
                    _node(
                        own, (*region[:dim], (start, end), *region[dim + 1 :])
                    )
                    for start, end, own in parts_of_dim
                ],
            )
    if len(held) == len(parts):
        return _replicas(parts, region)
    # What is empty in several dimensions is put at the end of one.
    children = [_node(held, region)]
    children += [f"on [{rank}]" for rank in parts if rank not in held]
    extent = region[0][1] - region[0][0]
    return _split(0, [extent, *[0] * (len(children) - 1)], children)


def _children(
    parts: Mapping[int, _Region],
    held: Mapping[int, _Region],
    region: _Region,
    dim: int,
) -> list[tuple[int, int, dict[int, _Region]]]:
    """Where a dimension can be cut, and who has what between two cuts."""
    low, high = region[dim]
    cuts = _cuts([part[dim] for part in held.values()], low, high)
    children: list[tuple[int, int, dict[int, _Region]]] = [
        (
            start,
            end,
            {
                rank: part
                for rank, part in parts.items()
                if start <= part[dim][0]
                and part[dim][1] <= end
                and not (rank not in held and _is_nothing_of(part, region, dim))
            },
        )
        for start, end in itertools.pairwise(cuts)
    ]
    placed = {rank for _, _, own in children for rank in own}
    for rank, part in parts.items():
        if rank not in placed:
            start = part[dim][0]
            children.append((start, start, {rank: part}))
    return sorted(children, key=lambda child: child[:2])


def _is_nothing_of(part: _Region, region: _Region, dim: int) -> bool:
    """Whether a part lacks nothing of a region but all of a dimension."""
    return part[dim][0] == part[dim][1] and all(
        own == whole
        for index, (own, whole) in enumerate(zip(part, region))
        if index != dim
    )


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
        if held == _volume(region) and _volume(part) > 0:
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
