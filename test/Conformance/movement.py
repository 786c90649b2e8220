"""Cases of operations that move elements: shapes, slices, indices.

In: a generator of arguments with a seed. Out: for each case a name, a text of
one small function and its arguments; generate.py adds what XLA gives, and
run.py judges. Every element type is moved in many ways: negative padding,
strides, empty tensors, indices out of bounds. A failure means that an element
ends in the wrong place, or is changed on its way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from values import (
    COMPLEX,
    EVERY,
    SMALL_FLOATS,
    Item,
    Values,
    numpy_dtype,
    one,
    tensor,
)


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
    gathers: list[tuple] = [
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
    scatters: list[tuple] = [
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
            places = v.rng.integers(0 if index[0] == "u" else -2, 7, at)
            types = [tensor(op, dtype), tensor(at, index)]
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
