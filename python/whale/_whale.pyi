"""The compiled extension: the runtime, in C++."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Result = TypeVar("_Result")

class RuntimeError(Exception):
    """Names the file, field, tensor, or rank and instruction at fault."""

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
    @property
    def fate(self) -> str:
        """What has become of a donated array: "donated to a program"."""

    def to_host(self) -> NDArray[np.uint8]:
        """Gathers the tensor's bytes into new memory, row-major."""

class Program:
    """A program directory in memory, with the threads of its ranks."""

    def __init__(self, path: str) -> None: ...
    def run(
        self, arrays: Sequence[Array], in_main_thread: bool
    ) -> tuple[list[Array], str]:
        """Runs one step: the results, and its statistics as JSON.

        In the main thread, what a signal handler raises ends the step.
        """

class Staging:
    """A directory under construction, beside the one that it will replace.

    Its name is recognized, and it is locked while this process lives: what a
    process that was killed has left is removed by the next one.
    """

    def __init__(self, path: str) -> None: ...
    @property
    def place(self) -> str:
        """Where the directory is to be made."""

    def commit(self) -> None:
        """Puts it in the place of a program, or where nothing stands."""

    def discard(self) -> None:
        """Removes it, except in a forked child."""

def may_hold_program(path: str) -> bool:
    """Whether `path` is a program, an empty directory, or nothing."""

def read_program(path: str, read: Callable[[str], _Result]) -> _Result:
    """Calls `read` with the directory of a program.

    Once more where another program took its place meanwhile.
    """
