"""The compiled extension: the compiler and the runtime, in C++."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class CompileError(Exception):
    """Holds the compiler's diagnostics, one a line."""

class RuntimeError(Exception):
    """Names the file, field, tensor, or rank and instruction at fault."""

def compile(
    text: str,
    cluster: str,
    path: str,
    *,
    target: str,
    dump_phases_to: str = "",
    explain: bool = False,
) -> list[str]:
    """Compiles annotated StableHLO into the directory `path`.

    `cluster` is a cluster file's path, its text, or a number of CPU ranks.
    Returns warnings and remarks.
    """

class Array:
    """A tensor in shards, one for each rank."""

    @staticmethod
    def from_host(
        data: NDArray[np.uint8], dtype: str, shape: Sequence[int]
    ) -> Array:
        """Reads `data` in place; it must not change while it is in use."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def is_donated(self) -> bool: ...
    def to_host(self) -> NDArray[np.uint8]:
        """Gathers the tensor's bytes into new memory, row-major."""

class Program:
    """A program directory in memory, with the threads of its ranks."""

    def __init__(self, path: str) -> None: ...
    def run(self, arrays: Sequence[Array]) -> tuple[list[Array], str]:
        """Runs one step: the results, and its statistics as JSON."""
