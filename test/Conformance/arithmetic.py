"""Cases of arithmetic on elements, and of conversions.

In: a generator of arguments with a seed. Out: for each case a name, a text of
one small function and its arguments; generate.py adds what XLA gives, and
run.py judges, by tolerances of each type. Every operation comes with the
element types that it takes, mostly on numbers that arithmetic goes wrong with.
A failure means that an element is computed or rounded unlike XLA.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from values import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    SMALL_FLOATS,
    Item,
    Values,
    numpy_dtype,
    one,
    tensor,
)


def elementwise(v: Values) -> Iterator[Item]:
    shape = (4, 6)
    unary = {
        "abs": FLOATS + SIGNED + COMPLEX,
        "negate": FLOATS + INTEGERS + COMPLEX + SMALL_FLOATS,
        "sign": FLOATS + SIGNED + COMPLEX,
        "not": INTEGERS + ["i1"],
        # Of i4, XLA counts the bits of a byte.
        "popcnt": [dtype for dtype in INTEGERS if dtype != "i4"],
        "count_leading_zeros": INTEGERS,
        "ceil": FLOATS + SMALL_FLOATS,
        "floor": FLOATS + SMALL_FLOATS,
        "round_nearest_afz": FLOATS,
        "round_nearest_even": FLOATS,
        **{
            name: FLOATS + COMPLEX
            for name in (
                "cosine", "sine", "tan", "exponential", "tanh", "logistic",
                "exponential_minus_one", "log", "log_plus_one", "sqrt",
                "rsqrt",
            )
        },
        "cbrt": FLOATS,
    }  # fmt: skip
    for name, dtypes in unary.items():
        for dtype in dtypes:
            type_ = tensor(shape, dtype)
            result = type_
            if name == "abs" and dtype in COMPLEX:
                result = tensor(shape, dtype[8:11])
            spelt = type_ if result == type_ else f"({type_}) -> {result}"
            edges = dtype not in COMPLEX
            yield one(
                f"{name}_{dtype}", f"stablehlo.{name} %a0 : {spelt}",
                [type_], result, [v.make(shape, dtype, edges)],
            )  # fmt: skip
    for dtype in FLOATS + SMALL_FLOATS:
        type_, result = tensor(shape, dtype), tensor(shape, "i1")
        yield one(
            f"is_finite_{dtype}",
            f"stablehlo.is_finite %a0 : ({type_}) -> {result}",
            [type_], result, [v.make(shape, dtype, True)],
        )  # fmt: skip
    for dtype in COMPLEX:
        type_, part = tensor(shape, dtype), tensor(shape, dtype[8:11])
        for name in ("real", "imag"):
            yield one(
                f"{name}_{dtype}",
                f"stablehlo.{name} %a0 : ({type_}) -> {part}",
                [type_], part, [v.make(shape, dtype, True)],
            )  # fmt: skip
        yield one(
            f"complex_{dtype}", f"stablehlo.complex %a0, %a1 : {type_}",
            [part, part], type_,
            [v.make(shape, dtype[8:11], True) for _ in range(2)],
        )  # fmt: skip
    binary = {
        "add": EVERY, "subtract": NUMBERS + SMALL_FLOATS,
        "multiply": EVERY, "divide": NUMBERS,
        "remainder": FLOATS + INTEGERS,
        "maximum": FLOATS + INTEGERS + ["i1"],
        "minimum": FLOATS + INTEGERS + ["i1"],
        "power": NUMBERS, "atan2": FLOATS,
        "and": INTEGERS + ["i1"], "or": INTEGERS + ["i1"],
        "xor": INTEGERS + ["i1"], "shift_left": INTEGERS,
        "shift_right_logical": INTEGERS, "shift_right_arithmetic": INTEGERS,
    }  # fmt: skip
    for name, dtypes in binary.items():
        for dtype, edges in itertools.product(dtypes, (False, True)):
            if edges and dtype in COMPLEX:
                continue
            # XLA takes large exponents for negative ones.
            if edges and name == "power" and dtype[0] == "u":
                continue
            type_ = tensor(shape, dtype)
            yield one(
                f"{name}_{dtype}{'_edges' * edges}",
                f"stablehlo.{name} %a0, %a1 : {type_}", [type_, type_], type_,
                [v.make(shape, dtype, edges) for _ in range(2)],
            )  # fmt: skip
    for dtype in EVERY:
        type_, flags = tensor(shape, dtype), tensor(shape, "i1")
        directions = ["EQ", "NE"]
        if dtype not in COMPLEX:
            directions += ["GE", "GT", "LE", "LT"]
        kinds = ["FLOAT", "TOTALORDER"] if dtype[0] in "fb" else ["UNSIGNED"]
        kinds = ["SIGNED"] if dtype in SIGNED else kinds
        kinds = ["FLOAT"] if dtype in COMPLEX else kinds
        for direction, kind in itertools.product(directions, kinds):
            yield one(
                f"compare_{direction}_{kind}_{dtype}",
                f"stablehlo.compare {direction}, %a0, %a1, {kind} : "
                f"({type_}, {type_}) -> {flags}",
                [type_, type_], flags,
                [v.make(shape, dtype, True) for _ in range(2)],
            )  # fmt: skip
        for is_scalar in (False, True):
            flag = "tensor<i1>" if is_scalar else flags
            yield one(
                f"select_{dtype}{'_scalar' * is_scalar}",
                f"stablehlo.select %a0, %a1, %a2 : {flag}, {type_}",
                [flag, type_, type_], type_,
                [v.make(() if is_scalar else shape, "i1"),
                 *(v.make(shape, dtype, True) for _ in range(2))],
            )  # fmt: skip
    for dtype in FLOATS + INTEGERS:
        type_, scalar = tensor(shape, dtype), tensor((), dtype)
        low, high = (np.full((), n, numpy_dtype(dtype)) for n in (1, 3))
        yield one(
            f"clamp_{dtype}", "stablehlo.clamp %a0, %a1, %a2 : "
            f"({scalar}, {type_}, {scalar}) -> {type_}",
            [scalar, type_, scalar], type_,
            [low, v.make(shape, dtype, True), high],
        )  # fmt: skip
    for dtype in FLOATS:
        for format_ in ("e5m10", "e8m7", "e4m3", "e2m1", "e8m23", "e8m0"):
            type_ = tensor(shape, dtype)
            yield one(
                f"reduce_precision_{format_}_{dtype}",
                f"stablehlo.reduce_precision %a0, format = {format_} : {type_}",
                [type_], type_, [v.make(shape, dtype, True)],
            )  # fmt: skip


def conversions(v: Values) -> Iterator[Item]:
    shape = (3, 8)
    for source, target in itertools.product(EVERY, EVERY):
        from_, to = tensor(shape, source), tensor(shape, target)
        if source in COMPLEX and target not in COMPLEX:
            continue
        if source == target:
            continue
        yield one(
            f"convert_{source}_to_{target}",
            f"stablehlo.convert %a0 : ({from_}) -> {to}",
            [from_], to, [v.make(shape, source, True)],
        )  # fmt: skip
    alike = [
        ["i8", "ui8", "f8E4M3FN", "f8E5M2"], ["i16", "ui16", "f16", "bf16"],
        ["i32", "ui32", "f32"], ["i64", "ui64", "f64"],
        *([dtype] for dtype in COMPLEX),
    ]  # fmt: skip
    for dtypes in alike:
        for source, target in itertools.product(dtypes, repeat=2):
            from_, to = tensor(shape, source), tensor(shape, target)
            yield one(
                f"bitcast_convert_{source}_to_{target}",
                f"stablehlo.bitcast_convert %a0 : ({from_}) -> {to}",
                [from_], to, [v.make(shape, source, True)],
            )  # fmt: skip
    for source, target, factor in (
        ("f32", "i16", 2), ("ui32", "ui8", 4), ("f64", "ui32", 2),
        ("i64", "f16", 4), ("i8", "i4", 2), ("ui8", "ui4", 2), ("f32", "i4", 8),
        ("i8", "ui2", 4),
    ):  # fmt: skip
        wide, narrow = tensor((3,), source), tensor((3, factor), target)
        yield one(
            f"bitcast_convert_{source}_to_{target}",
            f"stablehlo.bitcast_convert %a0 : ({wide}) -> {narrow}",
            [wide], narrow, [v.make((3,), source, True)],
        )  # fmt: skip
        yield one(
            f"bitcast_convert_{target}_to_{source}",
            f"stablehlo.bitcast_convert %a0 : ({narrow}) -> {wide}",
            [narrow], wide, [v.make((3, factor), target)],
        )  # fmt: skip
