"""Cases after the examples of the StableHLO specification.

Every operation in its generic form, with the attributes in a dictionary; what
the other families lack: several operands, sizes that are operands, programs
for one process, batch normalization, constants, empty tensors.

In: a generator of arguments with a seed. Out: for each case a name, its text
and its arguments; generate.py adds what XLA gives, and run.py judges, by
tolerances of each type. A failure means that a form which the specification
allows is refused, or means something else to Whale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from values import (
    COMPLEX,
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


def case(
    name: str,
    operands: list[tuple[tuple[int, ...], str]],
    results: list[tuple[tuple[int, ...], str]],
    body: str,
    values: list[np.ndarray],
) -> Item:
    """A function of several lines: `{0}`, ... in `body` are the types of the
    operands, then of the results."""
    types = [tensor(shape, dtype) for shape, dtype in operands]
    to = [tensor(shape, dtype) for shape, dtype in results]
    for number, type_ in enumerate([*types, *to]):
        body = body.replace(f"{{{number}}}", type_)
    return name, text(types, to, body), values


def generic(
    op: str,
    attributes: str,
    operands: list[tuple[tuple[int, ...], str]],
    results: list[tuple[tuple[int, ...], str]],
    values: list[np.ndarray],
    regions: str = "",
    name: str = "",
) -> Item:
    """One operation in generic form."""
    types = ", ".join(tensor(shape, dtype) for shape, dtype in operands)
    to = ", ".join(tensor(shape, dtype) for shape, dtype in results)
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    held = ", ".join(f"%r{i}" for i in range(len(results)))
    held = "%r0" if len(results) == 1 else held
    inside = f" ({regions})" if regions else ""
    given = f" {{{attributes}}}" if attributes else ""
    body = (
        f'    {held} = "stablehlo.{op}"({names}){inside}{given} : '
        f"({types}) -> ({to})"
    )
    return case(
        f"{name or op}_generic_{operands[0][1] if operands else results[0][1]}",
        operands, results, body, values,
    )  # fmt: skip


def region(op: str, dtype: str, rest: str = "") -> str:
    """A region that applies an operation to two scalars."""
    type_ = tensor((), dtype)
    to = "tensor<i1>" if op == "compare" else type_
    spelt = f"({type_}, {type_}) -> {to}"
    return (
        f"{{\n    ^bb0(%x: {type_}, %y: {type_}):\n"
        f'      %z = "stablehlo.{op}"(%x, %y) {rest} : {spelt}\n'
        f'      "stablehlo.return"(%z) : ({to}) -> ()\n    }}'
    )


def comparison(direction: str, dtype: str) -> str:
    kind = "SIGNED" if dtype in SIGNED else "UNSIGNED"
    kind = "FLOAT" if dtype in FLOATS + COMPLEX else kind
    return (
        "{comparison_direction = #stablehlo<comparison_direction "
        f"{direction}>, compare_type = #stablehlo<comparison_type {kind}>}}"
    )


def spelled(v: Values) -> Iterator[Item]:
    """Operations as the specification writes them."""
    for dtype in ("f32", "bf16", "i32", "i64", "ui32", "ui64"):
        shape = (2, 3)
        here, scalar = (shape, dtype), ((), dtype)

        def number(*shape):
            return v.distinct(shape, dtype)  # noqa: B023

        two = [v.make(shape, dtype), v.make(shape, dtype)]
        for op in ("add", "subtract", "multiply", "maximum", "minimum",
                   "divide", "remainder", "power"):  # fmt: skip
            values = [v.make(shape, dtype), np.abs(number(*shape)) + 1]
            yield generic(
                op, "", [here, here], [here],
                [values[0], values[1].astype(numpy_dtype(dtype))],
            )  # fmt: skip
        for direction in ("EQ", "NE", "GE", "GT", "LE", "LT"):
            yield generic(
                "compare", comparison(direction, dtype)[1:-1], [here, here],
                [(shape, "i1")], two, name=f"compare_{direction}",
            )  # fmt: skip
        yield generic("clamp", "", [here] * 3, [here],
                      [number(2, 3), v.make(shape, dtype),
                       number(2, 3) + number(2, 3)])  # fmt: skip
        yield generic("select", "", [(shape, "i1"), here, here], [here],
                      [v.make(shape, "i1"), *two])  # fmt: skip
        yield generic("convert", "", [here], [(shape, "f32")], two[:1])
        yield generic("iota", "iota_dimension = 1 : i64", [], [here], [])
        yield generic(
            "constant",
            "value = dense<[[1, 2, 3], [4, 5, 6]]> : " + tensor(shape, dtype)
            if dtype in INTEGERS
            else "value = dense<[[1.0, 2.5, 3.0], [4.0, -5.0, 0.1]]> : "
            + tensor(shape, dtype),
            [], [here], [],
        )  # fmt: skip
        yield generic("broadcast_in_dim",
                      "broadcast_dimensions = array<i64: 2, 1>",
                      [((1, 3), dtype)], [((2, 3, 2), dtype)],
                      [number(1, 3)])  # fmt: skip
        yield generic("concatenate", "dimension = 0 : i64",
                      [((3, 2), dtype), ((1, 2), dtype)], [((4, 2), dtype)],
                      [number(3, 2), number(1, 2)])  # fmt: skip
        yield generic("reshape", "", [here], [((3, 2), dtype)], two[:1])
        yield generic("reverse", "dimensions = array<i64: 1>", [here], [here],
                      two[:1])  # fmt: skip
        yield generic("transpose", "permutation = array<i64: 2, 1, 0>",
                      [((2, 3, 2), dtype)], [((2, 3, 2), dtype)],
                      [number(2, 3, 2)])  # fmt: skip
        yield generic("slice", "start_indices = array<i64: 1, 2>, "
                      "limit_indices = array<i64: 3, 4>, "
                      "strides = array<i64: 1, 1>",
                      [((3, 4), dtype)], [((2, 2), dtype)],
                      [number(3, 4)])  # fmt: skip
        yield generic("dynamic_slice", "slice_sizes = array<i64: 2, 3>",
                      [((4, 4), dtype), ((), "i64"), ((), "i64")], [here],
                      [number(4, 4), np.array(-1), np.array(3)])  # fmt: skip
        yield generic("dynamic_update_slice", "",
                      [((4, 4), dtype), here, ((), "i64"), ((), "i64")],
                      [((4, 4), dtype)],
                      [number(4, 4), *two[:1], np.array(-1),
                       np.array(3)])  # fmt: skip
        yield generic("pad", "edge_padding_low = array<i64: 0, 1>, "
                      "edge_padding_high = array<i64: 2, 1>, "
                      "interior_padding = array<i64: 1, 2>", [here, scalar],
                      [((5, 9), dtype)], [two[0], number()])  # fmt: skip
        yield generic(
            "gather", "dimension_numbers = #stablehlo.gather<offset_dims = "
            "[3, 4], collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "start_indices_batching_dims = [1], start_index_map = [2, 1], "
            "index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 2, 2>, "
            "indices_are_sorted = false",
            [((2, 3, 4, 2), dtype), ((2, 2, 3, 2), "i64")],
            [((2, 2, 3, 2, 2), dtype)],
            [number(2, 3, 4, 2), v.rng.integers(-1, 4, (2, 2, 3, 2))],
        )  # fmt: skip
        yield generic(
            "scatter", "scatter_dimension_numbers = #stablehlo.scatter<"
            "update_window_dims = [3, 4], inserted_window_dims = [1], "
            "input_batching_dims = [0], scatter_indices_batching_dims = [1], "
            "scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 3>, "
            "indices_are_sorted = false, unique_indices = false",
            [((2, 3, 4, 2), dtype), ((2, 2, 3, 2), "i64"),
             ((2, 2, 3, 2, 2), dtype)], [((2, 3, 4, 2), dtype)],
            [number(2, 3, 4, 2), v.rng.integers(-1, 4, (2, 2, 3, 2)),
             number(2, 2, 3, 2, 2)], region("add", dtype),
        )  # fmt: skip
        yield generic("dot_general", "dot_dimension_numbers = #stablehlo.dot<"
                      "lhs_batching_dimensions = [0], "
                      "rhs_batching_dimensions = [0], "
                      "lhs_contracting_dimensions = [2], "
                      "rhs_contracting_dimensions = [1]>, precision_config = "
                      "[#stablehlo<precision DEFAULT>, #stablehlo<precision "
                      "DEFAULT>]", [((2, 2, 2), dtype)] * 2,
                      [((2, 2, 2), dtype)],
                      [number(2, 2, 2), number(2, 2, 2)])  # fmt: skip
        yield generic("dot", "", [((2, 3), dtype), ((3, 2), dtype)],
                      [((2, 2), dtype)], [number(2, 3), number(3, 2)],
                      name="dot_matrices")  # fmt: skip
        yield generic("dot", "", [((3,), dtype), ((3,), dtype)], [scalar],
                      [number(3), number(3)], name="dot_vectors")  # fmt: skip
        yield generic(
            "convolution", "window_strides = array<i64: 4, 4>, padding = "
            "dense<0> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, "
            "rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: "
            "false, false>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x"
            "[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : i64, "
            "feature_group_count = 1 : i64, precision_config = [#stablehlo<"
            "precision DEFAULT>, #stablehlo<precision DEFAULT>]",
            [((1, 4, 4, 1), dtype), ((3, 3, 1, 1), dtype)],
            [((1, 2, 2, 1), dtype)],
            [number(1, 4, 4, 1), number(3, 3, 1, 1)],
        )  # fmt: skip
        yield generic("reduce", "dimensions = array<i64: 1>", [here, scalar],
                      [((2,), dtype)], [number(2, 3), number()],
                      region("add", dtype))  # fmt: skip
        yield generic(
            "reduce_window", "window_dimensions = array<i64: 2, 1>, "
            "window_strides = array<i64: 4, 1>, base_dilations = array<i64: 2,"
            " 1>, window_dilations = array<i64: 3, 1>, padding = dense<[[2, 1]"
            ", [0, 0]]> : tensor<2x2xi64>", [((3, 2), dtype), scalar],
            [((2, 2), dtype)], [number(3, 2), number()], region("add", dtype),
        )  # fmt: skip
        yield generic(
            "select_and_scatter", "window_dimensions = array<i64: 3, 1>, "
            "window_strides = array<i64: 2, 1>, padding = dense<[[0, 1], "
            "[0, 0]]> : tensor<2x2xi64>",
            [((4, 2), dtype), ((2, 2), dtype), scalar], [((4, 2), dtype)],
            [number(4, 2), number(2, 2), number()],
            region("compare", dtype, comparison("GE", dtype))
            + ", " + region("add", dtype),
        )  # fmt: skip
        yield generic("map", "dimensions = array<i64: 0, 1>", [here, here],
                      [here], two, region("multiply", dtype))  # fmt: skip
        yield generic(
            "sort", "dimension = 0 : i64, is_stable = true", [here, here],
            [here, here], [number(2, 3), number(2, 3)],
            "{\n    ^bb0(%x: $S, %y: $S, %p: $S, %q: $S):\n      "
            f'%z = "stablehlo.compare"(%x, %y) {comparison("GT", dtype)}'
            ' : ($S, $S) -> tensor<i1>\n      "stablehlo.return"(%z) : '
            "(tensor<i1>) -> ()\n    }".replace("$S", tensor((), dtype)),
        )  # fmt: skip
    for dtype in ("f32", "bf16", "f16"):
        here = ((2, 3), dtype)
        for op in ("abs", "cbrt", "ceil", "cosine", "exponential",
                   "exponential_minus_one", "floor", "log", "log_plus_one",
                   "logistic", "negate", "round_nearest_afz",
                   "round_nearest_even", "rsqrt", "sign", "sine", "sqrt",
                   "tan", "tanh"):  # fmt: skip
            yield generic(op, "", [here], [here], [v.make((2, 3), dtype)])
        yield generic("is_finite", "", [here], [((2, 3), "i1")],
                      [v.make((2, 3), dtype, True)])  # fmt: skip
        yield generic("reduce_precision", "exponent_bits = 5 : i32, "
                      "mantissa_bits = 2 : i32", [here], [here],
                      [v.make((2, 3), dtype)])  # fmt: skip
        yield generic("atan2", "", [here, here], [here],
                      [v.make((2, 3), dtype) for _ in range(2)])  # fmt: skip
    whole = ((4,), "complex<f32>")
    yield generic("fft", "fft_type = #stablehlo<fft_type FFT>, fft_length = "
                  "array<i64: 4>", [whole], [whole],
                  [v.make((4,), "complex<f32>")])  # fmt: skip
    yield generic("cholesky", "lower = true", [((3, 3), "f32")],
                  [((3, 3), "f32")],
                  [np.array([[1, 2, 3], [2, 20, 26], [3, 26, 70]],
                            np.float32)])  # fmt: skip
    yield generic("triangular_solve", "left_side = true, lower = true, "
                  "unit_diagonal = false, transpose_a = #stablehlo<transpose "
                  "NO_TRANSPOSE>", [((3, 3), "f32")] * 2, [((3, 3), "f32")],
                  [np.array([[1, 0, 0], [2, 4, 0], [3, 5, 6]], np.float32),
                   np.diag(np.array([2, 8, 18], np.float32))])  # fmt: skip
    yield generic("rng_bit_generator", "rng_algorithm = #stablehlo<"
                  "rng_algorithm THREE_FRY>", [((2,), "ui64")],
                  [((2,), "ui64"), ((2, 2), "ui64")],
                  [np.array([1, 2], np.uint64)])  # fmt: skip


def several(v: Values) -> Iterator[Item]:
    """Reductions, scatters, loops of more than one operand."""
    for dtype in FLOATS + INTEGERS:
        kind = "SIGNED" if dtype in SIGNED else "UNSIGNED"
        kind = "FLOAT" if dtype in FLOATS else kind
        scalar = tensor((), dtype)
        body = (
            "    %i = stablehlo.constant dense<0> : tensor<i32>\n"
            "    %n = stablehlo.iota dim = 1 : tensor<3x5xi32>\n"
            "    %r0, %r1 = stablehlo.reduce(%a0 init: %a1), (%n init: %i) "
            "across dimensions = [1] : ({0}, tensor<3x5xi32>, {1}, "
            "tensor<i32>) -> ({2}, {3})\n"
            "     reducer(%x: {1}, %y: {1}) (%p: tensor<i32>, %q: tensor<i32>)"
            "  {\n"
            f"      %g = stablehlo.compare GE, %x, %y, {kind} : ({scalar}, "
            f"{scalar}) -> tensor<i1>\n"
            "      %s = stablehlo.select %g, %x, %y : tensor<i1>, {1}\n"
            "      %t = stablehlo.select %g, %p, %q : tensor<i1>, tensor<i32>\n"
            "      stablehlo.return %s, %t : {1}, tensor<i32>\n    }"
        )
        yield case(
            f"reduce_pair_{dtype}", [((3, 5), dtype), ((), dtype)],
            [((3,), dtype), ((3,), "i32")], body,
            [v.distinct((3, 5), dtype), np.zeros((), numpy_dtype(dtype))],
        )  # fmt: skip
        adds = (
            "{\n    ^bb0(%x: S, %p: S, %y: S, %q: S):\n"
            "      %s = stablehlo.add %x, %y : S\n"
            "      %t = stablehlo.maximum %p, %q : S\n"
            "      stablehlo.return %s, %t : S, S\n    }"
        ).replace("S", scalar)
        yield generic(
            "reduce_window", "window_dimensions = array<i64: 2>, padding = "
            "dense<[[1, 0]]> : tensor<1x2xi64>",
            [((5,), dtype)] * 2 + [((), dtype)] * 2, [((5,), dtype)] * 2,
            [v.distinct((5,), dtype), v.distinct((5,), dtype),
             v.distinct((), dtype), v.distinct((), dtype)], adds,
            name="reduce_window_pair",
        )  # fmt: skip
        scatter = (
            "{\n    ^bb0(%x: S, %p: S, %y: S, %q: S):\n"
            "      %s = stablehlo.add %x, %y : S\n"
            "      %t = stablehlo.maximum %p, %q : S\n"
            "      stablehlo.return %s, %t : S, S\n    }"
        ).replace("S", scalar)
        yield generic(
            "scatter", "scatter_dimension_numbers = #stablehlo.scatter<"
            "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
            "index_vector_dim = 1>",
            [*[((5,), dtype)] * 2, ((4, 1), "i32"), *[((4,), dtype)] * 2],
            [((5,), dtype)] * 2,
            [v.distinct((5,), dtype), v.distinct((5,), dtype),
             np.array([[1], [4], [1], [9]], np.int32),
             v.distinct((4,), dtype), v.distinct((4,), dtype)], scatter,
            name="scatter_pair",
        )  # fmt: skip
        body = (
            "    %one = stablehlo.constant dense<1> : tensor<i64>\n"
            "    %r2, %r0, %r1 = stablehlo.while(%i = %a2, %x = %a0, %y = %a1)"
            " : tensor<i64>, {0}, {1}\n    cond {\n"
            "      %z = stablehlo.constant dense<3> : tensor<i64>\n"
            "      %p = stablehlo.compare LT, %i, %z, SIGNED : (tensor<i64>, "
            "tensor<i64>) -> tensor<i1>\n"
            "      stablehlo.return %p : tensor<i1>\n    } do {\n"
            "      %j = stablehlo.add %i, %one : tensor<i64>\n"
            "      %s = stablehlo.add %x, %y : {0}\n"
            "      stablehlo.return %j, %y, %s : tensor<i64>, {0}, {1}\n    }"
        )
        yield case(
            f"while_swap_{dtype}",
            [((3,), dtype), ((3,), dtype), ((), "i64")],
            [((3,), dtype), ((3,), dtype)], body,
            [v.distinct((3,), dtype), v.distinct((3,), dtype), np.array(0)],
        )  # fmt: skip


def sized(v: Values) -> Iterator[Item]:
    """Operations whose sizes or paddings are operands."""
    sizes = "    %s = stablehlo.constant dense<{n}> : tensor<{r}xi64>\n"
    for dtype in ("f32", "bf16", "i32", "ui64", "i1", "complex<f32>"):
        x, y = ((2, 3), dtype), ((2, 3, 2), dtype)
        value = v.make((2, 3), dtype)
        for op, shape, rest, target in (
            ("dynamic_broadcast_in_dim", [2, 3, 2],
             ", dims = [0, 1]", y),
            ("dynamic_reshape", [3, 2], "", ((3, 2), dtype)),
        ):  # fmt: skip
            count = len(shape)
            line = sizes.format(n=shape, r=count)
            yield case(
                f"{op}_{dtype}", [x], [target], line
                + f"    %r0 = stablehlo.{op} %a0, %s{rest} : "
                f"({{0}}, tensor<{count}xi64>) -> {{1}}", [value],
            )  # fmt: skip
            yield case(
                f"{op}_argument_{dtype}", [x, ((count,), "i32")], [target],
                f"    %r0 = stablehlo.{op} %a0, %a1{rest} : "
                "({0}, {1}) -> {2}",
                [value, np.array(shape, np.int32)],
            )  # fmt: skip
        if dtype != "i1":
            yield case(
                f"dynamic_iota_{dtype}", [], [x], sizes.format(n="[2, 3]", r=2)
                + "    %r0 = stablehlo.dynamic_iota %s, dim = 1 : "
                "(tensor<2xi64>) -> {0}", [],
            )  # fmt: skip
        yield case(
            f"dynamic_pad_{dtype}", [x, ((), dtype)], [((4, 6), dtype)],
            "    %l = stablehlo.constant dense<[1, 0]> : tensor<2xi64>\n"
            "    %h = stablehlo.constant dense<[0, 1]> : tensor<2xi64>\n"
            "    %i = stablehlo.constant dense<[1, 1]> : tensor<2xi64>\n"
            "    %r0 = stablehlo.dynamic_pad %a0, %a1, %l, %h, %i : ({0}, {1},"
            " tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {2}",
            [value, v.make((), dtype)],
        )  # fmt: skip
        yield case(
            f"real_dynamic_slice_{dtype}", [x], [((1, 2), dtype)],
            "    %l = stablehlo.constant dense<[1, 0]> : tensor<2xi64>\n"
            "    %h = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n"
            "    %i = stablehlo.constant dense<[1, 2]> : tensor<2xi64>\n"
            "    %r0 = stablehlo.real_dynamic_slice %a0, %l, %h, %i : ({0}, "
            "tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> {1}", [value],
        )  # fmt: skip
        yield case(
            f"dynamic_gather_{dtype}", [((4, 3), dtype), ((2, 1), "i32")],
            [x], sizes.format(n="[1, 3]", r=2)
            + '    %r0 = "stablehlo.dynamic_gather"(%a0, %a1, %s) '
            "{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
            "collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1>} : ({0}, {1}, tensor<2xi64>) -> {2}",
            [v.make((4, 3), dtype), np.array([[3], [1]], np.int32)],
        )  # fmt: skip
        yield case(
            f"get_dimension_size_{dtype}", [x], [((), "i32")],
            "    %r0 = stablehlo.get_dimension_size %a0, dim = 1 : "
            "({0}) -> {1}", [value],
        )  # fmt: skip
        yield case(
            f"optimization_barrier_{dtype}", [x, x], [x, x],
            "    %r0, %r1 = stablehlo.optimization_barrier %a0, %a1 : {0}, {1}",
            [value, value],
        )  # fmt: skip
        yield case(
            f"tuple_{dtype}", [x, y], [y],
            "    %t = stablehlo.tuple %a0, %a1 : tuple<{0}, {1}>\n"
            "    %r0 = stablehlo.get_tuple_element %t[1] : "
            "(tuple<{0}, {1}>) -> {2}", [value, v.make((2, 3, 2), dtype)],
        )  # fmt: skip


def normalized(v: Values) -> Iterator[Item]:
    """batch_norm_*."""
    for dtype in FLOATS:
        for shape, dim in (((2, 2, 2), 2), ((4, 3), 0), ((2, 3, 4, 5), 1)):
            x, f = (shape, dtype), ((shape[dim],), dtype)
            rest = f"epsilon = 0.01 : f32, feature_index = {dim} : i64"
            # Nothing cancels: XLA rounds each step of f16's.
            value = v.distinct(shape, dtype)
            scale, mean = (v.make(f[0], dtype) for _ in range(2))
            offset = np.full(f[0], 9, numpy_dtype(dtype))
            variance = np.abs(v.make(f[0], dtype)) + 1
            variance = variance.astype(numpy_dtype(dtype))
            name = f"{len(shape)}{dim}"
            yield generic(
                "batch_norm_inference", rest, [x, f, f, f, f], [x],
                [value, scale, offset, mean, variance],
                name=f"batch_norm_inference_{name}",
            )  # fmt: skip
            yield generic(
                "batch_norm_training", rest, [x, f, f], [x, f, f],
                [value, scale, offset], name=f"batch_norm_training_{name}",
            )  # fmt: skip
            if dtype == "f16":
                continue
            yield generic(
                "batch_norm_grad", rest, [x, f, f, f, x], [x, f, f],
                [value, scale, mean, variance, v.make(shape, dtype)],
                name=f"batch_norm_grad_{name}",
            )  # fmt: skip


def alone(v: Values) -> Iterator[Item]:
    """Collectives of a program for one process."""
    groups = "replica_groups = dense<0> : tensor<1x1xi64>"
    channel = ", channel_handle = #stablehlo.channel_handle<handle = 1, " \
        "type = 0>"  # fmt: skip
    for dtype in ("f32", "bf16", "i32", "ui64", "i1"):
        x = ((4, 2), dtype)
        value = v.make((4, 2), dtype)
        add = region("add", dtype)
        for op, rest, inside in (
            ("all_gather", f"all_gather_dim = 1 : i64, {groups}{channel}", ""),
            ("all_reduce", groups + channel, add),
            ("reduce_scatter", f"scatter_dimension = 0 : i64, {groups}"
             + channel, add),
            ("all_to_all", "split_dimension = 1 : i64, concat_dimension = 0 : "
             f"i64, split_count = 1 : i64, {groups}", ""),
            ("collective_broadcast", groups + channel, ""),
            ("collective_permute", "source_target_pairs = dense<0> : "
             "tensor<1x2xi64>" + channel, ""),
        ):  # fmt: skip
            yield generic(op, rest, [x], [x], [value], inside)
    for op in ("replica_id", "partition_id"):
        yield one(op, f"stablehlo.{op} : tensor<ui32>", [], "tensor<ui32>", [])


def constants(v: Values) -> Iterator[Item]:
    """Literals of each type, and tensors without elements."""
    for dtype in EVERY:
        if dtype in COMPLEX:
            some, same = "[(1.5, -2.0), (0.0, 1.0)]", "(0.5, 2.0)"
        elif dtype == "i1":
            some, same = "[true, false]", "true"
        elif dtype in INTEGERS:
            some, same = "[1, -2]" if dtype in SIGNED else "[1, 3]", "7"
        else:
            some, same = "[1.5, -2.0]", "0.5"
        for name, shape, literal in (("list", (2,), some),
                                     ("splat", (2, 3), same),
                                     ("scalar", (), same),
                                     ("empty", (0, 2), "")):  # fmt: skip
            type_ = tensor(shape, dtype)
            yield one(f"constant_{name}_{dtype}",
                      f"stablehlo.constant dense<{literal}> : {type_}", [],
                      type_, [])  # fmt: skip
        none = ((0, 3), dtype)
        nothing = v.make((0, 3), dtype)
        yield case(
            f"add_empty_{dtype}", [none, none], [none],
            "    %r0 = stablehlo.add %a0, %a1 : {0}", [nothing, nothing],
        )  # fmt: skip
        yield case(
            f"concatenate_empty_{dtype}", [none, none], [none],
            "    %r0 = stablehlo.concatenate %a0, %a1, dim = 0 : ({0}, {1}) "
            "-> {2}", [nothing, nothing],
        )  # fmt: skip
    for dtype, bits in (("f32", "7F800000"), ("f64", "FFF0000000000000"),
                        ("bf16", "7F80"), ("f16", "FC00")):  # fmt: skip
        type_ = tensor((2,), dtype)
        yield one(f"constant_bits_{dtype}",
                  f"stablehlo.constant dense<0x{bits}> : {type_}", [], type_,
                  [])  # fmt: skip
