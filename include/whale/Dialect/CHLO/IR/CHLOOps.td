//===- CHLOOps.td - CHLO operations ------------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of chlo that JAX prints, so that its text can be read. They
// exist only until whale-expand-chlo, which has an expansion for each but
// `scan` and refuses what is left: no later pass handles them.
//
// The type classes, such as HLO_FpTensor, are those of StableHLOBase.td. Most
// elementwise operations are declared for any element type; the expansion
// refuses those that it has no formula for. The verifiers of `constant_like`
// and `ragged_dot` and the result types of `top_k` are in
// lib/Dialect/CHLO/IR/CHLOOps.cpp; the base class has the other checks.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_CHLO_IR_CHLOOPS_TD
#define WHALE_DIALECT_CHLO_IR_CHLOOPS_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "whale/Dialect/CHLO/IR/CHLOBase.td"
include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

//===----------------------------------------------------------------------===//
// Operation classes
//===----------------------------------------------------------------------===//

class CHLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Chlo_Dialect, mnemonic, traits>;

class CHLO_UnaryOp<string mnemonic>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultType]> {
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` type($operand) `->` type($result)
  }];
}

class CHLO_TestOp<string mnemonic>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_FpTensor:$operand);
  let results = (outs HLO_PredTensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` type($operand) `->` type($result)
  }];
}

class CHLO_BinaryOp<string mnemonic, dag operands>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultType]> {
  let arguments = operands;
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` type(operands) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

def CHLO_AcosOp : CHLO_UnaryOp<"acos"> {
  let summary = "Arc cosine";
  let description = [{
    Arc cosine of each element.

    ```mlir
    %r = chlo.acos %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_AcoshOp : CHLO_UnaryOp<"acosh"> {
  let summary = "Hyperbolic arc cosine";
  let description = [{
    Hyperbolic arc cosine of each element.

    ```mlir
    %r = chlo.acosh %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_AsinOp : CHLO_UnaryOp<"asin"> {
  let summary = "Arc sine";
  let description = [{
    Arc sine of each element.

    ```mlir
    %r = chlo.asin %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_AsinhOp : CHLO_UnaryOp<"asinh"> {
  let summary = "Hyperbolic arc sine";
  let description = [{
    Hyperbolic arc sine of each element.

    ```mlir
    %r = chlo.asinh %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_AtanOp : CHLO_UnaryOp<"atan"> {
  let summary = "Arc tangent";
  let description = [{
    Arc tangent of each element.

    ```mlir
    %r = chlo.atan %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_AtanhOp : CHLO_UnaryOp<"atanh"> {
  let summary = "Hyperbolic arc tangent";
  let description = [{
    Hyperbolic arc tangent of each element.

    ```mlir
    %r = chlo.atanh %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_BesselI1eOp : CHLO_UnaryOp<"bessel_i1e"> {
  let summary = "Scaled Bessel function";
  let description = [{
    Exponentially scaled modified Bessel function of order 1.

    ```mlir
    %r = chlo.bessel_i1e %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_ConjOp : CHLO_UnaryOp<"conj"> {
  let summary = "Complex conjugate";
  let description = [{
    Complex conjugate of each element.

    ```mlir
    %r = chlo.conj %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_CoshOp : CHLO_UnaryOp<"cosh"> {
  let summary = "Hyperbolic cosine";
  let description = [{
    Hyperbolic cosine of each element.

    ```mlir
    %r = chlo.cosh %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_DigammaOp : CHLO_UnaryOp<"digamma"> {
  let summary = "Digamma function";
  let description = [{
    Derivative of the logarithm of the gamma function.

    ```mlir
    %r = chlo.digamma %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_ErfOp : CHLO_UnaryOp<"erf"> {
  let summary = "Error function";
  let description = [{
    Error function of each element.

    ```mlir
    %r = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_ErfInvOp : CHLO_UnaryOp<"erf_inv"> {
  let summary = "Inverse error function";
  let description = [{
    Inverse of the error function of each element.

    ```mlir
    %r = chlo.erf_inv %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_ErfcOp : CHLO_UnaryOp<"erfc"> {
  let summary = "Complementary error function";
  let description = [{
    1 - erf(x), accurate for large x.

    ```mlir
    %r = chlo.erfc %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_LgammaOp : CHLO_UnaryOp<"lgamma"> {
  let summary = "Logarithm of the gamma function";
  let description = [{
    Logarithm of the absolute value of the gamma function.

    ```mlir
    %r = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_SinhOp : CHLO_UnaryOp<"sinh"> {
  let summary = "Hyperbolic sine";
  let description = [{
    Hyperbolic sine of each element.

    ```mlir
    %r = chlo.sinh %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_SquareOp : CHLO_UnaryOp<"square"> {
  let summary = "Square";
  let description = [{
    Each element times itself.

    ```mlir
    %r = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_TanOp : CHLO_UnaryOp<"tan"> {
  let summary = "Tangent";
  let description = [{
    Tangent of each element.

    ```mlir
    %r = chlo.tan %x : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_IsInfOp : CHLO_TestOp<"is_inf"> {
  let summary = "Test for infinity";
  let description = [{
    Whether each element is infinite.

    ```mlir
    %r = chlo.is_inf %x : tensor<4xf32> -> tensor<4xi1>
    ```
  }];
}

def CHLO_IsNegInfOp : CHLO_TestOp<"is_neg_inf"> {
  let summary = "Test for negative infinity";
  let description = [{
    Whether each element is negative infinity.

    ```mlir
    %r = chlo.is_neg_inf %x : tensor<4xf32> -> tensor<4xi1>
    ```
  }];
}

def CHLO_IsPosInfOp : CHLO_TestOp<"is_pos_inf"> {
  let summary = "Test for positive infinity";
  let description = [{
    Whether each element is positive infinity.

    ```mlir
    %r = chlo.is_pos_inf %x : tensor<4xf32> -> tensor<4xi1>
    ```
  }];
}

def CHLO_NextAfterOp : CHLO_BinaryOp<"next_after", (ins AnyRankedTensor:$x,
                                    AnyRankedTensor:$y)> {
  let summary = "Next representable number";
  let description = [{
    The number next to x in the direction of y.

    ```mlir
    %r = chlo.next_after %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_PolygammaOp : CHLO_BinaryOp<"polygamma", (ins AnyRankedTensor:$n,
                                    AnyRankedTensor:$x)> {
  let summary = "Polygamma function";
  let description = [{
    Derivative of order n of the digamma function at x.

    ```mlir
    %r = chlo.polygamma %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_ZetaOp : CHLO_BinaryOp<"zeta", (ins AnyRankedTensor:$x,
                                    AnyRankedTensor:$q)> {
  let summary = "Hurwitz zeta function";
  let description = [{
    Hurwitz zeta function of x and q.

    ```mlir
    %r = chlo.zeta %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def CHLO_MulhiOp : CHLO_BinaryOp<"mulhi", (ins AnyRankedTensor:$lhs,
                                    AnyRankedTensor:$rhs)> {
  let summary = "High half of a product";
  let description = [{
    Upper half of the bits of a product of integers.

    ```mlir
    %r = chlo.mulhi %a, %b : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Other operations
//===----------------------------------------------------------------------===//

def CHLO_ConstantOp : CHLO_Op<"constant", [ConstantLike, Pure,
    AllTypesMatch<["value", "output"]>]> {
  let summary = "Constant";
  let description = [{
    A tensor of known elements.

    ```mlir
    %r = chlo.constant dense<1.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_DenseElements:$value);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def CHLO_ConstantLikeOp : CHLO_Op<"constant_like", [Pure]> {
  let summary = "Constant with an operand's shape";
  let description = [{
    A tensor of the operand's shape, all of whose elements are `value`.

    ```mlir
    %r = "chlo.constant_like"(%x) <{value = 1.0 : f32}>
         : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$operand, TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor);
  let hasVerifier = 1;
}

def CHLO_RaggedDotOp : CHLO_Op<"ragged_dot", [Pure]> {
  let summary = "Product with a separate matrix for each group of rows";
  let description = [{
    A dot_general in which the rows along the ragged dimension of lhs form
    consecutive groups of `group_sizes` rows; each group is multiplied by its
    own slice of rhs.

    ```mlir
    %r = "chlo.ragged_dot"(%x, %w, %sizes) <{
      precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>],
      ragged_dot_dimension_numbers = #chlo.ragged_dot<
        lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
        lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
      : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
    HLO_IntTensor:$group_sizes,
    CHLO_RaggedDotDimensionNumbersAttr:$ragged_dot_dimension_numbers,
    OptionalAttr<CHLO_PrecisionConfigAttr>:$precision_config);
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def CHLO_TopKOp : CHLO_Op<"top_k", [Pure, InferTypeOpAdaptor]> {
  let summary = "Largest elements";
  let description = [{
    The k largest elements of the last dimension in descending order, and their
    indices.

    ```mlir
    %values, %indices = chlo.top_k(%x, k = 3)
      : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
    ```
  }];
  let arguments = (ins HLO_PredIntOrFpTensor:$operand, I64Attr:$k);
  let results = (outs HLO_PredIntOrFpTensor:$values, HLO_IntTensor:$indices);
  let assemblyFormat = [{
    `(` $operand `,` `k` `=` $k `)` attr-dict `:` type($operand) `->`
    `(` type($values) `,` type($indices) `)`
  }];
}

def CHLO_ScanOp
    : CHLO_Op<"scan", [AttrSizedOperandSegments, AttrSizedResultSegments,
                       SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Scan along a dimension";
  let description = [{
    Runs the region on the slices of the inputs along `dimension`, one after the
    other, with carried values; collects its first results as slices of the
    outputs.

    ```mlir
    %y, %c = "chlo.scan"(%x, %init) <{dimension = 0 : i64,
      operandSegmentSizes = array<i32: 1, 1>,
      resultSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s, %s : tensor<f32>, tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs,
    Variadic<AnyRankedTensor>:$inits, I64Attr:$dimension,
    OptionalAttr<I64Attr>:$scan_dim_size,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_reverse,
    OptionalAttr<BoolAttr>:$is_associative);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyRankedTensor>:$outputs,
                      Variadic<AnyRankedTensor>:$carries);
}

#endif // WHALE_DIALECT_CHLO_IR_CHLOOPS_TD
