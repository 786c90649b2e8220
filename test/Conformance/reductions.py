"""Cases of operations that combine elements: sums, sorts, products.

In: a generator of arguments with a seed. Out: for each case a name, a text of
one small function and its arguments; generate.py adds what XLA gives, and
run.py judges, by tolerances of each type. Summands of small types can be added
in any order, so that no rounding in between counts. A failure means that terms
are left out, taken twice or combined wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from values import (
    EVERY,
    FLOATS,
    INTEGERS,
    SIGNED,
    Item,
    Values,
    numpy_dtype,
    one,
    tensor,
    text,
)


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
            windows: list[tuple] = [
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
        # More terms than a thread of a GPU has, of mostly padding.
        ((1, 8, 8, 2), (70, 60, 2, 1), (1, 4, 4, 1),
         "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
         "stride = [64, 64], pad = [[128, 128], [128, 128]], "
         "reverse = [true, false]", (1, 1)),
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
