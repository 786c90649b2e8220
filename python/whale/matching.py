"""Which result of a step is the next value of which argument.

In: the kinds of two lists of values, as hashable keys: arguments and results,
in order. Out: the longest match of equal keys that keeps the order of both,
where there is only one.

Lengths of the longest matches of all beginnings and of all ends tell which
pairs are in some longest match; there is one match if there are no more such
pairs than it has. Values without an equal in the other list are in none, and
are left out. If few of the shorter list stay alone, only cells near the
diagonal can matter: the band is widened until no longest match can leave it.

Cost: as long as the lists where these are alike; else rows of vectors of NumPy,
together up to the product of the lengths, and four bytes each.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

# Of the table, 128 MiB: lists of thousands that are not alike at all.
_MOST_CELLS = 1 << 25
# What is in no list: the table has columns beyond the ends of the second one.
_NOTHING = -1


def only_longest_match(
    first: Sequence[Hashable], second: Sequence[Hashable]
) -> tuple[tuple[int, int], ...]:
    """The longest match that keeps the order, as pairs of positions.

    Empty where another one is as long, and where telling would take a table of
    more than 2^25 cells.
    """
    if first == second:
        return tuple((i, i) for i in range(len(first)))
    common = set(first) & set(second)
    numbers = {key: number for number, key in enumerate(common)}
    rows = [i for i, key in enumerate(first) if key in common]
    columns = [j for j, key in enumerate(second) if key in common]
    pairs = _match(
        np.array([numbers[first[i]] for i in rows], np.int32),
        np.array([numbers[second[j]] for j in columns], np.int32),
    )
    return tuple((rows[i], columns[j]) for i, j in pairs)


class _Band:
    """Near the diagonals from the beginnings and the ends of two lists.

    A cell of row i (the first i of `rows`) is of column i + `low` + its index.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, width: int):
        surplus = len(columns) - len(rows)
        self.low = min(0, surplus) - width
        self.size = abs(surplus) + 2 * width + 1
        self.rows = rows
        # So that each row of the band has as many columns.
        before = np.full(-self.low + 1, _NOTHING, np.int32)
        after = np.full(len(rows) + self.low + self.size, _NOTHING, np.int32)
        self.columns = np.concatenate([before, columns, after])

    def equal(self, row: int) -> np.ndarray:
        """For the cells of row + 1: whether the elements before them are
        equal."""
        start = row + 1
        return self.columns[start : start + self.size] == self.rows[row]

    def lengths(self) -> np.ndarray:
        """By row and cell, those of the longest matches of beginnings."""
        table = np.zeros((len(self.rows) + 1, self.size), np.int32)
        for row in range(len(self.rows)):
            best = table[row] + self.equal(row)
            np.maximum(best[:-1], table[row][1:], out=best[:-1])
            np.maximum.accumulate(best, out=table[row + 1])
        return table


def _match(rows: np.ndarray, columns: np.ndarray) -> list[tuple[int, int]]:
    """The same of numbers that occur in both."""
    shorter = min(len(rows), len(columns))
    width = 0
    while True:
        band = _Band(rows, columns, width)
        if (len(rows) + 1) * band.size > _MOST_CELLS:
            return []
        beginnings = band.lengths()
        corner = len(columns) - len(rows) - band.low
        longest = int(beginnings[-1, corner])
        if shorter - longest <= width:
            break
        width = 2 * width + 1
    # From the ends, the band is the same, turned round.
    ends = _Band(rows[::-1], columns[::-1], width).lengths()[::-1, ::-1]
    pairs: list[tuple[int, int]] = []
    for row in range(len(rows)):
        through = beginnings[row] + ends[row + 1] + 1
        for cell in np.flatnonzero(band.equal(row) & (through == longest)):
            pairs.append((row, row + band.low + int(cell)))
        if len(pairs) > longest:
            return []
    return pairs
