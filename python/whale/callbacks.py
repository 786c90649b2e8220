"""The calls of a step into Python.

In: the functions that JAX's lowering of a step refers to, and the results of
the program that are operands of those that give nothing
(docs/program-format.md). Out: one call of a function for each that `jax.jit`
would make, with whole values, of several processes in the first one. Those that
give nothing are made when the step has ended, in the order of its text: such a
step is waited for, and their operands are gathered. The others are made by the
thread of the first rank in the middle of the step. Operands are copied once.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from whale import distributed, nesting, versions
from whale.array import Array
from whale.dtypes import numpy_dtype
from whale.errors import RuntimeError, WhaleError
from whale.signature import Leaf
from whale.tracebacks import traceback_of_user

Callback = Callable[..., Any]

# In the place of a function's number: whether an operation has made a NaN, and
# whether a result of the step has one.
_NAN_MADE, _NAN_RETURNED = -1, -2


# How the targets of the calls in a step's text end.
_TARGET = "python_cpu_callback"


def functions_of(lowered: jax.stages.Lowered, text: str) -> list[Callback]:
    """What a step calls, by the numbers that its text has for them.

    Raises:
        WhaleError: where this version of JAX keeps them at another place.
    """
    if _TARGET not in text:
        return []
    try:
        # JAX has no public name for what its own compilation takes.
        found = lowered._lowering.compile_args["host_callbacks"]  # type: ignore[attr-defined]
        return list(found)
    except (AttributeError, KeyError, TypeError):
        raise WhaleError(
            f"jax {jax.__version__} doesn't say which functions of Python the "
            f"step calls: install one of {versions.RANGE}, or leave out "
            "jax.debug, pure_callback and io_callback"
        ) from None


@dataclasses.dataclass
class _Call:
    """A place in the step that calls a function, in each round of loops."""

    label: str
    index: int
    has_token: bool
    order: int
    # The number and the rounds of each loop around it.
    loops: list[tuple[int, int]]
    # Results of the program: operands, and whether it is made.
    operands: list[int] = dataclasses.field(default_factory=list)
    condition: int | None = None

    def rounds(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """When each call is made, and its row in the results."""
        for row in np.ndindex(*(rounds for _, rounds in self.loops)):
            when: list[int] = []
            for (number, _), position in zip(self.loops, row):
                when += [number, position]
            yield (*when, self.order), row


class Calls:
    """The calls of a program."""

    def __init__(
        self,
        results: Sequence[Leaf],
        calls: Sequence[_Call],
        functions: Sequence[Callback],
    ) -> None:
        # Behind those of the step.
        self.results = tuple(results)
        self._calls = [call for call in calls if call.index >= 0]
        self._checks = [call for call in calls if call.index == _NAN_MADE]
        self._returned = [call for call in calls if call.index == _NAN_RETURNED]
        self._functions = functions

    def __bool__(self) -> bool:
        return bool(self.results)

    @property
    def labels(self) -> str:
        """What the user has written, and where, in brackets."""
        labels = ", ".join(dict.fromkeys(call.label for call in self._calls))
        return f" ({labels})" if labels else ""

    def make(self, values: Sequence[Array]) -> None:
        """Makes the calls of a step; collective.

        Args:
            values: what the step gives for `results`.

        Raises:
            RuntimeError: in all processes, where the step fails or a function
                raises; no further calls are made.
            FloatingPointError: where a result has a NaN and it was asked for.
        """
        whole = [np.asarray(value.gathered()) for value in values]
        raised: BaseException | None = None
        failure = ""
        if distributed.process_index() == 0:
            try:
                self._make(whole)
            except BaseException as error:
                # The others wait for what is said here, whatever it is.
                raised = error
                failure = (
                    str(error)
                    if isinstance(error, _Failed)
                    else f"process 0 {_describe(error)}"
                )
        if distributed.job() is not None:
            text = failure[:_LONGEST_TEXT].encode(errors="replace")
            failure = distributed.all_gather("callbacks", text)[0].decode()
        if raised is not None and not isinstance(raised, _Failed):
            raise raised
        if failure:
            raise RuntimeError(failure) from raised and raised.__cause__
        self._check(whole)

    def _check(self, values: Sequence[np.ndarray]) -> None:
        """Raises what is to be said of NaNs."""
        bad = [c.label for c in self._returned if values[c.operands[0]]]
        if not bad:
            return
        for row, call in _in_order(self._checks, values):
            if values[call.operands[0]][row]:
                raise FloatingPointError(f"a NaN was made by {call.label}")
        raise FloatingPointError(
            f"there is a NaN in {bad[0]}, and no operation that is looked at "
            "made it: an argument has it, or it is of complex numbers"
        )

    def _make(self, values: Sequence[np.ndarray]) -> None:
        is_alone = distributed.job() is None
        for row, call in _in_order(self._calls, values):
            operands = [values[index][row] for index in call.operands]
            try:
                with nesting.inside(None, is_alone):
                    self._functions[call.index](
                        *[None] * call.has_token, *operands
                    )
            except Exception as error:
                raise _Failed(f"{call.label} {_describe(error)}") from error


def _in_order(
    calls: Sequence[_Call], values: Sequence[np.ndarray]
) -> Iterator[tuple[tuple[int, ...], _Call]]:
    """The calls that are made, each with its row in the results."""
    planned = [
        (when, row, call)
        for call in calls
        for when, row in call.rounds()
        if _is_made(call, row, values)
    ]
    for _, row, call in sorted(planned, key=lambda entry: entry[0]):
        yield row, call


def _is_made(
    call: _Call, row: tuple[int, ...], values: Sequence[np.ndarray]
) -> bool:
    if call.condition is None:
        return True
    # It is that of a branch, which may be around the innermost loops.
    condition = values[call.condition]
    return bool(condition[row[: condition.ndim]])


class _Failed(Exception):
    """A function has raised."""


# Characters of what was raised that other processes get.
_LONGEST_TEXT = 2000


def _describe(error: BaseException) -> str:
    # What equinox says of its own jit goes.
    text = str(error).split("\n\n\n-----", maxsplit=1)[0]
    return f"raised {type(error).__name__}: {text}".removesuffix(": ")


def _place_of(error: BaseException) -> str:
    """Where the user's function has raised it, as the rank that called has no
    traceback to show."""
    frames = traceback.extract_tb(traceback_of_user(error))
    if not frames:
        return ""
    last = frames[-1]
    return f" (at {last.filename}:{last.lineno}, in {last.name})"


def caller_of(functions: Sequence[Callback]) -> Callback | None:
    """What the extension calls in the middle of a step, where there is any.

    It gets the number of a function and its operands, each an element type, a
    shape and bytes; it gives what was raised, or None, and the results' bytes.
    """
    if not functions:
        return None

    def call(
        index: int, operands: Sequence[tuple[str, Sequence[int], bytes]]
    ) -> tuple[str | None, list[bytes]]:
        try:
            with nesting.inside(functions, distributed.job() is None):
                results = functions[index](
                    *(
                        np.ndarray(tuple(shape), numpy_dtype(name), data)
                        for name, shape, data in operands
                    )
                )
            return None, [np.asarray(result).tobytes() for result in results]
        # sys.exit, too, ends the step and not the thread of a rank.
        except BaseException as error:
            text = f"a function that the step calls {_describe(error)}"
            return text + _place_of(error), []

    return call


def calls_of(
    entries: Sequence[Mapping[str, Any]], functions: Sequence[Callback]
) -> Calls:
    """The calls of a program.

    Args:
        entries: the results in its manifest.
        functions: what the step calls.

    Raises:
        RuntimeError: where the program calls others.
    """
    results: list[Leaf] = []
    calls: dict[int, _Call] = {}
    for entry in entries:
        callback = entry.get("callback")
        if callback is None:
            continue
        label, order = entry["label"], callback["order"]
        if callback["index"] >= len(functions):
            raise RuntimeError(f"the program calls {label}, which is not here")
        call = calls.setdefault(
            order,
            _Call(
                label,
                callback["index"],
                callback["has_token"],
                order,
                [(number, rounds) for number, rounds in callback["loops"]],
            ),
        )
        if callback["operand"] is None:
            call.condition = len(results)
        else:
            call.operands.append(len(results))
        results.append(Leaf(label, tuple(entry["shape"]), entry["dtype"]))
    return Calls(results, list(calls.values()), functions)
