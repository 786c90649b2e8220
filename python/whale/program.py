"""``wh.Program``: a compiled step that can be called, saved and loaded.

In: a program directory with its signature; then, for each step, arguments that
fit it. Out: results as `wh.Array`s, times in seconds and memory in bytes by
rank. A call checks the leaves, starts the step and may return before it has
ended. Arrays of JAX and NumPy are copied in each call that returns before its
step has ended; a `wh.Array` is passed as it is. Loading checks the manifest
against the signature, and reads tables where they are asked for; saving copies
the whole directory.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import jax
import numpy as np

from whale import analysis, distributed, files, native, nesting, steps
from whale.array import Array, Kind, array_class
from whale.callbacks import Callback, caller_of, calls_of
from whale.dtypes import element_name
from whale.errors import RuntimeError
from whale.own_state import OwnState
from whale.plan import Plan
from whale.recording import Recording
from whale.signature import Leaf, Signature, host_value
from whale.strategies import COUNT, is_count
from whale.tracebacks import api_boundary

_SIGNATURE = "python.json"


class Program:
    """A step compiled for a cluster; call it as the step itself.

    Static arguments are left out of the call: the program was compiled for
    their values.
    """

    def __init__(
        self,
        path: str,
        signature: Signature,
        keep: Any = None,
        functions: Sequence[Callback] = (),
        own_ranks: bool = False,
    ) -> None:
        self._path = path
        self._signature = signature
        self._keep = keep
        self._functions = functions
        self._last: Any = None
        self._recording: Recording | None = None
        self._has_donated = any(signature.donated)
        self._has_tables = False
        manifest = _read(os.path.join(path, "manifest.json"))
        self._digest = _digest(manifest)
        self._manifest = _parse(
            os.path.join(path, "manifest.json"), manifest, _load_json
        )
        try:
            target = self._manifest["target"]
            counts = [len(self._manifest[k]) for k in ("arguments", "results")]
            self._calls = calls_of(self._manifest["results"], functions)
        except (KeyError, TypeError) as error:
            raise RuntimeError(f"{path}/manifest.json: no {error}") from None
        # A program without code is for the simulator.
        self._native: Any = None
        if target == "none":
            native.check_plan(path)
        else:
            self._native = native.load(
                path, distributed.job(), caller_of(functions), own_ranks
            )
        # Its manifest is right by now.
        self._own = OwnState(self.name, self._manifest["arguments"])
        counts[1] -= len(self._calls.results)
        counts = [count - len(self._own) for count in counts]
        expected = [len(signature.arguments), len(signature.results)]
        if counts != expected:
            raise RuntimeError(
                f"{path}: {counts} arguments and results in manifest.json, and "
                f"{expected} in {_SIGNATURE}"
            )
        for kind in ("arguments", "results"):
            leaves = getattr(signature, kind)
            for leaf, entry in zip(leaves, self._manifest[kind]):
                _check_leaf(path, leaf, entry)
        _share_boxes(self._manifest)

    @property
    def native(self) -> Any:
        """The extension's program.

        Raises:
            RuntimeError: where it has no code.
        """
        if self._native is None:
            raise RuntimeError(
                "the program was compiled with target='none': it has no code"
            )
        return self._native

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return self._signature

    @property
    def own(self) -> OwnState:
        """What it keeps from step to step beside what it is given."""
        return self._own

    @property
    def calls_python(self) -> bool:
        """Whether a step calls back into Python."""
        return bool(self._functions)

    @property
    def rank_count(self) -> int:
        """How many ranks it runs on."""
        return len(self._manifest["ranks"])

    @property
    def name(self) -> str:
        """The function's, as JAX has it."""
        return str(self._manifest.get("name", "")).removeprefix("jit_")

    @property
    def target(self) -> str:
        """Where it runs: ``"cpu"``, ``"cuda"``, or ``"none"`` without code."""
        return str(self._manifest["target"])

    @property
    def ranks(self) -> list[dict[str, Any]]:
        """The device, kind and node of each rank."""
        return self._manifest["ranks"]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """What the program directory says of each argument."""
        return self._manifest["arguments"]

    @functools.cached_property
    @api_boundary
    def plan(self) -> Plan:
        """What the compiler decided: task graphs, shares, collectives.

        Empty where the program directory doesn't say.
        """
        return Plan(self._manifest.get("plan") or {})

    @property
    def manifest(self) -> dict[str, Any]:
        """What the program directory says of its ranks and tensors."""
        if not self._has_tables:
            self._check_unchanged(self._path)
            read_tables(self._path, self._manifest)
            self._has_tables = True
        return self._manifest

    @property
    @api_boundary
    def stats(self) -> dict[str, Any] | None:
        """Time, memory and communication of the last call, by rank.

        Of the ranks of this process, each with its number as ``"rank"``.

        Waits until its step has ended.

        Raises:
            RuntimeError: where it failed.
        """
        if self._last is None:
            return None
        stats = json.loads(native.waited(self._last.stats))
        own = distributed.process_index()
        stats["ranks"] = [
            rank
            for rank in stats["ranks"]
            if self.native.process_of(rank["rank"]) == own
        ]
        return stats

    @api_boundary
    def profile(self, file: TextIO | None = None) -> None:
        """Prints where the time of the last call went.

        A table of each rank's computing, transfers and waiting; then the ten
        lines of Python that took longest, as means over the ranks, with the
        share of the roofline (what the device could reach) that they did.
        Of the ranks of this process. Waits until the step has ended.

        Args:
            file: where to print, standard output if it is None.

        Raises:
            RuntimeError: where no step has been run, or the last one failed.
        """
        if self._native is None or self._last is None:
            raise RuntimeError("no step of this program has been run")
        profile = native.waited(self._last.profile)
        print(self._native.describe(profile), end="", file=file)

    @api_boundary
    def trace(self, path: str | os.PathLike[str], steps: int = 3) -> None:
        """Records the next `steps` calls: what each rank does when.

        Each of them waits for its step, and writes what was recorded so far to
        `path`: Chrome trace events, which Perfetto opens. Of several processes
        the first one writes that of all.

        Raises:
            RuntimeError: where the program has no code.
            ValueError: where `steps` is no positive number.
        """
        if not is_count(steps):
            raise ValueError(f"trace: steps must be {COUNT}, not {steps!r}")
        self._recording = Recording(self.native, os.path.abspath(path), steps)

    @api_boundary
    def cost_analysis(self) -> dict[str, float]:
        """Estimates of a step, of all ranks together, by JAX's names.

        ``"flops"``, and ``"bytes accessed"`` as if no operations were fused.
        """
        return analysis.cost_analysis(self)

    @api_boundary
    def memory_analysis(self) -> analysis.MemoryAnalysis:
        """The bytes that the rank with most needs, by JAX's names."""
        return analysis.memory_analysis(self)

    def code_bytes(self) -> int:
        """The size of the files that hold its kernels."""
        names = {self._manifest.get("kernels")} - {None}
        for entry in self._manifest.get("gpu", []):
            names.update(entry.get("modules", []), entry.get("cubins", []))
        return sum(
            os.path.getsize(os.path.join(self._path, name)) for name in names
        )

    def __repr__(self) -> str:
        kinds = dict.fromkeys(rank.get("kind", "?") for rank in self.ranks)
        state = (
            "no code"
            if self._native is None
            else "not run"
            if self._last is None
            else "its last step has ended"
            if self._last.has_left
            else "a step is running"
        )
        count = self.rank_count
        return (
            f"<whale.Program {self.name!r} on {count} "
            f"{'rank' if count == 1 else 'ranks'} ({', '.join(kinds)}): "
            f"{state}>"
        )

    def _repr_html_(self) -> str | None:
        """The plan as a page, for notebooks."""
        return self.plan.to_html() if self.plan else None

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs one step; its results may still be computed when this returns.

        All that is no `wh.Array` is copied before. What goes wrong in the step
        is raised where a result is read, or given to another step. One that
        calls back into Python has ended, and made its calls, when this returns.

        Raises:
            TypeError: for arguments other than those compiled for.
            RuntimeError: where the step of an argument has failed, or a
                function that this one calls.
            KeyboardInterrupt: where Ctrl-C came while this waited for earlier
                steps; they end, and what was donated to them is lost.
        """
        return self.run(*self._signature.flatten(args, kwargs))

    def run(self, values: list[Any], in_tree: jax.tree_util.PyTreeDef) -> Any:
        """Runs one step, as a call does, on leaves that fit the signature."""
        if self._native is None:
            raise RuntimeError(
                "the program was compiled with target='none': it has no code"
            )
        nesting.check_step(self._functions)
        out_tree = self._signature.result_tree(in_tree)
        if self._has_donated:
            self._check_donation(values)
        results = self._submit(values)
        if not self._last.has_left:
            steps.add(self._last)
        if self._functions:
            # Else the end of the process might come before a call.
            native.waited(self._last.stats)
        own = len(self._signature.results), len(self._own)
        if self._own:
            self._own.keep(results[own[0] : sum(own)])
            del results[own[0] : sum(own)]
        if self._calls:
            self._calls.make(results[len(self._signature.results) :])
            del results[len(self._signature.results) :]
        for index, shape in self._shapes:
            results[index] = np.zeros(shape, jax.dtypes.float0)
        return out_tree.unflatten(results)

    def _submit(self, values: list[Any]) -> list[Any]:
        """Starts a step; what it gives, with what is its own."""
        values = [*values, *self._own.values] if self._own else values
        call = array_class(), values, self._host_handle, self._result_kinds
        try:
            if self._recording is None:
                results, self._last = native.waited(self._native.submit, *call)
            else:
                results, self._last = self._recording.run(
                    self.rank_count, *call
                )
                if self._recording.is_over:
                    self._recording = None
        except BaseException:
            # What is its own may be of a step that failed.
            self._own.reset()
            raise
        return results

    def move(self, indices: list[int], values: list[Any]) -> list[Array]:
        """The values as these leaves of the arguments want them."""
        nesting.check_together("wh.move")
        kinds = self._argument_kinds
        moved: list[Array] = native.waited(
            self.native.move,
            array_class(),
            values,
            indices,
            lambda place, value: array_handle(
                value, self._signature.arguments[indices[place]].label
            ),
            [kinds[index] for index in indices],
        )
        return moved

    def _host_handle(self, index: int, value: Any) -> Any:
        count = len(self._signature.arguments)
        leaf = (
            self._signature.arguments[index]
            if index < count
            else self._own.leaves[index - count]
        )
        return host_handle(host_value(value, leaf), leaf)

    @functools.cached_property
    def _argument_kinds(self) -> list[Kind]:
        """What arrays are made of that are moved to where arguments lie."""
        return [
            Kind(leaf.aval, leaf.key, entry, self.native)
            for leaf, entry in zip(self._signature.arguments, self.entries)
        ]

    @functools.cached_property
    def _result_kinds(self) -> list[Kind | None]:
        """What arrays are made of; gradients of integers are none."""
        return [
            None
            if leaf.dtype == "float0"
            else Kind(leaf.aval, leaf.key, entry, self._native)
            for leaf, entry in zip(
                (
                    *self._signature.results,
                    *self._own.leaves,
                    *self._calls.results,
                ),
                self._manifest["results"],
                strict=True,
            )
        ]

    @functools.cached_property
    def _shapes(self) -> list[tuple[int, tuple[int, ...]]]:
        """The places of gradients of integers, and their shapes."""
        return [
            (index, leaf.shape)
            for index, leaf in enumerate(self._signature.results)
            if leaf.dtype == "float0"
        ]

    def _check_donation(self, values: list[Any]) -> None:
        """A donated array may be given once only."""
        if not array_class().has_repeated(values):
            return
        first: dict[int, int] = {}
        donated = self._signature.donated
        for index, value in enumerate(values):
            if not isinstance(value, Array):
                continue
            other = first.setdefault(id(value), index)
            if other != index and (donated[index] or donated[other]):
                labels = [leaf.label for leaf in self._signature.arguments]
                raise ValueError(
                    f"arguments {labels[other]} and {labels[index]} are one "
                    "Array, and it is donated; give one of them a jax.numpy."
                    "copy of it"
                )

    @api_boundary
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program directory, in place of an earlier program there.

        A link is followed; a failure leaves what was there.

        Raises:
            FileExistsError: where `path` is something else than a program.
            OSError: where what is there cannot be read, or none be written.
            TypeError: where the result tree cannot be stored.
            RuntimeError: where the directory that the program was loaded from
                holds another one by now, and where the step calls Python.
        """
        if self.calls_python:
            raise RuntimeError(
                f"the step calls back into Python{self._calls.labels}, and a "
                "saved program has none of its functions; take them out of the "
                "step, or run it with wh.jit"
            )
        path = os.path.abspath(path)
        if not native.extension().may_hold_program(path):
            raise FileExistsError(
                f"{path} exists and is not a Whale program, or holds other "
                "files too"
            )
        signature = json.dumps(self._signature.to_json(), indent=1)
        with files.staged_program(path) as fresh:
            shutil.copytree(self._path, fresh)
            self._check_unchanged(fresh)
            with open(
                os.path.join(fresh, _SIGNATURE), "w", encoding="utf-8"
            ) as file:
                file.write(signature)

    def _check_unchanged(self, path: str) -> None:
        """Raises RuntimeError where another program is in a directory."""
        if _digest(_read(os.path.join(path, "manifest.json"))) != self._digest:
            raise RuntimeError(
                f"{self._path}: holds another program than the one that was "
                "loaded from there"
            )


def host_handle(host: np.ndarray, leaf: Leaf) -> Any:
    """The extension's array for memory of the host, which it reads in place."""
    return native.extension().Array.from_host(
        host.reshape(-1).view(np.uint8),
        element_name(host.dtype),
        list(leaf.shape),
    )


def array_handle(value: Any, label: str) -> Any:
    """The extension's array for any array or number.

    Raises:
        TypeError: where it is none.
    """
    if isinstance(value, Array):
        return value.handle()
    leaf = Leaf.of_value(value, label)
    return host_handle(host_value(value, leaf), leaf)


@api_boundary
def load(path: str | os.PathLike[str]) -> Program:
    """Reads a program that `Program.save` wrote.

    Of several processes, those that have none there get it from the first one.

    Raises:
        RuntimeError: where it is none, or is damaged.
    """
    path = os.path.abspath(path)
    if distributed.job() is None:
        return native.extension().read_program(path, _load)
    copy = files.ScratchDirectory()
    place = distributed.receive_program(path, _is_program(path), copy.path)
    if place == path:
        return native.extension().read_program(path, _load)
    return _load(place, copy)


def _load(path: str, keep: Any = None) -> Program:
    place = os.path.join(path, _SIGNATURE)
    # As whale-run says it.
    if not os.path.exists(path):
        raise RuntimeError(f"{path}: {os.strerror(errno.ENOENT)}")
    if not _is_program(path):
        raise RuntimeError(f"{path}: is not a program directory")
    if not os.path.exists(place):
        raise RuntimeError(
            f"{path}: there is no {_SIGNATURE}; programs of whale-compile are "
            "run by whale-run"
        )
    try:
        signature = Signature.from_json(_parse(place, _read(place)))
    except ValueError as error:
        raise RuntimeError(f"{place}: {error}") from None
    return Program(path, signature, keep)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{path}: {error}") from None


# A byte of a name that is no UTF-8, as the compiler's JSON has it.
_ESCAPE = re.compile(r"\\x([0-9A-F]{2})")


def _with_bytes(value: Any) -> Any:
    """A value of JSON with its names as they were, as os.fsdecode has bytes."""
    if isinstance(value, str):
        return _ESCAPE.sub(
            lambda match: bytes.fromhex(match[1]).decode(
                errors="surrogateescape"
            ),
            value,
        )
    if isinstance(value, list):
        return [_with_bytes(element) for element in value]
    if isinstance(value, dict):
        return {
            _with_bytes(key): _with_bytes(element)
            for key, element in value.items()
        }
    return value


def _load_json(text: str) -> Any:
    """What is in a manifest, or in the tables of one."""
    value = json.loads(text)
    return _with_bytes(value) if "\\\\x" in text else value


def _parse(
    path: str, text: str, load: Callable[[str], Any] = json.loads
) -> Any:
    try:
        return load(text)
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"{path}: {error}") from None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode()).digest()


def _check_leaf(path: str, leaf: Leaf, entry: Any) -> None:
    """The runtime's view of a tensor must be that of the signature."""
    # Gradients of integers have no elements' type in a program.
    if leaf.dtype == "float0":
        return
    try:
        there = entry["name"], entry["dtype"], tuple(entry["shape"])
    except (KeyError, TypeError) as error:
        raise RuntimeError(f"{path}/manifest.json: no {error}") from None
    if there[1:] != (leaf.dtype, leaf.shape):
        raise RuntimeError(
            f"{path}: {there[0]} is {there[1]}{list(there[2])} in "
            f"manifest.json, and {leaf.dtype}{list(leaf.shape)} in {_SIGNATURE}"
        )


def read_tables(path: str, manifest: dict[str, Any]) -> None:
    """Puts tables into their manifest as if they were written in it at length.

    They may be in files of their own, and their lists short.

    Raises:
        RuntimeError: naming the file and field at fault where the program at
            `path` is damaged.
    """
    manifest.update(_load_json(native.read_tables(path)))


def _share_boxes(manifest: dict[str, Any]) -> None:
    """Gives entries that name another one for their boxes that one's list."""
    named: dict[str, Any] = {}
    for kind in ("arguments", "results"):
        for entry in manifest[kind]:
            boxes = entry.get("boxes")
            entry["boxes"] = (
                named.get(boxes) if isinstance(boxes, str) else boxes
            )
            named[entry.get("name")] = entry["boxes"]


def _is_program(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "manifest.json"))
