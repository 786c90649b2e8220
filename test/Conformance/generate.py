#!/usr/bin/env python
"""Writes conformance cases for every operation and element type.

    generate.py FOLDER [--only PART] [--seed N]

Each case is NAME.mlir with one small function @main, and NAME.npz with its
arguments (random numbers and those that arithmetic goes wrong with) and the
results that XLA's CPU backend gives. run.py runs them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import numpy as np
from factorizations import factorizations
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax, lapack
from jaxlib.mlir import ir
from specification import (
    alone,
    constants,
    normalized,
    several,
    sized,
    spelled,
)
from structures import algebra, control, functions
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
    text,
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
        for scalar in (False, True):
            flag = "tensor<i1>" if scalar else flags
            yield one(
                f"select_{dtype}{'_scalar' * scalar}",
                f"stablehlo.select %a0, %a1, %a2 : {flag}, {type_}",
                [flag, type_, type_], type_,
                [v.make(() if scalar else shape, "i1"),
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


def shapes(v: Values) -> Iterator[Item]:
    moves = [
        ("reshape", (4, 6), (2, 3, 4), ""),
        ("reshape", (), (1, 1), ""),
        ("reshape", (0, 3), (3, 0), ""),
        ("broadcast_in_dim", (3,), (2, 3), ", dims = [1]"),
        ("broadcast_in_dim", (), (2, 2), ", dims = []"),
        ("broadcast_in_dim", (1, 3), (3, 2, 4), ", dims = [2, 0]"),
        ("broadcast_in_dim", (2, 3), (3, 4, 2), ", dims = [2, 0]"),
        ("broadcast_in_dim", (3,), (0, 3), ", dims = [1]"),
        ("transpose", (2, 3, 4), (4, 2, 3), ", dims = [2, 0, 1]"),
        ("transpose", (2, 0), (0, 2), ", dims = [1, 0]"),
        ("slice", (5, 7), (2, 3), " [1:3, 0:6:2]"),
        ("slice", (5, 7), (0, 7), " [2:2, 0:7]"),
        ("slice", (5,), (3,), " [0:5:2]"),
        ("reverse", (2, 3, 2), (2, 3, 2), ", dims = [0, 2]"),
        ("reverse", (3,), (3,), ", dims = []"),
    ]
    for dtype in EVERY:
        for number, (name, from_, to, rest) in enumerate(moves):
            source, target = tensor(from_, dtype), tensor(to, dtype)
            spelt = f"({source}) -> {target}"
            if name == "reverse":
                spelt = source
            yield one(
                f"{name}_{number}_{dtype}",
                f"stablehlo.{name} %a0{rest} : {spelt}",
                [source], target, [v.make(from_, dtype, True)],
            )  # fmt: skip
        scalar = tensor((), dtype)
        pads = [
            ((2, 3), (4, 6), "low = [1, 2], high = [1, 1], interior = [0, 0]"),
            (
                (3, 3),
                (2, 2),
                "low = [-1, 0], high = [0, -1], interior = [0, 0]",
            ),
            ((2, 3), (3, 7), "low = [0, 1], high = [0, 1], interior = [1, 1]"),
            ((3,), (4,), "low = [-1], high = [0], interior = [1]"),
            ((3,), (4,), "low = [2], high = [-3], interior = [1]"),
            ((0,), (3,), "low = [1], high = [2], interior = [0]"),
        ]
        for number, (from_, to, rest) in enumerate(pads):
            source, target = tensor(from_, dtype), tensor(to, dtype)
            yield one(
                f"pad_{number}_{dtype}",
                f"stablehlo.pad %a0, %a1, {rest} : "
                f"({source}, {scalar}) -> {target}",
                [source, scalar], target,
                [v.make(from_, dtype), v.make((), dtype)],
            )  # fmt: skip
        for dim, sizes in ((0, (2, 1)), (1, (2, 0, 3)), (0, (1,) * 6)):
            parts = [(n, 3) if dim == 0 else (2, n) for n in sizes]
            types = [tensor(part, dtype) for part in parts]
            total = (sum(sizes), 3) if dim == 0 else (2, sum(sizes))
            names = ", ".join(f"%a{i}" for i in range(len(parts)))
            yield one(
                f"concatenate_{dim}_{len(parts)}_{dtype}",
                f"stablehlo.concatenate {names}, dim = {dim} : "
                f"({', '.join(types)}) -> {tensor(total, dtype)}",
                types, tensor(total, dtype),
                [v.make(part, dtype) for part in parts],
            )  # fmt: skip
        if dtype != "i1":
            for dim in (0, 1):
                yield one(
                    f"iota_{dim}_{dtype}",
                    f"stablehlo.iota dim = {dim} : {tensor((4, 5), dtype)}",
                    [], tensor((4, 5), dtype), [],
                )  # fmt: skip


def indexing(v: Values) -> Iterator[Item]:
    for dtype in EVERY:
        index = {"f32": "i64", "i32": "ui8", "bf16": "ui32"}.get(dtype, "i32")
        place = tensor((), index)
        big, small = tensor((4, 5), dtype), tensor((2, 3), dtype)
        for number, at in enumerate(((1, 1), (3, 4), (100, 0), (-3, 1))):
            if index[0] == "u" and min(at) < 0:
                continue
            starts = [np.full((), n, numpy_dtype(index)) for n in at]
            yield one(
                f"dynamic_slice_{number}_{dtype}",
                "stablehlo.dynamic_slice %a0, %a1, %a2, sizes = [2, 3] : "
                f"({big}, {place}, {place}) -> {small}",
                [big, place, place], small, [v.make((4, 5), dtype), *starts],
            )  # fmt: skip
            yield one(
                f"dynamic_update_slice_{number}_{dtype}",
                "stablehlo.dynamic_update_slice %a0, %a1, %a2, %a3 : "
                f"({big}, {small}, {place}, {place}) -> {big}",
                [big, small, place, place], big,
                [v.make((4, 5), dtype), v.make((2, 3), dtype), *starts],
            )  # fmt: skip
    # (operand, indices, result, sizes, dimension numbers)
    gathers = [
        ((5, 4), (3, 1), (3, 4), "1, 4",
         "offset_dims = [1], collapsed_slice_dims = [0], "
         "start_index_map = [0], index_vector_dim = 1"),
        ((5, 4), (2, 3, 2), (2, 3), "1, 1",
         "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], "
         "index_vector_dim = 2"),
        ((5, 4), (3, 2), (2, 3, 2), "2, 2",
         "offset_dims = [0, 2], start_index_map = [1, 0], "
         "index_vector_dim = 1"),
        ((5, 4), (2, 3), (2, 3, 4), "1, 4",
         "offset_dims = [2], collapsed_slice_dims = [0], "
         "start_index_map = [0], index_vector_dim = 2"),
        ((3, 5, 4), (3, 2, 1), (3, 2, 4), "1, 1, 4",
         "offset_dims = [2], collapsed_slice_dims = [1], "
         "operand_batching_dims = [0], start_indices_batching_dims = [0], "
         "start_index_map = [1], index_vector_dim = 2"),
        ((4, 3, 5), (2, 3, 4), (2, 3, 4), "1, 1, 1",
         "collapsed_slice_dims = [2], operand_batching_dims = [0, 1], "
         "start_indices_batching_dims = [2, 1], start_index_map = [2], "
         "index_vector_dim = 3"),
        ((5, 4), (0, 1), (0, 4), "1, 4",
         "offset_dims = [1], collapsed_slice_dims = [0], "
         "start_index_map = [0], index_vector_dim = 1"),
    ]  # fmt: skip
    scatters = [
        ((5, 4), (3, 1), (3, 4),
         "update_window_dims = [1], inserted_window_dims = [0], "
         "scatter_dims_to_operand_dims = [0], index_vector_dim = 1"),
        ((5, 4), (2, 3, 2), (2, 3),
         "inserted_window_dims = [0, 1], "
         "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2"),
        ((5, 4), (3, 2), (2, 3, 2),
         "update_window_dims = [0, 2], scatter_dims_to_operand_dims = [1, 0], "
         "index_vector_dim = 1"),
        ((3, 5, 4), (3, 2, 1), (3, 2, 4),
         "update_window_dims = [2], inserted_window_dims = [1], "
         "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
         "scatter_dims_to_operand_dims = [1], index_vector_dim = 2"),
        ((6,), (1,), (2,),
         "update_window_dims = [0], scatter_dims_to_operand_dims = [0]"),
    ]  # fmt: skip
    for dtype in EVERY:
        for number, (op, at, to, sizes, numbers) in enumerate(gathers):
            index = ("i32", "i64", "ui32", "i8")[number % 4]
            vector = int(re.findall(r"index_vector_dim = (\d)", numbers)[0])
            shape = at
            places = v.rng.integers(0 if index[0] == "u" else -2, 7, shape)
            types = [tensor(op, dtype), tensor(shape, index)]
            del vector
            yield one(
                f"gather_{number}_{dtype}",
                '"stablehlo.gather"(%a0, %a1) <{dimension_numbers = '
                f"#stablehlo.gather<{numbers}>, indices_are_sorted = false, "
                f"slice_sizes = array<i64: {sizes}>}}> : "
                f"({', '.join(types)}) -> {tensor(to, dtype)}",
                types, tensor(to, dtype),
                [v.make(op, dtype, True), places.astype(numpy_dtype(index))],
            )  # fmt: skip
        kinds = ["add", "maximum", "second"]
        for (number, (op, at, up, numbers)), kind in itertools.product(
            enumerate(scatters), kinds
        ):
            if kind == "maximum" and dtype in COMPLEX + SMALL_FLOATS:
                continue
            index = ("i32", "i64", "ui32", "i16")[number % 4]
            places = v.rng.integers(0 if index[0] == "u" else -1, 6, at)
            if kind == "second":
                # Which of two updates of a place wins is not defined.
                places = np.unique(places.reshape(-1, at[-1]), axis=0)
                wanted = int(np.prod(at[:-1], dtype=np.int64))
                missing = np.full((wanted - len(places), at[-1]), 100)
                places = np.concatenate([places, missing]).reshape(at)
                if "input_batching_dims" in numbers or number == 2:
                    continue
            scalar = tensor((), dtype)
            body = "      stablehlo.return %y : " + scalar
            if kind != "second":
                body = (
                    f"      %z = stablehlo.{kind} %x, %y : {scalar}\n"
                    f"      stablehlo.return %z : {scalar}"
                )
            types = [tensor(op, dtype), tensor(at, index), tensor(up, dtype)]
            yield one(
                f"scatter_{number}_{kind}_{dtype}",
                '"stablehlo.scatter"(%a0, %a1, %a2) <{indices_are_sorted = '
                "false, scatter_dimension_numbers = #stablehlo.scatter<"
                f"{numbers}>, unique_indices = false}}> ({{\n"
                f"    ^bb0(%x: {scalar}, %y: {scalar}):\n{body}\n    }}) : "
                f"({', '.join(types)}) -> {types[0]}",
                types, types[0],
                [v.distinct(op, dtype), places.astype(numpy_dtype(index)),
                 v.distinct(up, dtype)],
            )  # fmt: skip


def reductions(v: Values) -> Iterator[Item]:
    bodies = {
        "add": EVERY, "multiply": EVERY,
        "maximum": FLOATS + INTEGERS + ["i1"],
        "minimum": FLOATS + INTEGERS + ["i1"],
        "and": INTEGERS + ["i1"], "or": INTEGERS + ["i1"],
        "xor": INTEGERS + ["i1"],
    }  # fmt: skip
    for name, dtypes in bodies.items():
        for dtype in dtypes:
            scalar = tensor((), dtype)
            for from_, dims, to in (
                ((3, 4, 5), (1,), (3, 5)),
                ((3, 4, 5), (0, 2), (4,)),
                ((6,), (0,), ()),
                ((2, 0), (1,), (2,)),
            ):
                types = [tensor(from_, dtype), scalar]
                yield one(
                    f"reduce_{name}_{len(from_)}{len(dims)}_{dtype}",
                    f"stablehlo.reduce(%a0 init: %a1) applies stablehlo.{name} "
                    f"across dimensions = {list(dims)} : "
                    f"({', '.join(types)}) -> {tensor(to, dtype)}",
                    types, tensor(to, dtype),
                    [v.make(from_, dtype, True) if name == "maximum"
                     else v.summands(from_, dtype),
                     np.ones((), numpy_dtype(dtype))],
                )  # fmt: skip
            if name not in ("add", "maximum", "minimum"):
                continue
            windows = [
                ((6,), (3,), (1,), (1,), (1,), [[0, 0]]),
                ((7,), (3,), (2,), (1,), (1,), [[1, 1]]),
                ((5,), (5,), (1,), (1,), (1,), [[4, 0]]),
                ((5,), (5,), (1,), (1,), (1,), [[0, 4]]),
                ((5, 6), (2, 3), (2, 1), (1, 2), (2, 1), [[1, 0], [0, 2]]),
                ((5,), (2,), (1,), (1,), (1,), [[-1, 0]]),
                ((4, 3), (4, 1), (1, 1), (1, 1), (1, 1), [[3, 0], [0, 0]]),
            ]
            for number, window in enumerate(windows):
                from_, size, stride, base, dilation, padding = window
                to = tuple(
                    ((n - 1) * b + 1 + sum(p) - ((w - 1) * d + 1)) // s + 1
                    for n, w, s, b, d, p in zip(*window)
                )
                types = [tensor(from_, dtype), scalar]

                def array(values):
                    return f"array<i64: {', '.join(map(str, values))}>"

                yield one(
                    f"reduce_window_{number}_{name}_{dtype}",
                    '"stablehlo.reduce_window"(%a0, %a1) <{'
                    f"base_dilations = {array(base)}, "
                    f"padding = dense<{padding}> : tensor<{len(size)}x2xi64>, "
                    f"window_dilations = {array(dilation)}, "
                    f"window_dimensions = {array(size)}, "
                    f"window_strides = {array(stride)}}}> ({{\n"
                    f"    ^bb0(%x: {scalar}, %y: {scalar}):\n"
                    f"      %z = stablehlo.{name} %x, %y : {scalar}\n"
                    f"      stablehlo.return %z : {scalar}\n    }}) : "
                    f"({', '.join(types)}) -> {tensor(to, dtype)}",
                    types, tensor(to, dtype),
                    [v.summands(from_, dtype), np.ones((), numpy_dtype(dtype))],
                )  # fmt: skip
    for dtype in FLOATS + INTEGERS:
        flag, scalar = "tensor<i1>", tensor((), dtype)
        kind = "SIGNED" if dtype in SIGNED else "UNSIGNED"
        kind = kind if dtype in INTEGERS else "FLOAT"
        types = [tensor((4, 6), dtype), tensor((2, 3), dtype), scalar]
        yield one(
            f"select_and_scatter_{dtype}",
            '"stablehlo.select_and_scatter"(%a0, %a1, %a2) <{padding = '
            "dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, "
            "window_strides = array<i64: 2, 2>}> ({\n"
            f"    ^bb0(%x: {scalar}, %y: {scalar}):\n"
            f"      %z = stablehlo.compare GE, %x, %y, {kind} : "
            f"({scalar}, {scalar}) -> {flag}\n"
            f"      stablehlo.return %z : {flag}\n    }}, {{\n"
            f"    ^bb0(%x: {scalar}, %y: {scalar}):\n"
            f"      %z = stablehlo.add %x, %y : {scalar}\n"
            f"      stablehlo.return %z : {scalar}\n    }}) : "
            f"({', '.join(types)}) -> {types[0]}",
            types, types[0],
            [v.make((4, 6), dtype), v.make((2, 3), dtype),
             np.zeros((), numpy_dtype(dtype))],
        )  # fmt: skip
        for dim, shape in ((0, (7,)), (1, (3, 6)), (0, (4, 2))):
            direction = "LT" if dim else "GT"
            kinds = ["FLOAT", "TOTALORDER"] if kind == "FLOAT" else [kind]
            for order in kinds:
                type_ = tensor(shape, dtype)
                counts = tensor(shape, "i32")
                iota = np.arange(int(np.prod(shape)), dtype=np.int32)
                name = f"sort_{dim}{len(shape)}_{order}_{dtype}"
                body = (
                    '    %r0, %r1 = "stablehlo.sort"(%a0, %a1) <{dimension = '
                    f"{dim} : i64, is_stable = true}}> ({{\n"
                    f"    ^bb0(%x: {scalar}, %y: {scalar}, %i: tensor<i32>, "
                    "%j: tensor<i32>):\n"
                    f"      %z = stablehlo.compare {direction}, %x, %y, {order}"
                    f" : ({scalar}, {scalar}) -> {flag}\n"
                    f"      stablehlo.return %z : {flag}\n    }}) : "
                    f"({type_}, {counts}) -> ({type_}, {counts})"
                )
                yield (
                    name, text([type_, counts], [type_, counts], body),
                    [v.make(shape, dtype, order == "TOTALORDER"),
                     iota.reshape(shape)],
                )  # fmt: skip


def contractions(v: Values) -> Iterator[Item]:
    dots = [
        ((3, 4), (4, 5), (3, 5), "contracting_dims = [1] x [0]"),
        ((4,), (4,), (), "contracting_dims = [0] x [0]"),
        ((2, 3, 4), (2, 4, 5), (2, 3, 5),
         "batching_dims = [0] x [0], contracting_dims = [2] x [1]"),
        ((3, 2, 4), (5, 4, 2), (2, 3, 5),
         "batching_dims = [1] x [2], contracting_dims = [2] x [1]"),
        ((2, 3, 4), (4, 5, 2), (3, 5), "contracting_dims = [2, 0] x [0, 2]"),
        ((3,), (4,), (3, 4), "contracting_dims = [] x []"),
        ((3, 0), (0, 2), (3, 2), "contracting_dims = [1] x [0]"),
    ]  # fmt: skip
    for dtype in EVERY:
        for number, (lhs, rhs, out, rest) in enumerate(dots):
            types = [tensor(lhs, dtype), tensor(rhs, dtype)]
            yield one(
                f"dot_general_{number}_{dtype}",
                f"stablehlo.dot_general %a0, %a1, {rest} : "
                f"({', '.join(types)}) -> {tensor(out, dtype)}",
                types, tensor(out, dtype),
                [v.distinct(lhs, dtype), v.distinct(rhs, dtype)],
            )  # fmt: skip
    accumulated = (
        ("i8", "i32"), ("bf16", "f32"), ("f8E4M3FN", "f32"), ("f16", "f32"),
        ("ui8", "ui32"), ("f32", "f64"),
    )  # fmt: skip
    for source, target in accumulated:
        types = [tensor((3, 4), source), tensor((4, 2), source)]
        yield one(
            f"dot_general_{source}_to_{target}",
            "stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : "
            f"({', '.join(types)}) -> {tensor((3, 2), target)}",
            types, tensor((3, 2), target),
            [v.make((3, 4), source), v.make((4, 2), source)],
        )  # fmt: skip
    # (lhs, kernel, result, numbers, window, groups)
    convolutions = [
        ((1, 5, 5, 2), (3, 3, 2, 3), (1, 3, 3, 3),
         "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "", (1, 1)),
        ((2, 2, 6, 5), (4, 2, 2, 3), (2, 4, 3, 5),
         "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
         "stride = [2, 1], pad = [[0, 0], [1, 1]]", (1, 1)),
        ((1, 4, 4), (3, 2, 6), (1, 4, 6),
         "[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[1, 1]]", (2, 1)),
        ((4, 5, 2), (2, 2, 4), (2, 4, 4),
         "[b, 0, f]x[0, i, o]->[b, 0, f]", "", (1, 2)),
        ((1, 5, 1), (3, 1, 2), (1, 11, 2),
         "[b, 0, f]x[0, i, o]->[b, 0, f]",
         "pad = [[2, 2]], lhs_dilate = [2], rhs_dilate = [1]", (1, 1)),
        ((1, 7, 1), (2, 1, 2), (1, 4, 2),
         "[b, 0, f]x[0, i, o]->[b, 0, f]",
         "rhs_dilate = [3], reverse = [true]", (1, 1)),
        ((2, 3), (3, 4), (2, 4), "[b, f]x[i, o]->[b, f]", "", (1, 1)),
        ((1, 5, 1), (3, 1, 1), (1, 2, 1),
         "[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[-1, 0]]", (1, 1)),
        ((3, 3, 4, 2, 1), (2, 2, 2, 1, 2), (2, 2, 3, 1, 2),
         "[0, 1, 2, b, f]x[0, 1, 2, i, o]->[0, 1, 2, b, f]", "", (1, 1)),
    ]  # fmt: skip
    for dtype in EVERY:
        if dtype == "i1":
            continue
        for number, case in enumerate(convolutions):
            lhs, kernel, out, numbers, window, groups = case
            if number == 8:
                out = (2, 2, 3, 2, 2)
            types = [tensor(lhs, dtype), tensor(kernel, dtype)]
            yield one(
                f"convolution_{number}_{dtype}",
                f"stablehlo.convolution(%a0, %a1) dim_numbers = {numbers}, "
                f"window = {{{window}}} {{batch_group_count = {groups[1]} : "
                f"i64, feature_group_count = {groups[0]} : i64}} : "
                f"({', '.join(types)}) -> {tensor(out, dtype)}",
                types, tensor(out, dtype),
                [v.distinct(lhs, dtype), v.distinct(kernel, dtype)],
            )  # fmt: skip


FAMILIES = (
    elementwise, conversions, shapes, indexing, reductions, contractions,
    algebra, control, functions, spelled, several, sized, normalized, alone,
    constants, factorizations,
)  # fmt: skip


def run_xla(context, source: str, arguments: list) -> list[np.ndarray]:
    """The results of @main on one CPU. Raises what XLA raises."""
    device = jax.devices("cpu")[0]
    values = list(arguments)
    if not values:
        # jaxlib crashes where there is nothing to pass.
        source = source.replace("@main()", "@main(%unused: tensor<f32>)")
        values = [np.float32(0)]
    with context:
        module = ir.Module.parse(source)
        program = device.client.compile_and_load(
            module, _jax.DeviceList((device,)), _jax.CompileOptions()
        )
    arrays = [jax.device_put(value, device) for value in values]
    return [np.asarray(array) for array in program.execute(arrays)]


def expect(
    context, name: str, source: str, arguments: list
) -> list[np.ndarray]:
    """What a case should give: XLA's results. Where XLA rounds each of many
    steps to half precision, those of f32, rounded once."""
    for dtype in ("bf16", "f16"):
        if name.startswith("batch_norm_") and f"x{dtype}>" in source:
            wide = [np.asarray(value, np.float32) for value in arguments]
            results = run_xla(context, source.replace(dtype, "f32"), wide)
            return [value.astype(numpy_dtype(dtype)) for value in results]
    return run_xla(context, source, arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    context = jax_mlir.make_ir_context()
    lapack._lapack.initialize()
    count, refused = 0, []
    for number, family in enumerate(FAMILIES):
        for name, source, arguments in family(Values(args.seed + number)):
            name = re.sub(r"[<>]", "", name)
            if not re.search(args.only, name):
                continue
            source = source if isinstance(source, str) else source()
            try:
                results = expect(context, name, source, arguments)
            except Exception as error:
                refused.append(f"{name}: {str(error).splitlines()[0]}")
                continue
            tensors = {f"arg{i}": value for i, value in enumerate(arguments)}
            tensors |= {f"result{i}": value for i, value in enumerate(results)}
            # NumPy's files hold no types of others: only their bits.
            for key, value in tensors.items():
                if value.dtype.isbuiltin != 1:
                    width = 8 * value.dtype.itemsize
                    tensors[key] = value.view(f"uint{width}")
            (args.folder / f"{name}.mlir").write_text(source)
            np.savez(args.folder / f"{name}.npz", **tensors)
            count += 1
    for line in refused:
        print(f"XLA refuses {line}", file=sys.stderr)
    print(f"{count} cases, {len(refused)} that XLA refuses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
