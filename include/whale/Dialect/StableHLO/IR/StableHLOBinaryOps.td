//===- StableHLOBinaryOps.td - Elementwise, two or three ---*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations of two operands, and `select` and `clamp` of three.
// These two are not Elementwise, as an operand may be a single element for all.
//
// A StableHLO_BinaryOp has one type for operands and result; `complex`,
// `compare`, `select` and `clamp` infer theirs in
// lib/Dialect/StableHLO/IR/StableHLOBinaryOps.cpp. The arithmetic, with XLA's
// results for division by zero, NaN and shifts beyond the width, is in
// lib/Conversion/Kernel/ScalarOps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBINARYOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBINARYOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

// Operand and result types are equal up to dynamic dimensions; equal types are
// printed once, unequal ones as a function type.
class StableHLO_BinaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : StableHLO_SameTypeOp<mnemonic, traits # [Pure, Elementwise]> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<SameOperandsAndResultType>(type($lhs), type($rhs), type($result))
  }];
}
def StableHLO_AddOp
    : StableHLO_BinaryOp<"add", HLO_NumericTensor, [Commutative]> {
  let summary = "Addition";
  let description = [{
    Sum of two tensors; logical or of booleans. Integers wrap.

    ```mlir
    %r = stablehlo.add %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_AndOp
    : StableHLO_BinaryOp<"and", HLO_PredOrIntTensor, [Commutative]> {
  let summary = "Conjunction";
  let description = [{
    Logical and of booleans, bitwise and of integers.

    ```mlir
    %r = stablehlo.and %a, %b : tensor<4xi1>
    ```
  }];
}

def StableHLO_Atan2Op : StableHLO_BinaryOp<"atan2", HLO_FpOrComplexTensor> {
  let summary = "Two-argument arc tangent";
  let description = [{
    Angle of the point (rhs, lhs) in the plane.

    ```mlir
    %r = stablehlo.atan2 %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_DivOp : StableHLO_BinaryOp<"divide", HLO_IntFpOrComplexTensor> {
  let summary = "Division";
  let description = [{
    Quotient of two tensors; integers round towards zero.

    ```mlir
    %r = stablehlo.divide %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_MaxOp
    : StableHLO_BinaryOp<"maximum", HLO_NumericTensor, [Commutative]> {
  let summary = "Maximum";
  let description = [{
    Larger of two elements; logical or of booleans. If either is NaN, the result
    is NaN.

    ```mlir
    %r = stablehlo.maximum %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_MinOp
    : StableHLO_BinaryOp<"minimum", HLO_NumericTensor, [Commutative]> {
  let summary = "Minimum";
  let description = [{
    Smaller of two elements; logical and of booleans. If either is NaN, the
    result is NaN.

    ```mlir
    %r = stablehlo.minimum %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_MulOp
    : StableHLO_BinaryOp<"multiply", HLO_NumericTensor, [Commutative]> {
  let summary = "Multiplication";
  let description = [{
    Product of two tensors; logical and of booleans. Integers wrap.

    ```mlir
    %r = stablehlo.multiply %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_OrOp
    : StableHLO_BinaryOp<"or", HLO_PredOrIntTensor, [Commutative]> {
  let summary = "Disjunction";
  let description = [{
    Logical or of booleans, bitwise or of integers.

    ```mlir
    %r = stablehlo.or %a, %b : tensor<4xi1>
    ```
  }];
}

def StableHLO_PowOp : StableHLO_BinaryOp<"power", HLO_IntFpOrComplexTensor> {
  let summary = "Power";
  let description = [{
    lhs to the power of rhs.

    ```mlir
    %r = stablehlo.power %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_RemOp
    : StableHLO_BinaryOp<"remainder", HLO_IntFpOrComplexTensor> {
  let summary = "Remainder";
  let description = [{
    Remainder of the division; it has the sign of the dividend.

    ```mlir
    %r = stablehlo.remainder %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_ShiftLeftOp : StableHLO_BinaryOp<"shift_left", HLO_IntTensor> {
  let summary = "Shift left";
  let description = [{
    lhs shifted left by rhs bits; 0 when rhs is not less than the width.

    ```mlir
    %r = stablehlo.shift_left %a, %b : tensor<4xui32>
    ```
  }];
}

def StableHLO_ShiftRightArithmeticOp
    : StableHLO_BinaryOp<"shift_right_arithmetic", HLO_IntTensor> {
  let summary = "Arithmetic shift right";
  let description = [{
    lhs shifted right by rhs bits, filled with the sign bit.

    ```mlir
    %r = stablehlo.shift_right_arithmetic %a, %b : tensor<4xi32>
    ```
  }];
}

def StableHLO_ShiftRightLogicalOp
    : StableHLO_BinaryOp<"shift_right_logical", HLO_IntTensor> {
  let summary = "Logical shift right";
  let description = [{
    lhs shifted right by rhs bits, filled with zeros.

    ```mlir
    %r = stablehlo.shift_right_logical %a, %b : tensor<4xui32>
    ```
  }];
}

def StableHLO_SubtractOp
    : StableHLO_BinaryOp<"subtract", HLO_IntFpOrComplexTensor> {
  let summary = "Subtraction";
  let description = [{
    Difference of two tensors. Integers wrap.

    ```mlir
    %r = stablehlo.subtract %a, %b : tensor<4xf32>
    ```
  }];
}

def StableHLO_XorOp
    : StableHLO_BinaryOp<"xor", HLO_PredOrIntTensor, [Commutative]> {
  let summary = "Exclusive disjunction";
  let description = [{
    Logical xor of booleans, bitwise xor of integers.

    ```mlir
    %r = stablehlo.xor %a, %b : tensor<4xi1>
    ```
  }];
}

def StableHLO_ComplexOp
    : StableHLO_InferredOp<"complex", [Pure, Elementwise,
                                       SameTypeOperands]> {
  let summary = "Complex number of two parts";
  let description = [{
    Complex numbers with the given real and imaginary parts.

    ```mlir
    %r = stablehlo.complex %re, %im : tensor<4xcomplex<f32>>
    ```
  }];
  let arguments = (ins HLO_FpTensor:$lhs, HLO_FpTensor:$rhs);
  let results = (outs HLO_ComplexTensor:$result);
  let assemblyFormat = [{
    operands attr-dict `:`
    custom<ComplexOpType>(type($lhs), type($rhs), type($result))
  }];
}

def StableHLO_CompareOp
    : StableHLO_InferredOp<"compare", [Pure, Elementwise]> {
  let summary = "Comparison";
  let description = [{
    Whether the relation holds between corresponding elements. The element type
    determines the default comparison type. `TOTALORDER` orders -0 before 0 and
    also orders all NaNs.

    ```mlir
    %r = stablehlo.compare LT, %a, %b, FLOAT
         : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
                       StableHLO_ComparisonDirectionAttr:$comparison_direction,
                       OptionalAttr<StableHLO_ComparisonTypeAttr>
                         :$compare_type);
  let results = (outs HLO_PredTensor);
  let builders = [OpBuilder<(ins
    "::mlir::Value":$lhs, "::mlir::Value":$rhs,
    "::mlir::stablehlo::ComparisonDirection":$direction,
    CArg<"::mlir::stablehlo::ComparisonType",
         "::mlir::stablehlo::ComparisonType::NOTYPE">:$type)>];
  let assemblyFormat = [{
    custom<Enum>($comparison_direction) `,` $lhs `,` $rhs ``
    custom<ComparisonType>($compare_type) attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// Not Elementwise: the predicate may be of rank 0.
def StableHLO_SelectOp : StableHLO_InferredOp<"select", [Pure]> {
  let summary = "Choice between two tensors";
  let description = [{
    Elements of `on_true` where `pred` holds, of `on_false` elsewhere. `pred`
    may be a single boolean for all elements.

    ```mlir
    %r = stablehlo.select %p, %a, %b : tensor<4xi1>, tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_PredTensor:$pred, HLO_Tensor:$on_true,
                       HLO_Tensor:$on_false);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    operands attr-dict `:`
    custom<SelectOpType>(type($pred), type($on_true), type($on_false),
                         type($result))
  }];
  let hasFolder = 1;
}

def StableHLO_ClampOp : StableHLO_InferredOp<"clamp", [Pure]> {
  let summary = "Clamp to a range";
  let description = [{
    min(max(operand, min), max); either bound may be a single number for all
    elements.

    ```mlir
    %r = stablehlo.clamp %lo, %x, %hi : tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$min, HLO_Tensor:$operand, HLO_Tensor:$max);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict `:`
    custom<SameOperandsAndResultType>(type($min), type($operand), type($max),
                                      type($result))
  }];
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBINARYOPS_TD
