//===- StableHLOUnaryOps.td - Elementwise, one operand -----*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations of one operand, and `bitcast_convert`, which is not
// elementwise where the widths differ.
//
// Functions that hardware approximates derive from StableHLO_AccurateUnaryOp:
// they have a `result_accuracy`, which is read and printed, but which no
// lowering looks at. The few types that differ from the operand's are inferred
// or checked in lib/Dialect/StableHLO/IR/StableHLOUnaryOps.cpp. The arithmetic
// is in ScalarOps.cpp, ScalarMath.cpp and ScalarConvert.cpp of
// lib/Conversion/Kernel.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOUNARYOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOUNARYOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

// Operand and result types are equal up to dynamic dimensions; equal types are
// printed once, unequal ones as a function type.
class StableHLO_UnaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : StableHLO_SameTypeOp<mnemonic, traits # [Pure, Elementwise]> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

class StableHLO_AccurateUnaryOp<string mnemonic, Type type,
                                list<Trait> traits = []>
    : StableHLO_UnaryOp<mnemonic, type, traits> {
  let arguments = (ins type:$operand,
    DefaultValuedOptionalAttr<StableHLO_ResultAccuracyAttr,
      "::mlir::stablehlo::defaultResultAccuracy($_builder.getContext())">
      :$result_accuracy);
}

def StableHLO_CbrtOp
    : StableHLO_AccurateUnaryOp<"cbrt", HLO_FpOrComplexTensor> {
  let summary = "Cube root";
  let description = [{
    Cube root of each element.

    ```mlir
    %r = stablehlo.cbrt %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_CeilOp : StableHLO_UnaryOp<"ceil", HLO_FpTensor> {
  let summary = "Rounding up";
  let description = [{
    Each element rounded towards positive infinity.

    ```mlir
    %r = stablehlo.ceil %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_ClzOp : StableHLO_UnaryOp<"count_leading_zeros", HLO_IntTensor> {
  let summary = "Count of leading zeros";
  let description = [{
    Number of leading zero bits of each element.

    ```mlir
    %r = stablehlo.count_leading_zeros %x : tensor<4xui32>
    ```
  }];
}

def StableHLO_CosineOp
    : StableHLO_AccurateUnaryOp<"cosine", HLO_FpOrComplexTensor> {
  let summary = "Cosine";
  let description = [{
    Cosine of each element.

    ```mlir
    %r = stablehlo.cosine %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_ExpOp
    : StableHLO_AccurateUnaryOp<"exponential", HLO_FpOrComplexTensor> {
  let summary = "Exponential";
  let description = [{
    e to the power of each element.

    ```mlir
    %r = stablehlo.exponential %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_Expm1Op
    : StableHLO_AccurateUnaryOp<"exponential_minus_one",
                                HLO_FpOrComplexTensor> {
  let summary = "Exponential minus one";
  let description = [{
    e to the power of each element, minus one, accurate near zero.

    ```mlir
    %r = stablehlo.exponential_minus_one %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_FloorOp : StableHLO_UnaryOp<"floor", HLO_FpTensor> {
  let summary = "Rounding down";
  let description = [{
    Each element rounded towards negative infinity.

    ```mlir
    %r = stablehlo.floor %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_LogOp : StableHLO_AccurateUnaryOp<"log", HLO_FpOrComplexTensor> {
  let summary = "Logarithm";
  let description = [{
    Natural logarithm of each element.

    ```mlir
    %r = stablehlo.log %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_Log1pOp
    : StableHLO_AccurateUnaryOp<"log_plus_one", HLO_FpOrComplexTensor> {
  let summary = "Logarithm of one plus";
  let description = [{
    Natural logarithm of one plus each element, accurate near zero.

    ```mlir
    %r = stablehlo.log_plus_one %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_LogisticOp
    : StableHLO_AccurateUnaryOp<"logistic", HLO_FpOrComplexTensor> {
  let summary = "Logistic function";
  let description = [{
    1 / (1 + exp(-x)) of each element.

    ```mlir
    %r = stablehlo.logistic %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_NegOp : StableHLO_UnaryOp<"negate", HLO_NumericTensor> {
  let summary = "Negation";
  let description = [{
    Negation of each element; integers wrap, also unsigned ones.

    ```mlir
    %r = stablehlo.negate %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_NotOp : StableHLO_UnaryOp<"not", HLO_PredOrIntTensor> {
  let summary = "Complement";
  let description = [{
    Logical not of booleans, bitwise not of integers.

    ```mlir
    %r = stablehlo.not %x : tensor<4xi1>
    ```
  }];
}

def StableHLO_PopulationCountOp : StableHLO_UnaryOp<"popcnt", HLO_IntTensor> {
  let summary = "Population count";
  let description = [{
    Number of bits set in each element.

    ```mlir
    %r = stablehlo.popcnt %x : tensor<4xui32>
    ```
  }];
}

def StableHLO_RoundOp : StableHLO_UnaryOp<"round_nearest_afz", HLO_FpTensor> {
  let summary = "Rounding, ties away from zero";
  let description = [{
    Each element rounded to the nearest integer, ties away from zero.

    ```mlir
    %r = stablehlo.round_nearest_afz %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_RoundNearestEvenOp
    : StableHLO_UnaryOp<"round_nearest_even", HLO_FpTensor> {
  let summary = "Rounding, ties to even";
  let description = [{
    Each element rounded to the nearest integer, ties to the even one.

    ```mlir
    %r = stablehlo.round_nearest_even %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_RsqrtOp
    : StableHLO_AccurateUnaryOp<"rsqrt", HLO_FpOrComplexTensor> {
  let summary = "Reciprocal square root";
  let description = [{
    1 / sqrt(x) of each element.

    ```mlir
    %r = stablehlo.rsqrt %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_SignOp : StableHLO_UnaryOp<"sign", HLO_SignedTensor> {
  let summary = "Sign";
  let description = [{
    -1, 0 or 1 by the sign of each element; zeros keep their sign and NaN stays.

    ```mlir
    %r = stablehlo.sign %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_SineOp
    : StableHLO_AccurateUnaryOp<"sine", HLO_FpOrComplexTensor> {
  let summary = "Sine";
  let description = [{
    Sine of each element.

    ```mlir
    %r = stablehlo.sine %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_SqrtOp
    : StableHLO_AccurateUnaryOp<"sqrt", HLO_FpOrComplexTensor> {
  let summary = "Square root";
  let description = [{
    Square root of each element.

    ```mlir
    %r = stablehlo.sqrt %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_TanOp : StableHLO_AccurateUnaryOp<"tan", HLO_FpOrComplexTensor> {
  let summary = "Tangent";
  let description = [{
    Tangent of each element.

    ```mlir
    %r = stablehlo.tan %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_TanhOp
    : StableHLO_AccurateUnaryOp<"tanh", HLO_FpOrComplexTensor> {
  let summary = "Hyperbolic tangent";
  let description = [{
    Hyperbolic tangent of each element.

    ```mlir
    %r = stablehlo.tanh %x : tensor<4xf32>
    ```
  }];
}

def StableHLO_AbsOp : StableHLO_InferredOp<"abs", [Pure, Elementwise]> {
  let summary = "Absolute value";
  let description = [{
    Absolute value of each element; a real number for a complex element.

    ```mlir
    %r = stablehlo.abs %x : tensor<4xf32>
    %s = stablehlo.abs %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_NumericTensor:$operand);
  let results = (outs HLO_NumericTensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

def StableHLO_ConvertOp
    : StableHLO_Op<"convert", [Pure, Elementwise,
                               SameOperandsAndResultShape]> {
  let summary = "Conversion of the element type";
  let description = [{
    Converts each element to another type; floats become integers by truncation,
    and a boolean is true where the element isn't zero. A conversion to the same
    type does nothing.

    ```mlir
    %r = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand,
                                 "::mlir::Type":$elementType)>];
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
  let hasFolder = 1;
}

class StableHLO_PartOp<string mnemonic>
    : StableHLO_InferredOp<mnemonic, [Pure, Elementwise]> {
  let arguments = (ins HLO_FpOrComplexTensor:$operand);
  let results = (outs HLO_FpTensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

def StableHLO_ImagOp : StableHLO_PartOp<"imag"> {
  let summary = "Imaginary part";
  let description = [{
    Imaginary part of each element; zero for a real element.

    ```mlir
    %r = stablehlo.imag %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    ```
  }];
}

def StableHLO_RealOp : StableHLO_PartOp<"real"> {
  let summary = "Real part";
  let description = [{
    Real part of each element.

    ```mlir
    %r = stablehlo.real %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    ```
  }];
}

def StableHLO_IsFiniteOp
    : StableHLO_InferredOp<"is_finite", [Pure, Elementwise]> {
  let summary = "Test for finite numbers";
  let description = [{
    Whether each element is neither infinite nor NaN.

    ```mlir
    %r = stablehlo.is_finite %x : (tensor<4xf32>) -> tensor<4xi1>
    ```
  }];
  let arguments = (ins HLO_FpTensor:$x);
  let results = (outs HLO_PredTensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def StableHLO_ReducePrecisionOp
    : StableHLO_SameTypeOp<"reduce_precision", [Pure, Elementwise]> {
  let summary = "Rounding to a format of fewer bits";
  let description = [{
    Each element rounded as if converted to a float with the given numbers of
    exponent and mantissa bits and back.

    ```mlir
    %r = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_FpTensor:$operand, I32Attr:$exponent_bits,
                       I32Attr:$mantissa_bits);
  let results = (outs HLO_FpTensor:$output);
  let assemblyFormat = [{
    $operand `,` `format` `=`
    custom<ExponentMantissa>($exponent_bits, $mantissa_bits) attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($output))
  }];
  let hasVerifier = 1;
}

def StableHLO_BitcastConvertOp : StableHLO_Op<"bitcast_convert", [Pure]> {
  let summary = "Reinterpretation of the bits";
  let description = [{
    The bits of the operand read as elements of another type. If the widths
    differ, the last dimension has the parts of the wider element.

    ```mlir
    %r = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xui32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOUNARYOPS_TD
