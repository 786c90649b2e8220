"""Drawings of where arrays lie.

Under test: the text of `wh.visualize`, for each number of dimensions that are
cut. A failure means that a drawing shows a rank where it holds nothing, or
leaves one out. No step is run.
"""

import io
import re

import pytest

import whale as wh


def placed(view, *boxes):
    """A placement with boxes given as pairs of start and stop."""
    return wh.Placement(
        tuple(view),
        tuple(
            box if box is None else tuple(slice(*axis) for axis in box)
            for box in boxes
        ),
    )


def drawn(placement):
    file = io.StringIO()
    wh.visualize(placement, file)
    return file.getvalue()


def test_whole():
    text = drawn(placed([4], [(0, 4)], [(0, 4)]))
    assert text.splitlines()[0] == "[4]"
    assert re.findall(r"ranks? [\d, -]*\d", text) == ["ranks 0-1"]


def test_rows_are_in_proportion():
    text = drawn(placed([12, 5], [(0, 9), (0, 5)], [(9, 12), (0, 5)], None))
    lines = text.splitlines()
    assert lines[0] == "[12, 5], dimension 0 down"
    first, second = (lines.index(line) for line in lines if "rank" in line)
    assert lines.count(lines[1]) == 3 and lines[1].startswith("+---")
    inner = [lines.index(lines[1], first), len(lines) - 1]
    assert inner[0] - 2 == 9 and inner[1] - inner[0] - 1 == 3
    assert "rank 0" in lines[first] and "rank 1" in lines[second]


def test_rows_and_columns():
    text = drawn(
        placed(
            [2, 7, 4],
            [(0, 1), (0, 7), (0, 2)],
            [(0, 1), (0, 7), (2, 4)],
            [(1, 2), (0, 7), (0, 2)],
            [(1, 2), (0, 7), (0, 2)],
        )
    )
    assert (
        text.splitlines()[0]
        == "[2, 7, 4], dimension 0 down, dimension 2 across"
    )
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if "rank" in line
    ]
    assert cells == [["rank 0", "rank 1"], ["ranks 2-3", "no rank"]]


def test_more_dimensions_are_listed():
    text = drawn(
        placed([2, 2, 2], [(0, 1), (0, 1), (0, 1)], [(1, 2), (1, 2), (1, 2)])
    )
    assert "cut along dimensions 0, 1, 2" in text
    assert "  rank 1: 1:2, 1:2, 1:2\n" in text


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="takes a wh.Array or a wh.Placement"):
        wh.visualize([1, 2])
    assert drawn(placed([3], None)) == "[3] on no rank\n"
