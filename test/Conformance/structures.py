"""Cases of operations that are more than arithmetic on elements.

In: a generator of arguments with a seed. Out: for each case a name, a text of a
small program and its arguments; generate.py adds what XLA gives, and run.py
judges, by tolerances of each type. There are Fourier transforms, Cholesky
factors and triangular systems, loops and branches, random bits, and functions
of CHLO. A failure means that an algorithm or the flow of control is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from values import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Item,
    Values,
    numpy_dtype,
    one,
    tensor,
    text,
)


def algebra(v: Values) -> Iterator[Item]:
    for part, whole in (("f32", "complex<f32>"), ("f64", "complex<f64>")):
        for shape, length in (((8,), 1), ((2, 6), 1), ((3, 4), 2),
                              ((2, 3, 5), 3), ((7,), 1)):  # fmt: skip
            lengths = list(shape[-length:])
            half = (*shape[:-1], shape[-1] // 2 + 1)
            for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
                source = (part, shape) if kind == "RFFT" else (whole, shape)
                target = (part, shape) if kind == "IRFFT" else (whole, shape)
                if kind == "RFFT":
                    target = (whole, half)
                if kind == "IRFFT":
                    source = (whole, half)
                from_ = tensor(source[1], source[0])
                to = tensor(target[1], target[0])
                size = "x".join(map(str, shape))
                yield one(
                    f"fft_{kind}_{size}_{part}",
                    f"stablehlo.fft %a0, type = {kind}, length = {lengths} : "
                    f"({from_}) -> {to}",
                    [from_], to, [v.make(source[1], source[0])],
                )  # fmt: skip
        for dtype in (part, whole):
            for batch in ((), (2,)):
                shape = (*batch, 4, 4)
                root = v.make(shape, dtype) + 4 * np.eye(
                    4, dtype=numpy_dtype(dtype)
                )
                square = root @ np.swapaxes(root.conj(), -1, -2)
                type_ = tensor(shape, dtype)
                for lower in (True, False):
                    yield one(
                        f"cholesky_{len(batch)}_{lower}_{dtype}",
                        f"stablehlo.cholesky %a0, lower = {str(lower).lower()}"
                        f" : {type_}",
                        [type_], type_, [square.astype(numpy_dtype(dtype))],
                    )  # fmt: skip
                for left, lower, unit, trans in itertools.product(
                    (True, False), (True, False), (True, False),
                    ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
                ):  # fmt: skip
                    rhs = (*batch, 4, 3) if left else (*batch, 3, 4)
                    types = [type_, tensor(rhs, dtype)]

                    def flag(value):
                        return str(value).lower()

                    yield one(
                        f"triangular_solve_{len(batch)}_{left:d}{lower:d}"
                        f"{unit:d}_{trans}_{dtype}",
                        '"stablehlo.triangular_solve"(%a0, %a1) <{left_side = '
                        f"{flag(left)}, lower = {flag(lower)}, transpose_a = "
                        f"#stablehlo<transpose {trans}>, unit_diagonal = "
                        f"{flag(unit)}}}> : ({', '.join(types)}) -> {types[1]}",
                        types, types[1],
                        [root * (0.1 if unit else 1), v.make(rhs, dtype)],
                    )  # fmt: skip


def control(v: Values) -> Iterator[Item]:
    for dtype in FLOATS + INTEGERS:
        type_, scalar = tensor((3,), dtype), tensor((), dtype)
        for count in (0, 1, 5):
            body = (
                "    %c = stablehlo.constant dense<1> : tensor<i32>\n"
                "    %r1, %r0 = stablehlo.while(%i = %a0, %x = %a1) : "
                f"tensor<i32>, {type_}\n"
                "    cond {\n"
                "      %z = stablehlo.constant dense<0> : tensor<i32>\n"
                "      %p = stablehlo.compare GT, %i, %z, SIGNED : "
                "(tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                "      stablehlo.return %p : tensor<i1>\n"
                "    } do {\n"
                "      %j = stablehlo.subtract %i, %c : tensor<i32>\n"
                f"      %y = stablehlo.add %x, %x : {type_}\n"
                f"      stablehlo.return %j, %y : tensor<i32>, {type_}\n"
                "    }"
            )
            yield (
                f"while_{count}_{dtype}",
                text(["tensor<i32>", type_], [type_], body),
                [np.full((), count, np.int32), v.distinct((3,), dtype)],
            )
        for index in (0, 1, 2, -1, 7):
            yield one(
                f"case_{index}_{dtype}",
                '"stablehlo.case"(%a0) ({\n'
                f"      %x = stablehlo.add %a1, %a1 : {type_}\n"
                f"      stablehlo.return %x : {type_}\n    }}, {{\n"
                f"      stablehlo.return %a1 : {type_}\n    }}, {{\n"
                f"      %x = stablehlo.multiply %a1, %a1 : {type_}\n"
                f"      stablehlo.return %x : {type_}\n    }}) : "
                f"(tensor<i32>) -> {type_}",
                ["tensor<i32>", type_], type_,
                [np.full((), index, np.int32), v.distinct((3,), dtype)],
            )  # fmt: skip
        for flag in (False, True):
            yield one(
                f"if_{flag}_{dtype}",
                '"stablehlo.if"(%a0) ({\n'
                f"      %x = stablehlo.add %a1, %a1 : {type_}\n"
                f"      stablehlo.return %x : {type_}\n    }}, {{\n"
                f"      stablehlo.return %a1 : {type_}\n    }}) : "
                f"(tensor<i1>) -> {type_}",
                ["tensor<i1>", type_], type_,
                [np.asarray(flag), v.distinct((3,), dtype)],
            )  # fmt: skip
        yield one(
            f"map_{dtype}",
            '"stablehlo.map"(%a0, %a1) <{dimensions = array<i64: 0>}> ({\n'
            f"    ^bb0(%x: {scalar}, %y: {scalar}):\n"
            f"      %z = stablehlo.multiply %x, %y : {scalar}\n"
            f"      stablehlo.return %z : {scalar}\n    }}) : "
            f"({type_}, {type_}) -> {type_}",
            [type_, type_], type_,
            [v.distinct((3,), dtype), v.distinct((3,), dtype)],
        )  # fmt: skip
    for algorithm, state in (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)):
        for dtype in ("ui8", "ui16", "ui32", "ui64", "i32", "i64"):
            if algorithm == "THREE_FRY" and dtype in ("ui8",):
                continue
            for shape in ((5,), (2, 4)):
                types = [tensor((state,), "ui64"), tensor(shape, dtype)]
                size = "x".join(map(str, shape))
                body = (
                    "    %r0, %r1 = stablehlo.rng_bit_generator %a0, "
                    f"algorithm = {algorithm} : ({types[0]}) -> "
                    f"({types[0]}, {types[1]})"
                )
                yield (
                    f"rng_bit_generator_{algorithm}{state}_{size}_{dtype}",
                    text([types[0]], types, body),
                    [v.rng.integers(0, 2**63, state).astype(np.uint64)],
                )


def functions(v: Values) -> Iterator[Item]:
    """Operations of chlo, which JAX leaves to the compiler."""
    shape = (4, 5)
    names = [
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "sinh", "cosh",
        "erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i1e", "tan",
        "square",
    ]  # fmt: skip
    both = names[:8] + ["tan", "square"]
    for name in names:
        for dtype in FLOATS + (COMPLEX if name in both else []):
            type_ = tensor(shape, dtype)
            value = v.make(shape, dtype, name not in ("digamma", "lgamma"))
            if dtype in COMPLEX:
                value = v.make(shape, dtype)
            if name == "bessel_i1e" and dtype not in ("f32", "f64"):
                continue
            yield one(
                f"{name}_{dtype}", f"chlo.{name} %a0 : {type_} -> {type_}",
                [type_], type_, [value],
            )  # fmt: skip
    for dtype in FLOATS + ["i32", "ui8", "i1"]:
        type_, to = tensor((3, 6), dtype), tensor((3, 2), dtype)
        body = (
            f"    %r0, %r1 = chlo.top_k(%a0, k = 2) : {type_} -> "
            f"({to}, {tensor((3, 2), 'i32')})"
        )
        yield (
            f"top_k_{dtype}",
            text([type_], [to, tensor((3, 2), "i32")], body),
            [v.make((3, 6), dtype, dtype in FLOATS)],
        )
