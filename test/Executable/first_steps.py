"""Checks what a test runs on N ranks: the first step of each program."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import unittest.mock
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax

import whale as wh
from whale import distributed
from whale.signature import Leaf, host_value


@dataclasses.dataclass(eq=False)
class Step:
    """A step that a program was given."""

    program: wh.Program
    # Copies of the leaves of its arguments, and their tree.
    values: list[Any]
    in_tree: jax.tree_util.PyTreeDef
    result: Any

    def is_given(self, values: list[Any]) -> bool:
        """Whether any of these is one of its results."""
        own = set(map(id, jax.tree.leaves(self.result)))
        return any(id(value) in own for value in values)


Check = Callable[[Step], object]


def copy_of(value: Any, leaf: Leaf) -> Any:
    """The value of an argument, which stays whatever becomes of that."""
    words = host_value(value, leaf).copy()
    if leaf.key is None:
        return words
    return jax.random.wrap_key_data(jax.numpy.asarray(words), impl=leaf.key)


def can_be_saved(program: wh.Program) -> bool:
    """Whether a check can run it elsewhere."""
    try:
        program.signature.to_json()
    except TypeError:
        return False
    return not program.calls_python


class Checked:
    """Gives the first steps of programs to checks.

    A call still returns before its step has ended: it is checked when one of
    its results is donated, or at last by `finish`. Programs of one rank, those
    of several processes and what the checks themselves run are left out.
    """

    def __init__(self, checks: tuple[Check, ...], run: Callable[..., Any]):
        self._checks, self._run = checks, run
        self._seen: weakref.WeakSet[wh.Program] = weakref.WeakSet()
        self._steps: list[Step] = []
        # Of this thread: whether it is in a check.
        self._here = threading.local()

    def run(
        self,
        program: wh.Program,
        values: list[Any],
        in_tree: jax.tree_util.PyTreeDef,
    ) -> Any:
        """What `wh.Program.run` does."""
        if getattr(self._here, "is_checking", False):
            return self._run(program, values, in_tree)
        signature = program.signature
        donated = [v for v, gone in zip(values, signature.donated) if gone]
        for step in list(self._steps):
            if step.is_given(donated):
                self._check(step)
        if (
            program in self._seen
            or program.rank_count == 1
            or distributed.job() is not None
            or not can_be_saved(program)
            or not program.own.is_initial
        ):
            return self._run(program, values, in_tree)
        self._seen.add(program)
        copies, failure = [], None
        try:
            copies = list(map(copy_of, values, signature.arguments))
        except Exception as error:
            failure = error
        # The step itself says what is wrong with its arguments.
        result = self._run(program, values, in_tree)
        if failure:
            raise failure
        self._steps.append(Step(program, copies, in_tree, result))
        return result

    def finish(self) -> None:
        """Checks what is left."""
        while self._steps:
            self._check(self._steps[0])

    def _check(self, step: Step) -> None:
        self._steps.remove(step)
        try:
            jax.block_until_ready(step.result)
        except Exception:
            # It is for the test to find that, or has deleted them.
            return
        self._here.is_checking = True
        try:
            for check in self._checks:
                check(step)
        finally:
            self._here.is_checking = False


@contextlib.contextmanager
def checked(*checks: Check) -> Iterator[None]:
    """Checks the first step of each program of N ranks that is run inside."""
    steps = Checked(checks, wh.Program.run)

    def run(program: wh.Program, values: list[Any], in_tree: Any) -> Any:
        return steps.run(program, values, in_tree)

    with unittest.mock.patch.object(wh.Program, "run", run):
        yield
    steps.finish()
