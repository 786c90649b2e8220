"""``wh.Program``: a compiled step that can be called, saved and loaded."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any

import jax
import numpy as np

from whale import native
from whale.array import Array, KeyArray
from whale.errors import RuntimeError
from whale.signature import Leaf, Signature, host_value

_SIGNATURE = "python.json"


class Program:
    """A step compiled for a cluster; call it as the step itself.

    Static arguments are left out of the call: the program was compiled for
    their values.
    """

    def __init__(
        self, path: str, signature: Signature, keep: Any = None
    ) -> None:
        self._path = path
        self._signature = signature
        self._keep = keep
        self._native = native.load(path)
        self._stats: dict[str, Any] | None = None
        for kind, count, leaves in (
            ("arguments", self._native.argument_count, signature.arguments),
            ("results", self._native.result_count, signature.results),
        ):
            if count != len(leaves):
                raise RuntimeError(
                    f"{path}: {count} {kind} in the program, and {len(leaves)} "
                    f"in {_SIGNATURE}"
                )

    @property
    def rank_count(self) -> int:
        """How many ranks it runs on."""
        return self._native.rank_count

    @property
    def plan(self) -> dict[str, Any]:
        """What the compiler decided: task graphs, shares, collectives."""
        return json.loads(self._native.plan)

    @property
    def manifest(self) -> dict[str, Any]:
        """What the program directory says of its ranks and tensors."""
        path = os.path.join(self._path, "manifest.json")
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    @property
    def stats(self) -> dict[str, Any] | None:
        """Time, memory and communication by rank of the last call."""
        return self._stats

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs one step.

        Raises:
            TypeError: for arguments other than those compiled for.
            RuntimeError: where a rank failed.
        """
        return self.run(*self._signature.flatten(args, kwargs))

    def run(self, values: list[Any], in_tree: jax.tree_util.PyTreeDef) -> Any:
        """Runs one step on leaves that fit the signature."""
        out_tree = self._signature.result_tree(in_tree)
        self._check_donation(values)
        handles = [
            self._handle(value, leaf)
            for value, leaf in zip(values, self._signature.arguments)
        ]
        results, stats = native.guarded(self._native.run, handles)
        self._stats = json.loads(stats)
        return jax.tree.unflatten(
            out_tree, map(_wrap, results, self._signature.results)
        )

    def _check_donation(self, values: list[Any]) -> None:
        """A donated array may be given once only."""
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
                    "Array, and it is donated"
                )

    @staticmethod
    def _handle(value: Any, leaf: Leaf) -> Any:
        if isinstance(value, Array):
            return value.handle()
        host = host_value(value, leaf)
        return native.extension().Array.from_host(
            host.reshape(-1).view(np.uint8), leaf.dtype, list(leaf.shape)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program directory, in place of an earlier program there.

        Raises:
            FileExistsError: where `path` is something else than a program.
            TypeError: where the result tree cannot be stored.
        """
        path = os.path.abspath(path)
        if os.path.exists(path) and not _is_program(path):
            raise FileExistsError(f"{path} exists and is not a Whale program")
        signature = json.dumps(self._signature.to_json(), indent=1)
        parent = os.path.dirname(path)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".whale-") as place:
            fresh = os.path.join(place, "new")
            shutil.copytree(self._path, fresh)
            with open(
                os.path.join(fresh, _SIGNATURE), "w", encoding="utf-8"
            ) as file:
                file.write(signature)
            if os.path.exists(path):
                os.rename(path, os.path.join(place, "old"))
            os.rename(fresh, path)


def load(path: str | os.PathLike[str]) -> Program:
    """Reads a program that `Program.save` wrote.

    Raises:
        RuntimeError: where it is none, or is damaged.
    """
    path = os.path.abspath(path)
    file = os.path.join(path, _SIGNATURE)
    try:
        with open(file, encoding="utf-8") as stream:
            signature = Signature.from_json(json.load(stream))
    except (OSError, ValueError) as error:
        hint = (
            "; programs of whale-compile are run by whale-run"
            if _is_program(path)
            else ""
        )
        raise RuntimeError(f"{path}: {error}{hint}") from None
    return Program(path, signature)


def _is_program(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "manifest.json"))


def _wrap(handle: Any, leaf: Leaf) -> Any:
    if leaf.dtype == "float0":
        return np.zeros(leaf.shape, jax.dtypes.float0)
    kind = Array if leaf.key is None else KeyArray
    return kind(handle, leaf.aval, leaf.key)
