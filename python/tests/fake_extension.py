"""Stands in for ``whale._whale`` and for the compiler where only the Python
side is under test.

A program is the text itself, run on one device by XLA.

In: annotated text, then arrays. Out: what XLA's CPU backend computes of the
text without Whale's attributes, so clusters and strategies change no value.
Donation and gathering are kept track of. The text is parsed when it is compiled
and again when it is loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import typing

import jax
import numpy as np
from jax._src.lib import xla_client
from jax.interpreters import mlir

from whale.dtypes import element_name, numpy_dtype
from whale.errors import CompileError

ir = mlir.ir


class RuntimeError(Exception):  # noqa: A001 - the extension's name
    pass


class Array:
    def __init__(self, value: np.ndarray) -> None:
        self.value = value
        self.is_donated = False
        self.fate = "donated to a program"
        self.gathers = 0
        self.is_ready = self.is_done = True

    @staticmethod
    def from_host(data: np.ndarray, dtype: str, shape: list[int]) -> Array:
        return Array(data.view(numpy_dtype(dtype)).reshape(shape).copy())

    @property
    def dtype(self) -> str:
        return element_name(self.value.dtype)

    @property
    def shape(self) -> list[int]:
        return list(self.value.shape)

    def wait(self, in_main_thread: bool) -> None:
        pass

    def to_host(self, in_main_thread: bool) -> np.ndarray:
        self.gathers += 1
        return self.value.reshape(-1).view(np.uint8).copy()


def compile(  # noqa: A001 - the compiler's name
    text: str, cluster: str, path: str, *, target: str, **options: object
) -> list[str]:
    if "stablehlo.fft" in text:
        raise CompileError("loc: error: no fft")
    os.mkdir(path)
    step = _read(text)
    manifest = {
        "format": "whale",
        "target": target,
        "text": text,
        "ranks": [{}],
        "plan": {"cluster": cluster},
        "arguments": step.arguments,
        "results": step.results,
    }
    with open(os.path.join(path, "manifest.json"), "w") as file:
        json.dump(manifest, file)
    return []


class Staging:
    def __init__(self, path: str) -> None:
        self._path = path
        self._directory = tempfile.mkdtemp(dir=os.path.dirname(path))
        self.place = os.path.join(self._directory, "new")

    def commit(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.rename(self.place, self._path)

    def discard(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def may_hold_program(path: str) -> bool:
    manifest = os.path.join(path, "manifest.json")
    return not os.path.exists(path) or os.path.isfile(manifest)


def check_plan(path: str) -> None:
    pass


def read_tables(path: str) -> str:
    return "{}"


def read_program(path, read):
    return read(path)


def _entries(kind, types):
    return [
        {
            "name": f"{kind}{index}",
            "dtype": str(type.element_type),
            "shape": list(type.shape),
            "view": list(type.shape),
            "boxes": [[[0] * type.rank, list(type.shape)]],
        }
        for index, type in enumerate(types)
    ]


class _Step(typing.NamedTuple):
    """What is read of a text; nothing of it lives in MLIR's context."""

    arguments: list[dict]
    results: list[dict]
    donated: list[bool]
    plain: str  # the text without what Whale adds to it


def _read(text: str) -> _Step:
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        main = next(
            op
            for op in module.body.operations
            if op.operation.name == "func.func"
            and ir.StringAttr(op.attributes["sym_name"]).value == "main"
        )
        type = ir.FunctionType(
            ir.TypeAttr(main.attributes["function_type"]).value
        )
        arguments = _entries("arg", type.inputs)
        results = _entries("result", type.results)
        donated = [
            "whale.donated" in ir.DictAttr(attrs)
            for attrs in (
                ir.ArrayAttr(main.attributes["arg_attrs"])
                if "arg_attrs" in main.attributes
                else []
            )
        ]
        names = ("whale.config", "whale.default_strategy", "whale.scopes")
        for name in names:
            if name in module.operation.attributes:
                del module.operation.attributes[name]
        for op in module.body.operations:
            if "arg_attrs" in op.operation.attributes:
                del op.operation.attributes["arg_attrs"]
        plain = str(module.operation.get_asm())
        return _Step(arguments, results, donated, plain)


class ArrayClass:
    def __init__(
        self, type: typing.Any, plain: typing.Any, host: typing.Any
    ) -> None:
        self.type = type

    def mark_of(self, value: typing.Any) -> typing.Any:
        return value.kind if type(value) is self.type else None

    def find_others(
        self, values: list[typing.Any], marks: list[typing.Any]
    ) -> list[int]:
        return [
            index
            for index, (value, mark) in enumerate(zip(values, marks))
            if type(value) is not self.type or value.kind is not mark
        ]

    @staticmethod
    def has_repeated(values: list[typing.Any]) -> bool:
        return len(set(map(id, values))) < len(values)


class Step:
    has_left = True


class Program:
    notes: tuple[tuple[bool, str], ...] = ()

    def __init__(
        self,
        path: str,
        job: object,
        python: object,
        own_ranks: bool,
        in_main_thread: bool,
    ) -> None:
        with open(os.path.join(path, "manifest.json")) as file:
            step = _read(json.load(file)["text"])
        self.donated = step.donated
        device = jax.devices("cpu")[0]
        self._run = device.client.compile_and_load(
            step.plain,
            xla_client.DeviceList((device,)),
            xla_client.CompileOptions(),
        )

    def submit(
        self,
        array_class: ArrayClass,
        values: list[typing.Any],
        to_handle: typing.Callable[[int, typing.Any], Array],
        kinds: list[typing.Any],
        in_main_thread: bool,
    ) -> tuple[list[typing.Any], Step]:
        arrays: list[Array] = [
            value.handle()
            if type(value) is array_class.type
            else to_handle(index, value)
            for index, value in enumerate(values)
        ]
        for array in arrays:
            if array.is_donated:
                raise RuntimeError("donated twice")
        given = [jax.numpy.asarray(array.value) for array in arrays]
        for array, donated in zip(arrays, self.donated):
            array.is_donated |= donated
        results = self._run.execute(given)
        wrapped = [
            kind and array_class.type(Array(np.asarray(result)), kind)
            for result, kind in zip(results, kinds)
        ]
        return wrapped, Step()
