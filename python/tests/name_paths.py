"""Reads the name path of every operation out of a lowered text.

Does what the compiler does: calls are inlined, and the path of a call stands
in front of the paths inside the function that it calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
from jax.interpreters import mlir

from whale.strategies import scopes_in

ir = mlir.ir


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation after inlining."""

    name: str
    path: str

    @property
    def scope(self) -> str | None:
        """The innermost scope: its name, or its id where it has none."""
        found = [
            scope
            for part in self.path.replace("(", "/").replace(")", "/").split("/")
            for scope in scopes_in(part)
        ]
        return (found[-1].name or str(found[-1].id)) if found else None

    @property
    def backward(self) -> bool:
        return "transpose(" in self.path


def operations(text: str) -> list[Op]:
    """Every operation of the module, inlined, but for constants."""
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        body: list[Any] = list(module.body.operations)
        functions = {
            op.attributes["sym_name"].value: op
            for op in body
            if "function_type" in op.attributes
        }
        return list(_walk(functions["main"], functions, ""))


def _walk(function: Any, functions: dict, prefix: str) -> Iterator[Op]:
    for region in function.regions:
        for block in region.blocks:
            for op in block.operations:
                operation = op.operation
                name = operation.name
                path = "/".join(filter(None, (prefix, _path(op.location))))
                if name == "func.call":
                    callee = operation.attributes["callee"].value
                    yield from _walk(functions[callee], functions, path)
                    continue
                if not name.endswith((".return", ".constant")):
                    yield Op(name, path)
                if name not in ("stablehlo.reduce", "stablehlo.scatter"):
                    yield from _walk(operation, functions, prefix)


def _path(location: Any) -> str:
    # Each kind of location is a class of its own since jax 0.10.
    if not hasattr(ir, "NameLoc"):
        if location.is_a_name():
            return location.name_str
        return _path(location.callee) if location.is_a_callsite() else ""
    if isinstance(location, ir.NameLoc):
        return location.name_str
    if isinstance(location, ir.CallSiteLoc):
        return _path(location.callee)
    return ""


def compute(ops: list[Op]) -> list[Op]:
    """The operations that work on floating-point data, by name."""
    names = (
        "dot_general convolution tanh multiply add subtract divide maximum "
        "exponential select transpose reduce gather scatter power rsqrt"
    ).split()
    return [op for op in ops if op.name.removeprefix("stablehlo.") in names]


__all__ = ["Op", "operations", "compute", "jax"]
