"""``wh.Checkpointer``: training states on disk, apart from any plan.

In: a tree of arrays, laid out by any program, and a directory that all
processes share. Out: a directory for each saved step (docs/checkpoints.md). No
element is written twice, and a restored tree reads only what the ranks of the
program that takes it need. All methods are collective: with several processes
each of them calls them with the same arguments, in one order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import operator
import os
import signal
import threading
import time
from typing import Any

import jax
import numpy as np

from whale import distributed, native, nesting, own_state
from whale.array import Array, Kind
from whale.dtypes import element_name, numpy_dtype
from whale.errors import RuntimeError
from whale.program import array_handle, host_handle
from whale.signature import Leaf, host_value
from whale.tracebacks import api_boundary


@dataclasses.dataclass(frozen=True, eq=False)
class _FileKind(Kind):
    """What an array has whose parts are in files that each process sees."""

    is_in_files = True
    is_fully_addressable = True  # type: ignore[assignment]
    is_here = True  # type: ignore[assignment]


class Checkpointer:
    """Saves the states of a training run, and reads them under any plan.

    ::

        checkpointer = wh.Checkpointer("checkpoints", every=100)
        if checkpointer.latest() is not None:
            state = checkpointer.restore(state)
        for number in range(checkpointer.latest() or 0, 1000):
            state, loss = step(state, batch(number))
            if checkpointer.is_due(number + 1):
                checkpointer.save(number + 1, state)
        checkpointer.wait()

    Args:
        directory: where checkpoints go, on a file system that all processes
            see. The first save makes it.
        keep: so many complete checkpoints are kept, the last ones.
        every: steps from one checkpoint to the next, for `is_due`.

    Raises:
        ValueError: where `keep` or `every` is below 1.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        keep: int = 3,
        every: int | None = None,
    ) -> None:
        for name, value in (("keep", keep), ("every", every)):
            if value is not None and (
                isinstance(value, bool)
                or not isinstance(value, int)
                or value < 1
            ):
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self._directory = os.path.abspath(directory)
        self._every = every
        self._native = native.extension().Checkpointer(
            self._directory, keep, distributed.job()
        )
        self._extra: Any = {}
        self._number = next(_count)
        # Whether the next save ends the process, in all processes.
        self._is_ending = False

    @property
    def extra(self) -> Any:
        """What the checkpoint that was restored last has beside its tree."""
        return self._extra

    def __repr__(self) -> str:
        return f"<Checkpointer of {self._directory}>"

    @api_boundary
    def save(self, step: int, tree: Any, extra: Any = None) -> None:
        """Saves a tree; returns once it is copied, and writes it meanwhile.

        Waits for the save before. After SIGTERM, it returns when the checkpoint
        is complete, and ends the process with `SystemExit`.

        Args:
            step: how many steps were done: later than `latest()`.
            tree: arrays and numbers: parameters, the optimizer's state, keys.
            extra: what JSON can hold, ``{}`` if left out: where the data are,
                for instance.

        Raises:
            TypeError: where JSON cannot hold `extra`, a leaf is no array, or
                `step` is no integer.
            ValueError: where `step` is negative or has more than 63 bits.
            RuntimeError: in all processes, where one cannot save, or could not
                complete the save before; the last complete checkpoint stays.
        """
        nesting.check_together("Checkpointer.save")
        try:
            saved = _checked_step(step), *_described(tree, extra)
        except Exception as error:
            # The others wait for this process.
            with contextlib.suppress(RuntimeError):
                native.guarded(self._native.save, 0, [], "", "", "", str(error))
            raise
        # Whoever drops this object does not drop what it saves.
        _saving[self._number] = self
        try:
            native.guarded(self._native.save, *saved)
        except RuntimeError:
            del _saving[self._number]
            raise
        if self._is_ending:
            self.wait()
            raise SystemExit(128 + signal.SIGTERM)

    def is_due(self, step: int) -> bool:
        """Whether the state after `step` steps is to be saved.

        Every so many steps, and after SIGTERM, which then does not end the
        process: the next save does. The same answer in all processes.
        """
        _watch_termination()
        nesting.check_together("Checkpointer.is_due")
        # All ask in each step: a signal may come between two processes.
        self._is_ending = native.guarded(
            self._native.any_of_us, _terminations.first is not None
        )
        is_due = self._every is not None and step % self._every == 0
        return is_due or self._is_ending

    @api_boundary
    def latest(self) -> int | None:
        """The last complete step; None where there is none.

        Raises:
            RuntimeError: where the directory cannot be read.
        """
        nesting.check_together("Checkpointer.latest")
        found: int | None = native.guarded(self._native.latest)
        return found

    @api_boundary
    def restore(self, tree_like: Any, step: int | None = None) -> Any:
        """The tree of a checkpoint, by default of the last one.

        Nothing of it is read yet: a program that takes its arrays reads what
        its ranks need, and checks that.

        Args:
            tree_like: a tree of the same structure, with arrays, numbers or
                `jax.ShapeDtypeStruct`s.
            step: of the checkpoint.

        Returns:
            the tree, with a `wh.Array` in place of each array; NumPy's arrays
            and numbers are given back as such.

        Raises:
            RuntimeError: in all processes, where there is no checkpoint, or it
                is damaged or of another tree: the leaf that differs is named.
        """
        nesting.check_together("Checkpointer.restore")
        checkpoint = native.guarded(self._native.restore, step)
        failure = None
        try:
            restored, own = self._matched(checkpoint, tree_like)
        except Exception as error:
            failure = error
        distributed.fail_together("a restored tree", failure)
        for name, value in own:
            own_state.restore(name, value)
        self._extra = json.loads(checkpoint.extra, object_hook=_large_number)
        return restored

    def _matched(
        self, checkpoint: Any, tree_like: Any
    ) -> tuple[Any, list[tuple[str, Any]]]:
        """The tree, of the leaves that a checkpoint has of each, and what is
        the programs' own."""
        numbers = {
            name: number for number, (name, *_) in enumerate(checkpoint.leaves)
        }
        restored = []
        for name, value in _named_leaves(tree_like):
            leaf = _leaf(value, name)
            if name not in numbers:
                raise RuntimeError(
                    f"{self._directory}: the checkpoint of step "
                    f"{checkpoint.step} has no {name!r}"
                )
            number = numbers.pop(name)
            _check(self._directory, value, leaf, checkpoint.leaves[number])
            restored.append(
                _like(value, _array(checkpoint.array(number), leaf))
            )
        own = []
        for name in list(filter(own_state.is_own, numbers)):
            number = numbers.pop(name)
            _, dtype, shape, _ = checkpoint.leaves[number]
            leaf = Leaf(name, tuple(shape), dtype)
            own.append((name, _array(checkpoint.array(number), leaf)))
        if numbers:
            raise RuntimeError(
                f"{self._directory}: the checkpoint of step {checkpoint.step} "
                f"has {next(iter(numbers))!r}, which the tree has not"
            )
        structure = jax.tree.structure(tree_like)
        return jax.tree.unflatten(structure, restored), own

    @api_boundary
    def wait(self) -> None:
        """Returns when the last save is complete.

        Raises:
            RuntimeError: in all processes, where one could not write.
        """
        nesting.check_together("Checkpointer.wait")
        _saving.pop(self._number, None)
        native.guarded(self._native.wait)


def _described(
    tree: Any, extra: Any
) -> tuple[list[tuple[str, str, Any]], str, str, str]:
    """What is saved: leaves, `extra`, the tree's structure and the plan."""
    leaves = []
    plan = "null"
    for name, value in _named_leaves(tree):
        if isinstance(value, Array) and value.kind.program is not None:
            plan = value.kind.program.plan
        key = _leaf(value, name).key or ""
        leaves.append((name, key, _handle(value, name)))
    for name, value in own_state.saved():
        leaves.append((name, "", _handle(value, name)))
    structure = json.dumps(str(jax.tree.structure(tree)))
    try:
        text = _extra_text({} if extra is None else extra)
    except (TypeError, ValueError) as error:
        raise TypeError(f"extra: {error}") from None
    return leaves, text, structure, plan


def _checked_step(step: Any) -> int:
    """A step as a manifest holds it."""
    try:
        if isinstance(step, (bool, np.bool_)):
            raise TypeError
        number = operator.index(step)
    except TypeError:
        raise TypeError(f"step must be an integer, got {step!r}") from None
    if not 0 <= number < 1 << 63:
        raise ValueError(
            f"step must be at least 0 and below 2**63, got {number}"
        )
    return number


# A number that most readers of JSON round, as the state of NumPy's generators
# has, is an object with its digits.
_LARGE = "whale:integer"


def _extra_text(extra: Any) -> str:
    """`extra` as JSON that gives back what it holds."""

    def held(value: Any) -> Any:
        if isinstance(value, dict):
            if _LARGE in value:
                raise ValueError(f"the key {_LARGE!r} is Whale's own")
            return {key: held(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [held(each) for each in value]
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            return {_LARGE: str(int(value))}
        return value

    # This finds what has no end, or is nothing that JSON has.
    json.dumps(extra, allow_nan=False)
    text = json.dumps(held(extra), ensure_ascii=False)
    # Half of a pair of surrogates is no text.
    text.encode()
    return text


def _large_number(value: dict[str, Any]) -> Any:
    """The number that an object of `_extra_text` stands for."""
    return int(value[_LARGE]) if list(value) == [_LARGE] else value


def _leaf(value: Any, name: str) -> Leaf:
    """What a checkpoint has of a value: of NumPy and Python, all its bits."""
    if isinstance(value, (bool, int, float, complex)):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            aval = jax.ShapeDtypeStruct(value.shape, value.dtype)
            return Leaf(name, aval.shape, element_name(value.dtype))
        except (TypeError, ValueError):
            raise TypeError(f"{name!r} is no array: {value!r}") from None
    return Leaf.of_value(value, name)


def _handle(value: Any, name: str) -> Any:
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        leaf = _leaf(value, name)
        return host_handle(host_value(value, leaf), leaf)
    return array_handle(value, name)


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree with their paths: ``params.layers.0.w``."""
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    keystr = jax.tree_util.keystr
    names = [
        keystr(path, simple=True, separator=".") or "state" for path, _ in paths
    ]
    # Keys with points in them may read as two.
    if len(set(names)) != len(names):
        names = [keystr(path) for path, _ in paths]
    return [(name, value) for name, (_, value) in zip(names, paths)]


# The numbers of Python, by the kinds of NumPy's types that they stand for.
_KINDS = {bool: "b", int: "iu", float: "fV", complex: "c"}


def _check(directory: str, value: Any, leaf: Leaf, found: Any) -> None:
    """Compares a leaf of the tree with that of a checkpoint.

    A step may have made an array of JAX's types of what began as a number of
    Python or an array of NumPy.
    """
    _, dtype, shape, key = found
    kinds = _KINDS.get(type(value))
    if kinds is not None and not shape and not key:
        if numpy_dtype(dtype).kind in kinds:
            return
    elif isinstance(value, (np.ndarray, np.generic)):
        canonical = jax.dtypes.canonicalize_dtype(value.dtype)
        if dtype == element_name(canonical) and not key:
            leaf = dataclasses.replace(leaf, dtype=dtype)

    def described(dtype: str, shape: Any, key: str | None) -> str:
        return f"{dtype}{list(shape)}" + (f" of keys {key}" if key else "")

    wanted = described(leaf.dtype, leaf.shape, leaf.key)
    saved = described(dtype, shape, key)
    if wanted != saved:
        raise RuntimeError(
            f"{directory}: {leaf.label!r} is {saved} in the checkpoint, and "
            f"{wanted} in the tree"
        )


def _array(handle: Any, leaf: Leaf) -> Array:
    entry = {"view": handle.view, "boxes": handle.boxes}
    return Array(handle, _FileKind(leaf.aval, leaf.key, entry, None))


def _like(value: Any, array: Array) -> Any:
    """The restored array as the value in its place is."""
    if isinstance(value, (bool, int, float, complex)):
        return type(value)(np.asarray(array)[()])
    if isinstance(value, (np.ndarray, np.generic)):
        return np.array(array) if value.shape else np.asarray(array)[()]
    return array


# Those that may still write, by the order in which they were made: what is
# collective has one order in all processes.
_saving: dict[int, Checkpointer] = {}
_count = itertools.count()


def _finish() -> None:
    """Completes what is being saved; what fails was not waited for."""
    for _, checkpointer in sorted(_saving.items()):
        with contextlib.suppress(RuntimeError):
            checkpointer.wait()


distributed.complete_at_exit(_finish)


class _Terminations:
    """What SIGTERM does once `is_due` looks for it.

    A second one ends the process; but whoever signals a group of processes
    signals each of them twice where its launcher passes the signal on.
    """

    # When the first one came.
    first: float | None = None

    def __call__(self, *_: object) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
        elif now - self.first > 1:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


_terminations = _Terminations()


def _watch_termination() -> None:
    """Has SIGTERM be noticed by `is_due`, unless the script handles it."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _terminations)
