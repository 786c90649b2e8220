"""Calls of functions that the compiler knows by name, right and damaged.

In: a random generator. Out: the text of a module whose @main calls one of them.
`CALLS` has each name with operands, results and configuration that are right;
`damaged` leaves one of these out, puts one in, or gives it another type, shape,
layout or value. Costs a few lines of text.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import sys
from collections.abc import Iterator

ELEMENTS = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
# Of LAPACK: names for real and for complex matrices, operands, results and
# configurations. T stands for the type of the elements, R for that of their
# parts, C for the complex one; matrices have 2 dimensions here.
Row = tuple[str, str, str, str, list[str]]
LAPACK: list[Row] = [
    ("gees", "", "4x4xT", "4x4xT 4x4xT 4xT 4xT i32 i32",
     ["mode=V sort=N", "mode=N sort=N"]),
    ("", "gees", "4x4xT", "4x4xT 4x4xT 4xT i32 i32", ["mode=V sort=N"]),
    ("geev", "", "4x4xT", "4xT 4xT 4x4xC 4x4xC i32",
     ["compute_left=V compute_right=V", "compute_left=N compute_right=V"]),
    ("", "geev", "4x4xT", "4xT 4x4xT 4x4xT i32",
     ["compute_left=N compute_right=V"]),
    ("gehrd", "gehrd", "4x4xT", "4x4xT 3xT i32", ["low=1 high=4"]),
    ("geqp3", "geqp3", "4x6xT 6xi32", "4x6xT 6xi32 4xT", [""]),
    ("geqrf", "geqrf", "6x4xT", "6x4xT 4xT", [""]),
    ("gesdd", "gesdd", "4x6xT", "4x6xT 4xR 4x4xT 6x6xT i32",
     ["mode=A", "mode=N"]),
    ("gesdd", "gesdd", "4x6xT", "4x6xT 4xR 4x4xT 4x6xT i32", ["mode=S"]),
    ("getrf", "getrf", "4x6xT", "4x6xT 4xi32 i32", [""]),
    ("gtsv", "gtsv", "4xT 4xT 4xT 4x3xT", "4xT 4xT 4xT 4x3xT i32", [""]),
    ("orgqr", "ungqr", "6x4xT 4xT", "6x4xT", [""]),
    ("ormqr", "unmqr", "6x4xT 4xT 6x3xT", "6x3xT",
     ["left=true transpose=true"]),
    ("ormqr", "unmqr", "6x4xT 4xT 3x6xT", "3x6xT",
     ["left=false transpose=false"]),
    ("potrf", "potrf", "4x4xT", "4x4xT i32", ["uplo=L", "uplo=U"]),
    ("syevd", "heevd", "4x4xT", "4x4xT 4xR i32",
     ["mode=V uplo=L", "mode=N uplo=U"]),
    ("sytrd", "hetrd", "4x4xT", "4x4xT 4xR 3xR 3xT i32", ["uplo=L"]),
    ("trsm", "trsm", "4x4xT 4x3xT", "4x3xT",
     ["diag=N side=L trans_x=T uplo=U"]),
    ("trsm", "trsm", "4x4xT 3x4xT", "3x4xT",
     ["diag=U side=R trans_x=N uplo=L"]),
]  # fmt: skip
UNARY = (
    "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv "
    "erfc lgamma sinh square tan"
).split()
COMPARATOR = """
func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>,
    %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b, TOTALORDER
    : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
"""


@dataclasses.dataclass
class Call:
    """A call, with types as in "4x6xf32" and attributes as they are printed."""

    target: str
    operands: list[str]
    results: list[str]
    config: dict[str, str] = dataclasses.field(default_factory=dict)
    # None where the call has none.
    layouts: tuple[list[str], list[str]] | None = None
    config_name: str = "mhlo.backend_config"
    attributes: dict[str, str] = dataclasses.field(default_factory=dict)
    functions: str = ""

    def text(self) -> str:
        attributes = dict(self.attributes)
        if self.config:
            attributes[self.config_name] = _braced(self.config)
        if self.layouts:
            for name, layouts in zip(("operand", "result"), self.layouts):
                attributes[f"{name}_layouts"] = f"[{', '.join(layouts)}]"
        operands = list(map(tensor, self.operands))
        results = list(map(tensor, self.results))
        arguments = [f"%{i}: {type_}" for i, type_ in enumerate(operands)]
        names = [f"%{i}" for i in range(len(operands))]
        given = [f"%r#{i}" for i in range(len(results))]
        head = f"%r:{len(results)} = " if results else ""
        end = f" {', '.join(given)} : {', '.join(results)}" if results else ""
        return (
            f"func.func @main({', '.join(arguments)}) -> "
            f"({', '.join(results)}) {{\n"
            f"  {head}stablehlo.custom_call @{self.target}({', '.join(names)})"
            f" {_braced(attributes)}\n"
            f"    : ({', '.join(operands)}) -> ({', '.join(results)})\n"
            f"  return{end}\n}}\n{self.functions}"
        )


def tensor(type_: str) -> str:
    """The type of a tensor like "4x6xf32", or another one as it is."""
    return type_ if type_.startswith(("!", "tuple")) else f"tensor<{type_}>"


def _braced(attributes: dict[str, str]) -> str:
    return f"{{{', '.join(f'{k} = {v}' for k, v in attributes.items())}}}"


def _layout(type_: str) -> str:
    """A matrix in column-major order."""
    rank = len(re.findall(r"(?:\d+|\?)x", type_))
    dims = list(reversed(range(rank)))
    if rank == 2:
        dims.reverse()
    return f"dense<{dims if rank > 1 else '0' * rank}> : tensor<{rank}xindex>"


def _value(text: str) -> str:
    if text in ("true", "false"):
        return text
    return f"{text} : i32" if text.isdigit() else f"{ord(text)} : ui8"


def _lapack() -> Iterator[Call]:
    for real, complex_, operands, results, configs in LAPACK:
        for letter, element in ELEMENTS.items():
            name = real if letter in "sd" else complex_
            part = element.removeprefix("complex<").removesuffix(">")
            both = f"complex<{part}>"
            given, made = (
                [
                    type_.replace("T", element)
                    .replace("R", part)
                    .replace("C", both)
                    for type_ in types.split()
                ]
                for types in (operands, results)
            )
            for config in configs if name else []:
                entries = (entry.split("=") for entry in config.split())
                yield Call(
                    f"lapack_{letter}{name}_ffi", given, made,
                    {key: _value(value) for key, value in entries},
                    (list(map(_layout, given)), list(map(_layout, made))),
                )  # fmt: skip


def _others() -> Iterator[Call]:
    for name in UNARY:
        yield Call(f"chlo.{name}", ["4x8xf32"], ["4x8xf32"])
        yield Call(f"mhlo.{name}", ["8xf32"], ["8xf32"])
    for name in ("is_inf", "is_neg_inf", "is_pos_inf"):
        yield Call(f"chlo.{name}", ["4x8xf32"], ["4x8xi1"])
    for name in ("next_after", "polygamma", "zeta"):
        yield Call(f"chlo.{name}", ["8xf32", "8xf32"], ["8xf32"])
    yield Call("chlo.mulhi", ["8xi32", "8xi32"], ["8xi32"])
    top = {"k": "3 : i64", "largest": "true"}
    for name in ("mhlo.topk", "chlo.top_k"):
        yield Call(name, ["4x8xf32"], ["4x3xf32", "4x3xi32"], dict(top),
                   config_name="mhlo.attributes")  # fmt: skip
    yield Call("Sharding", ["4x8xf32"], ["4x8xf32"])
    yield Call(
        "ApproxTopK", ["4x8xf32", "4x8xi32", "f32", "i32"],
        ["4x3xf32", "4x3xi32"],
        {"reduction_dim": "1 : i64", "top_k": "3 : i64",
         "aggregate_to_topk": "true", "recall_target": "0.95 : f32",
         "reduction_input_size_override": "-1 : i64", "is_fallback": "true"},
        attributes={"called_computations": "[@greater]"}, functions=COMPARATOR,
    )  # fmt: skip


CALLS = [*_lapack(), *_others()]
TYPES = [
    "f32", "4xf32", "4x4xf32", "4x6xf32", "2x4x4xf32", "0x0xf32", "?x4xf32",
    "4x4xf64", "4x4xf16", "4x4xi32", "4xi32", "i32", "4x4xcomplex<f32>", "4xi1",
    "!stablehlo.token", "tuple<tensor<4x4xf32>>",
]  # fmt: skip
VALUES = [
    "76 : ui8", "86 : ui8", "78 : ui8", "200 : ui8", "76 : i8", "76 : i128",
    "-1 : i32", "0 : i64", "9223372036854775807 : i64", "true", "false",
    "1.0 : f32", '"L"', "[]", "unit", "{}",
]  # fmt: skip
LAYOUTS = [
    "dense<> : tensor<0xindex>", "dense<0> : tensor<1xindex>",
    "dense<[1, 0]> : tensor<2xindex>", "dense<[0, 1]> : tensor<2xindex>",
    "dense<[2, 1, 0]> : tensor<3xindex>",
]  # fmt: skip


def _damage_list(rng: random.Random, values: list[str],
                 choices: list[str]) -> None:  # fmt: skip
    """One value less, more, doubled or another."""
    kind = rng.randrange(4)
    at = rng.randrange(len(values) + 1)
    if kind == 0 or at == len(values):
        values.insert(at, rng.choice(choices + values))
    elif kind == 1:
        del values[at]
    else:
        values[at] = rng.choice(choices)


def _damage_config(rng: random.Random, config: dict[str, str]) -> None:
    keys = list(config)
    if not keys or rng.random() < 0.2:
        config[rng.choice(["uplo", "mode", "k", "left", "x"])] = rng.choice(
            VALUES
        )
    elif rng.random() < 0.3:
        del config[rng.choice(keys)]
    else:
        config[rng.choice(keys)] = rng.choice(VALUES)


def damaged(rng: random.Random) -> str:
    """The text of a call that is damaged in one or two places, seldom in
    none."""
    base = rng.choice(CALLS)
    call = dataclasses.replace(
        base, operands=list(base.operands), results=list(base.results),
        config=dict(base.config), attributes=dict(base.attributes),
    )  # fmt: skip
    if base.layouts:
        call.layouts = (list(base.layouts[0]), list(base.layouts[1]))
    for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2, 2])):
        kind = rng.randrange(8)
        if kind < 5:
            types = (call.operands, call.results)[kind % 2]
            before = list(types)
            _damage_list(rng, types, TYPES)
            # Else the layouts are what is found to be wrong.
            if call.layouts and before != types and rng.random() < 0.8:
                call.layouts[kind % 2][:] = map(_layout, types)
        elif kind < 7:
            _damage_config(rng, call.config)
        elif call.layouts:
            _damage_list(rng, rng.choice(call.layouts), LAYOUTS)
        elif call.attributes:
            call.attributes[rng.choice(list(call.attributes))] = rng.choice(
                ["[@main]", "[@nothing]", "[]", "[@greater, @greater]"]
            )
    return call.text()


def all_damaged() -> Iterator[str]:
    """Each call with each single change of operands, results and
    configuration that leaves one out or puts another in its place."""
    for base in CALLS:
        yield base.text()
        for kind, choices in (
            ("operands", TYPES), ("results", TYPES), ("config", VALUES),
        ):  # fmt: skip
            values = getattr(base, kind)
            is_list = isinstance(values, list)
            for key in range(len(values)) if is_list else values:
                for choice in (None, *choices):
                    changed = values.copy()
                    if choice is None:
                        del changed[key]
                    else:
                        changed[key] = choice
                    call = dataclasses.replace(base, **{kind: changed})
                    if call.layouts:
                        call.layouts = (
                            list(map(_layout, call.operands)),
                            list(map(_layout, call.results)),
                        )
                    yield call.text()


def main() -> None:
    """Prints all calls; with --damaged, some or all of `all_damaged`."""
    if "--damaged" not in sys.argv[1:]:
        texts = [call.text() for call in CALLS]
    else:
        full = "WHALE_TEST_FULL" in os.environ
        texts = list(all_damaged())[:: 1 if full else 7]
    print("\n// -----\n".join(texts))


if __name__ == "__main__":
    main()
