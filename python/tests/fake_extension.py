"""Stands in for ``whale._whale`` where only the Python side is under test.

A program is the text itself, run on one device by XLA.
"""

from __future__ import annotations

import json
import os
import re

import jax
import numpy as np
from jax._src.lib import xla_client
from jax.interpreters import mlir

from whale.dtypes import element_name, numpy_dtype

ir = mlir.ir


class CompileError(Exception):
    pass


class RuntimeError(Exception):  # noqa: A001 - the extension's name
    pass


class Array:
    def __init__(self, value: np.ndarray) -> None:
        self.value = value
        self.is_donated = False
        self.gathers = 0

    @staticmethod
    def from_host(data: np.ndarray, dtype: str, shape: list[int]) -> Array:
        return Array(data.view(numpy_dtype(dtype)).reshape(shape).copy())

    @property
    def dtype(self) -> str:
        return element_name(self.value.dtype)

    @property
    def shape(self) -> list[int]:
        return list(self.value.shape)

    def to_host(self) -> np.ndarray:
        self.gathers += 1
        return self.value.reshape(-1).view(np.uint8).copy()


def compile(text: str, cluster: str, options: str, path: str) -> None:  # noqa: A001
    if "stablehlo.fft" in text:
        raise CompileError("loc: error: no fft")
    os.mkdir(path)
    with open(os.path.join(path, "manifest.json"), "w") as file:
        json.dump({"text": text, "cluster": cluster, "options": options}, file)


class Program:
    def __init__(self, path: str) -> None:
        try:
            with open(os.path.join(path, "manifest.json")) as file:
                manifest = json.load(file)
        except OSError as error:
            raise RuntimeError(str(error)) from None
        self.text = manifest["text"]
        self.rank_count = 1
        self.plan = json.dumps({"cluster": manifest["cluster"]})
        with mlir.make_ir_context() as context:
            context.allow_unregistered_dialects = True
            module = ir.Module.parse(self.text)
            for name in ("whale.config", "whale.default_strategy"):
                if name in module.operation.attributes:
                    del module.operation.attributes[name]
            main = next(
                op
                for op in module.body.operations
                if op.operation.name == "func.func"
                and op.attributes["sym_name"].value == "main"
            )
            attributes = main.operation.attributes
            types = attributes["function_type"].value
            self.argument_count = len(types.inputs)
            self.result_count = len(types.results)
            self.donated = [
                "whale.donated" in attrs
                for attrs in (
                    attributes["arg_attrs"] if "arg_attrs" in attributes else []
                )
            ] or [False] * self.argument_count
            if "arg_attrs" in attributes:
                del attributes["arg_attrs"]
            plain = module.operation.get_asm()
        plain = re.sub(r"whale\.\w+", "unused", plain)
        device = jax.devices("cpu")[0]
        with mlir.make_ir_context():
            self._run = device.client.compile_and_load(
                ir.Module.parse(plain).operation.get_asm(),
                xla_client.DeviceList((device,)),
                xla_client.CompileOptions(),
            )

    def run(self, arrays: list[Array]) -> tuple[list[Array], str]:
        for array in arrays:
            if array.is_donated:
                raise RuntimeError("donated twice")
        given = [jax.numpy.asarray(array.value) for array in arrays]
        for array, donated in zip(arrays, self.donated):
            array.is_donated |= donated
        results = self._run.execute(given)
        return [Array(np.asarray(r)) for r in results], json.dumps(
            {"ranks": []}
        )
