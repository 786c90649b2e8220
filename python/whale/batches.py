"""The part of a batch that each of several processes loads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whale import distributed, native
from whale.array import Array, Kind
from whale.dtypes import numpy_dtype
from whale.placement import Index, Placement
from whale.program import Program, host_handle


def rows_of(
    program: Program, index: int, dim: int, process: int
) -> list[slice]:
    """Which rows of an argument the ranks of a process need, in order.

    Args:
        program: what takes the argument.
        index: which leaf of the arguments.
        dim: its batch dimension.
        process: the number of the process.
    """
    leaf = program.signature.arguments[index]
    placement = Placement.of(program.manifest["arguments"][index])
    needed = np.zeros(leaf.shape[dim], bool)
    for rank, part in enumerate(placement.indices):
        if part is not None and program.native.process_of(rank) == process:
            needed[_rows(leaf.shape, dim, placement.view, part)] = True
    edges = np.flatnonzero(np.diff(needed, prepend=False, append=False))
    return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def from_rows(program: Program, index: int, dim: int, rows: Any) -> Array:
    """An argument of which this process has its own rows.

    Args:
        program: what takes the argument.
        index: which leaf of the arguments.
        dim: its batch dimension.
        rows: of the argument's dtype, and of its shape but for the batch
            dimension, which has the rows of `rows_of` one after the other.

    Raises:
        ValueError: for another shape or dtype.
    """
    leaf = program.signature.arguments[index]
    process = distributed.process_index()
    slices = rows_of(program, index, dim, process)
    count = sum(part.stop - part.start for part in slices)
    shape = (*leaf.shape[:dim], count, *leaf.shape[dim + 1 :])
    rows = np.asarray(rows)
    if rows.shape != shape or rows.dtype != numpy_dtype(leaf.dtype):
        raise ValueError(
            f"{leaf.label}: process {process} gives {rows.dtype}"
            f"{list(rows.shape)}; its rows are {slices}: "
            f"{leaf.dtype}{list(shape)}"
        )
    # Pages that are never written take no memory.
    whole = np.zeros(leaf.shape, rows.dtype)
    before = (slice(None),) * dim
    start = 0
    for part in slices:
        size = part.stop - part.start
        whole[(*before, part)] = rows[(*before, slice(start, start + size))]
        start += size
    handle = native.guarded(
        program.native.place, index, host_handle(whole, leaf)
    )
    entry = program.manifest["arguments"][index]
    return Array(handle, Kind(leaf.aval, leaf.key, entry, program.native))


def _rows(
    shape: tuple[int, ...], dim: int, view: tuple[int, ...], part: Index
) -> np.ndarray:
    """The rows of dimension `dim` that a box of a view has elements of."""
    if dim == 0:
        # Rows are whole where the first dimensions of the view have as many
        # elements as the batch has rows.
        for outer in range(len(view) + 1):
            if math.prod(view[:outer]) == shape[0]:
                rows = np.arange(shape[0]).reshape(view[:outer])
                return rows[part[:outer]].ravel()
    elements = np.arange(math.prod(shape)).reshape(view)[part].ravel()
    return np.unique(np.unravel_index(elements, shape)[dim])
