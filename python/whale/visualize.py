"""``wh.visualize``: a drawing of where an array lies.

In: an array of Whale, or its placement. Out: text: a box with a cell for each
part, in proportion, and in each cell the ranks that hold it. The rows and
columns are the first two dimensions that are cut; what is cut along more of
them is listed. No data is read.
"""

from __future__ import annotations

import itertools
from typing import Any, TextIO

from whale.placement import Index, Placement, named
from whale.tracebacks import api_boundary

# Characters for the whole of a dimension.
_WIDTH, _HEIGHT = 56, 12


@api_boundary
def visualize(array: Any, file: TextIO | None = None) -> None:
    """Prints where an array lies, as `jax.debug.visualize_array_sharding`.

    Args:
        array: a `wh.Array`, or a `wh.Placement`.
        file: where to print, standard output if it is None.

    Raises:
        TypeError: for anything else.
    """
    placement = getattr(array, "placement", array)
    if not isinstance(placement, Placement):
        raise TypeError(
            "wh.visualize takes a wh.Array or a wh.Placement, not "
            f"{type(array).__name__}"
        )
    print(draw(placement), file=file)


def draw(placement: Placement) -> str:
    """The drawing, without an end of line."""
    parts = placement.parts
    title = f"{list(placement.view)}"
    if not parts:
        return f"{title} on no rank"
    cut = [
        dim
        for dim, extent in enumerate(placement.view)
        if any(part[dim] != slice(0, extent) for part in parts.values())
    ]
    if len(cut) > 2:
        return "\n".join(
            [
                f"{title}, cut along dimensions {', '.join(map(str, cut))}",
                *(
                    f"  {named(ranks)}: "
                    + ", ".join(f"{axis.start}:{axis.stop}" for axis in part)
                    for ranks, part in parts.items()
                ),
            ]
        )
    # One dimension that is cut goes down, as the rows of a batch.
    for dim, way in zip(cut, ("down", "across")):
        title += f", dimension {dim} {way}"
    rows = cut[0] if cut else None
    columns = cut[1] if len(cut) > 1 else None
    edges = [_edges(placement, rows), _edges(placement, columns)]
    cells = [
        [_holders(parts, {rows: top, columns: left}) for left in edges[1][:-1]]
        for top in edges[0][:-1]
    ]
    return "\n".join([title, *_grid(cells, edges)])


def _edges(placement: Placement, dim: int | None) -> list[int]:
    """Where parts begin and end along a dimension."""
    if dim is None:
        return [0, 1]
    extent = placement.view[dim]
    found = {0, extent}
    for part in placement.parts.values():
        found |= {part[dim].start, part[dim].stop}
    return sorted(found)


def _holders(
    parts: dict[tuple[int, ...], Index], start: dict[int | None, int]
) -> str:
    """The ranks that hold what begins there."""
    ranks = [
        rank
        for holders, part in parts.items()
        if all(
            dim is None or part[dim].start <= at < part[dim].stop
            for dim, at in start.items()
        )
        for rank in holders
    ]
    return named(tuple(sorted(ranks))) if ranks else "no rank"


def _sizes(edges: list[int], whole: int, least: list[int]) -> list[int]:
    """Characters of each cell: in proportion, with room for what is in it."""
    extent = max(edges[-1], 1)
    return [
        max(room, round(whole * (end - begin) / extent))
        for (begin, end), room in zip(itertools.pairwise(edges), least)
    ]


def _grid(cells: list[list[str]], edges: list[list[int]]) -> list[str]:
    widths = _sizes(
        edges[1],
        _WIDTH,
        [max(len(text) for text in column) + 2 for column in zip(*cells)],
    )
    heights = _sizes(edges[0], _HEIGHT, [1] * len(cells))
    line = "+" + "+".join("-" * width for width in widths) + "+"
    lines = [line]
    for row, height in zip(cells, heights):
        for number in range(height):
            middle = number == (height - 1) // 2
            lines.append(
                "|"
                + "|".join(
                    (text if middle else "").center(width)
                    for text, width in zip(row, widths)
                )
                + "|"
            )
        lines.append(line)
    return lines
