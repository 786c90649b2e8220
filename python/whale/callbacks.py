"""The calls of a step into Python, made when it has ended.

In: the functions that JAX's lowering of a step refers to, and the results of
the program that are their operands (docs/program-format.md). Out: one call of a
function for each that `jax.jit` would make, in the order of the step's text,
with whole values. Of several processes the first one makes them. A step with
calls is waited for; its operands are gathered and copied once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from whale import distributed
from whale.array import Array
from whale.errors import RuntimeError
from whale.signature import Leaf

Callback = Callable[..., Any]


def functions_of(lowered: jax.stages.Lowered) -> list[Callback]:
    """What a step calls, by the numbers that its text has for them."""
    # JAX has no public name for what its own compilation takes.
    arguments = lowered._lowering.compile_args  # type: ignore[attr-defined]
    return list(arguments.get("host_callbacks") or ())


@dataclasses.dataclass
class _Call:
    """A place in the step that calls a function, in each round of loops."""

    label: str
    function: Callback
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

    def __init__(self, results: Sequence[Leaf], calls: Sequence[_Call]) -> None:
        # Behind those of the step.
        self.results = tuple(results)
        self._calls = calls

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def labels(self) -> str:
        """What the user has written, and where."""
        return ", ".join(dict.fromkeys(call.label for call in self._calls))

    def make(self, values: Sequence[Array]) -> None:
        """Makes the calls of a step; collective.

        Args:
            values: what the step gives for `results`.

        Raises:
            RuntimeError: in all processes, where the step fails or a function
                raises; no further calls are made.
        """
        whole = [np.asarray(value.gathered()) for value in values]
        failure = None
        cause = None
        if distributed.process_index() == 0:
            try:
                self._make(whole)
            except _Failed as failed:
                failure, cause = str(failed), failed.__cause__
        if distributed.job() is not None:
            said = distributed.all_gather("callbacks", (failure or "").encode())
            failure = said[0].decode() or None
        if failure is not None:
            raise RuntimeError(failure) from cause

    def _make(self, values: Sequence[np.ndarray]) -> None:
        planned = [
            (when, row, call)
            for call in self._calls
            for when, row in call.rounds()
            if call.condition is None or values[call.condition][row]
        ]
        for _, row, call in sorted(planned, key=lambda entry: entry[0]):
            operands = [values[index][row] for index in call.operands]
            try:
                call.function(*[None] * call.has_token, *operands)
            except Exception as error:
                # What equinox says of its own jit goes.
                text = str(error).split("\n\n\n-----", maxsplit=1)[0]
                raise _Failed(
                    f"{call.label} raised {type(error).__name__}: {text}"
                ) from error


class _Failed(Exception):
    """A function has raised."""


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
                functions[callback["index"]],
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
    return Calls(results, list(calls.values()))
