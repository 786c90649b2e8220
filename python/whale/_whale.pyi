"""The compiled extension: the runtime, in C++."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

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
        """Reads `data` in place, until a program copies it."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def is_donated(self) -> bool: ...
    @property
    def fate(self) -> str:
        """What has become of a donated array: "donated to a program"."""

    @property
    def is_ready(self) -> bool:
        """Whether the step that computes it has ended."""

    @property
    def is_done(self) -> bool:
        """Whether that has ended well."""

    def wait(self, in_main_thread: bool) -> None:
        """Waits for the step that computes it, and raises its error.

        In the main thread, what a signal handler raises ends the step.
        """

    def to_host(self, in_main_thread: bool) -> NDArray[np.uint8]:
        """Gathers the tensor's bytes into new memory, row-major.

        Waits as `wait`.
        """

    @property
    def view(self) -> list[int]: ...
    @property
    def boxes(self) -> list[tuple[list[int], list[int]] | None]:
        """By rank, as a manifest has them; of files by piece."""

class Checkpoint:
    """A checkpoint that is read."""

    @property
    def step(self) -> int: ...
    @property
    def extra(self) -> str: ...
    @property
    def leaves(self) -> list[tuple[str, str, list[int], str]]:
        """Name, element type, shape and implementation of keys of each."""

    def array(self, leaf: int) -> Array: ...

class Checkpointer:
    """Saves and restores the states of a job; all methods are collective."""

    def __init__(self, directory: str, keep: int, job: Any) -> None: ...
    def save(
        self,
        step: int,
        leaves: Sequence[tuple[str, str, Array]],
        extra: str,
        tree: str,
        plan: str,
        refusal: str = "",
    ) -> None:
        """Copies the leaves (name, implementation of keys, array).

        The others are JSON. With a refusal all processes raise it.
        """

    def restore(self, step: int | None) -> Checkpoint: ...
    def latest(self) -> int | None: ...
    def wait(self) -> None: ...
    def any_of_us(self, mine: bool) -> bool: ...

class ArrayClass:
    """Python's class of arrays, for calls of steps."""

    def __init__(self, type: type, plain: type, host: type) -> None: ...
    def mark_of(self, value: Any) -> Any:
        """What `find_others` knows values of such a type by.

        The kind of such an array, the `aval` of an array of JAX (`plain`),
        dtype and shape of one of NumPy (`host`), the type of a number, None of
        all else.
        """

    def find_others(self, values: list[Any], marks: list[Any]) -> list[int]:
        """The places of values without these marks."""

    @staticmethod
    def has_repeated(values: list[Any]) -> bool:
        """Whether an object is in the list twice."""

class Profile:
    """The times of a step's instructions."""

class Trace:
    """What each rank did when, in steps that follow one another."""

    def __init__(self) -> None: ...
    def json(self, ranks: Sequence[int]) -> str:
        """Chrome trace events of these ranks."""

    @staticmethod
    def join(parts: Sequence[str]) -> str:
        """One text for those of several processes."""

class Step:
    """A step that may still run."""

    @property
    def has_left(self) -> bool:
        """Whether nothing runs for it any more."""

    def stats(self, in_main_thread: bool) -> str:
        """Its costs as JSON, once it has ended; waits as `Array.wait`."""

    def profile(self, in_main_thread: bool) -> Profile:
        """Its profile, once it has ended; waits as `Array.wait`."""

def stop_steps(steps: Sequence[Step]) -> None:
    """Ends steps, and waits until they have left."""

def summarize_plan(plan: str) -> str:
    """A plan, given as JSON, in at most ten lines."""

def idle_devices(plan: str) -> list[str]:
    """Of a plan, given as JSON, a text about each group of devices with no
    work, or little."""

def compare_plans(one: str, other: str) -> list[str]:
    """What differs between two plans, given as JSON, a line each."""

def plan_page(plan: str) -> str:
    """A plan, given as JSON, as one page of HTML."""

def fit_table(fit: str) -> str:
    """What a step needs, and would need with options, given as JSON, as
    tables."""

class Program:
    """A program directory in memory, with the threads of its ranks."""

    def __init__(self, path: str) -> None: ...
    def submit(
        self,
        array_class: ArrayClass,
        values: list[Any],
        to_handle: Callable[[int, Any], Array],
        kinds: list[Any],
        in_main_thread: bool,
    ) -> tuple[list[Any], Step]:
        """Hands over a step: its results, and the step that computes them.

        Small arrays of JAX and NumPy are copied; all else but arrays of the
        class is given to `to_handle` with its place. Results are such arrays,
        each of its kind; None where that is None.

        Waits while some steps of the program wait already. In the main thread,
        what a signal handler raises ends these.
        """

    def run_traced(
        self,
        array_class: ArrayClass,
        values: list[Any],
        to_handle: Callable[[int, Any], Array],
        kinds: list[Any],
        trace: Trace,
    ) -> tuple[list[Any], str, Profile]:
        """Runs a step and waits: its results, costs as JSON, and profile."""

    def move(
        self,
        array_class: ArrayClass,
        values: list[Any],
        arguments: Sequence[int],
        to_handle: Callable[[int, Any], Array],
        kinds: list[Any],
        in_main_thread: bool,
    ) -> list[Any]:
        """The arrays as these arguments want them; they are taken over.

        All but arrays of the class is given to `to_handle` with its place.
        Results are such arrays, each of its kind.

        Collective. Where one process raises, all do, and nothing has changed.
        """

    def refuse_move(self, why: str) -> None:
        """Takes part in a `move` that this process cannot make.

        Collective: it raises this in all others.
        """

    def describe(self, profile: Profile) -> str:
        """Where the time of a step went, as text."""

    @property
    def notes(self) -> list[tuple[bool, str]]:
        """What there is to say of how it was loaded, and of each whether it is
        a warning."""

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

def late_libraries() -> list[tuple[str, str, str]]:
    """Of each library that programs open where they need it, its name, what it
    is for, and the file that there is, or none."""

def calibrate(ranks: int) -> str:
    """A cluster file of this machine's processor, measured as so many ranks
    that share it.
    """

def machine_memory() -> int:
    """Bytes of memory of this machine that control groups leave."""

def usable_processors() -> int:
    """How many threads this process can have run at once."""

def pack_program(directory: str) -> bytes:
    """The files of a program as bytes."""

def unpack_program(packed: bytes, directory: str) -> None:
    """Makes the directory of a program of such bytes."""

def check_plan(path: str) -> None:
    """Checks a program directory that has no code.

    Raises RuntimeError where the program is damaged.
    """

def read_tables(path: str) -> str:
    """The tables of a program directory, at length, as JSON.

    Raises RuntimeError where the program is damaged.
    """

def may_hold_program(path: str) -> bool:
    """Whether `path` is a program, an empty directory, or nothing.

    Raises OSError where it cannot be read.
    """

def read_program(path: str, read: Callable[[str], _Result]) -> _Result:
    """Calls `read` with the directory of a program.

    Once more where another program took its place meanwhile.
    """
