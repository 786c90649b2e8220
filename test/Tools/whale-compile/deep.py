"""Prints a program that is deep, long or large in one way: deep.py KIND N.

In: a kind and a number N. Out: a text on standard output, for which deep.test
says whether it must compile in time or be refused with which error. The text
grows in proportion to N, but what it stands for may be exponential in N
(doubling, aliases): a compiler that expands it would not end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

T = "tensor<8x8xf32>"
MAIN = f"@main(%x: {T} {{whale.batch_dim = 0 : i64}}, %w: {T})"
TRUE = "%p = stablehlo.constant dense<true> : tensor<i1>"
STRATEGY = "whale.default_strategy = #whale.split"
COUNT = "\n".join(
    f"%c{i} = stablehlo.constant dense<{i}> : tensor<i32>" for i in (0, 1, 3)
)


def program(
    lines: list[str], result: str, functions: list[str] | None = None
) -> str:
    body = [*lines, f"return {result} : {T}"]
    return "\n".join(
        [
            f"module attributes {{{STRATEGY}}} {{",
            *(functions or []),
            f"func.func {MAIN} -> {T} {{",
            *body,
            "}",
            "}",
        ]
    )


def chain(n: int) -> str:
    """n operations on a parameter, which wait until a product wants one."""
    lines = [f"%v0 = stablehlo.tanh %w : {T}"]
    lines += [f"%v{i} = stablehlo.tanh %v{i - 1} : {T}" for i in range(1, n)]
    product = "stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]"
    product = product.replace("%v,", f"%v{n - 1},")
    lines += [f"%r = {product} : ({T}, {T}) -> {T}"]
    return program(lines, "%r")


def reversals(n: int) -> str:
    """Reversals and transposes in turn, of which fusion makes one map."""
    lines = [f"%v0 = stablehlo.tanh %x : {T}"]
    for i in range(1, n, 2):
        transposed = f"stablehlo.transpose %v{i - 1}, dims = [1, 0]"
        lines += [
            f"%v{i} = {transposed} : ({T}) -> {T}",
            f"%v{i + 1} = stablehlo.reverse %v{i}, dims = [0] : {T}",
        ]
    return program(lines, f"%v{n - n % 2}")


def calls(n: int, times: int = 1) -> str:
    """n functions that each call the next one `times` times."""
    functions = [f"func.func private @f{n}(%v0: {T}) -> {T} {{"]
    functions += [f"%r = stablehlo.tanh %v0 : {T} return %r : {T} }}"]
    for i in reversed(range(n)):
        functions += [f"func.func private @f{i}(%v0: {T}) -> {T} {{"]
        for k in range(1, times + 1):
            functions += [f"%v{k} = call @f{i + 1}(%v{k - 1}) : ({T}) -> {T}"]
        functions += [f"%r = stablehlo.add %v{times}, %v0 : {T}"]
        functions += [f"return %r : {T} }}"]
    return program([f"%r = call @f0(%x) : ({T}) -> {T}"], "%r", functions)


def branches(n: int) -> str:
    """n branches inside one another."""
    lines = [TRUE]
    lines += [f'%r{i} = "stablehlo.if"(%p) ({{' for i in range(n)]
    lines += [f"%r{n} = stablehlo.tanh %x : {T}"]
    for i in reversed(range(n)):
        lines += [
            f"stablehlo.return %r{i + 1} : {T} }}, {{",
            f"stablehlo.return %x : {T} }}) : (tensor<i1>) -> {T}",
        ]
    return program(lines, "%r0")


def loops(n: int) -> str:
    """n loops inside one another."""
    lines = [COUNT]
    value = "%x"
    for i in range(n):
        lines += [
            f"%r{i}:2 = stablehlo.while(%i{i} = %c0, %x{i} = {value}) "
            f": tensor<i32>, {T} cond {{",
            f"%p{i} = stablehlo.compare LT, %i{i}, %c3 "
            ": (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f"stablehlo.return %p{i} : tensor<i1> }} do {{",
        ]
        value = f"%x{i}"
    product = f"stablehlo.dot_general {value}, %w, contracting_dims = [1] x [0]"
    lines += [f"%y = {product} : ({T}, {T}) -> {T}"]
    value = "%y"
    for i in reversed(range(n)):
        lines += [
            f"%n{i} = stablehlo.add %i{i}, %c1 : tensor<i32>",
            f"stablehlo.return %n{i}, {value} : tensor<i32>, {T} }}",
        ]
        value = f"%r{i}#1"
    return program(lines, value)


def conditions(n: int) -> str:
    """n loops, each in the condition of the one before."""
    lines = [COUNT]
    for i in range(n):
        lines += [f"%r{i} = stablehlo.while(%i{i} = %c0) : tensor<i32> cond {{"]
    value = "%c3"
    for i in reversed(range(n)):
        lines += [
            f"%p{i} = stablehlo.compare LT, %i{i}, {value} "
            ": (tensor<i32>, tensor<i32>) -> tensor<i1>",
            f"stablehlo.return %p{i} : tensor<i1> }} do {{",
            f"%n{i} = stablehlo.add %i{i}, %c1 : tensor<i32>",
            f"stablehlo.return %n{i} : tensor<i32> }}",
        ]
        value = f"%r{i}"
    lines += [
        f"%y = stablehlo.convert {value} : (tensor<i32>) -> tensor<f32>",
        f"%z = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> {T}",
    ]
    return program(lines, "%z")


def pieces(n: int) -> str:
    """One tensor of n arguments."""
    arguments = ", ".join(f"%{i}: {T}" for i in range(n))
    values = ", ".join(f"%{i}" for i in range(n))
    types = ", ".join([T] * n)
    result = f"tensor<{8 * n}x8xf32>"
    return f"""func.func @main({arguments}) -> {result} {{
  %r = stablehlo.concatenate {values}, dim = 0 : ({types}) -> {result}
  return %r : {result}
}}"""


def parameters(n: int) -> str:
    """n parameters without a name, each in a product of its own."""
    product = f"contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"
    lines = [f"%s0 = stablehlo.tanh %x : {T}"]
    for i in range(n):
        lines += [
            f"%v{i} = stablehlo.dot_general %x, %w{i}, {product}",
            f"%s{i + 1} = stablehlo.add %s{i}, %v{i} : {T}",
        ]
    arguments = "".join(f", %w{i}: {T}" for i in range(n))
    text = program(lines, f"%s{n}")
    return text.replace(", %w:", f"{arguments}, %w:", 1)


def sorted_together(n: int) -> str:
    """A sort of n tensors."""
    scalar = "tensor<f32>"
    pairs = ", ".join(f"%a{i}: {scalar}, %b{i}: {scalar}" for i in range(n))
    types = ", ".join([T] * n)
    lines = [
        f"%s:{n} = "
        f'"stablehlo.sort"({", ".join(["%x"] * n)}) <{{dimension = 0 : i64}}> '
        f"({{ ^bb0({pairs}):",
        f"%c = stablehlo.compare LT, %a0, %b0 : ({scalar}, {scalar}) "
        "-> tensor<i1>",
        f"stablehlo.return %c : tensor<i1> }}) : ({types}) -> ({types})",
    ]
    return program(lines, "%s#0")


def brackets(n: int) -> str:
    return f"module attributes {{a.b = {'[' * n}{']' * n}}} {{}}"


def modules(n: int) -> str:
    return "module {\n" * n + "}\n" * n


def aliases(n: int) -> str:
    """Each alias is a location that names the one before twice."""
    lines = [f"%r = stablehlo.tanh %x : {T} loc(#loc{n})"]
    locations = ['\n#loc0 = loc("a"(unknown))']
    locations += [
        f"#loc{i} = loc(callsite(#loc{i - 1} at #loc{i - 1}))"
        for i in range(1, n + 1)
    ]  # fmt: skip
    return program(lines, "%r") + "\n".join(locations)


def terms(n: int) -> str:
    """An affine expression of n terms."""
    expression = " + ".join(["d0 mod 3", "d1"] * (n // 2))
    value = f"affine_map<(d0, d1) -> ({expression})>"
    return f"module attributes {{a.b = {value}}} {{}}"


KINDS: dict[str, Callable[[int], str]] = {
    "chain": chain,
    "reversals": reversals,
    "calls": calls,
    "doubling": lambda n: calls(n, times=2),
    "branches": branches,
    "loops": loops,
    "conditions": conditions,
    "pieces": pieces,
    "parameters": parameters,
    "sorted": sorted_together,
    "brackets": brackets,
    "modules": modules,
    "terms": terms,
    "aliases": aliases,
}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](int(sys.argv[2])))
