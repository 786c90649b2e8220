//===- StableHLOLinearAlgebraOps.td - Products, solvers ----*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products, convolutions, Cholesky factors, triangular solves and Fourier
// transforms, which libraries compute where they can.
//
// Products and convolutions are given their result type, as its element type
// may be wider than that of the operands, and compare its shape with the
// computed one. `dot` and `dynamic_conv` are input only: whale-normalize makes
// `dot_general` and `convolution` of them; `dynamic_conv` has no verifier.
// Verifiers are in lib/Dialect/StableHLO/IR/StableHLOLinearAlgebraOps.cpp,
// lowerings in lib/Conversion.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOLINEARALGEBRAOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOLINEARALGEBRAOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

def StableHLO_DotGeneralOp : StableHLO_Op<"dot_general", [Pure]> {
  let summary = "Product of tensors";
  let description = [{
    Sum of products over the contracting dimensions, for each index of the
    batching dimensions. The result's dimensions are the batching ones, the rest
    of lhs, the rest of rhs.

    ```mlir
    %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],
         contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]
         : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    StableHLO_DotDimensionNumbersAttr:$dot_dimension_numbers,
    OptionalAttr<HLO_PrecisionConfigAttr>:$precision_config,
    OptionalAttr<StableHLO_DotAlgorithmAttr>:$algorithm);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $lhs `,` $rhs `,`
    custom<DotDimensionNumbers>($dot_dimension_numbers) ``
    custom<PrecisionConfigAndAlgorithm>($precision_config, $algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_DotOp : StableHLO_Op<"dot", [Pure]> {
  let summary = "Product of vectors and matrices";
  let description = [{
    The predecessor of `dot_general`: the last dimension of `lhs` is contracted
    with the first of `rhs`.

    ```mlir
    %r = stablehlo.dot %a, %b, precision = [DEFAULT, DEFAULT]
         : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
                       OptionalAttr<HLO_PrecisionConfigAttr>:$precision_config);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $lhs `,` $rhs `` custom<PrecisionConfig>($precision_config) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

class StableHLO_Convolution<dag extraOperands, dag padding> {
  dag arguments = !con((ins HLO_Tensor:$lhs, HLO_Tensor:$rhs), extraOperands,
    (ins OptionalAttr<DenseI64ArrayAttr>:$window_strides), padding,
    (ins OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
         OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
         OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
         StableHLO_ConvDimensionNumbersAttr:$dimension_numbers,
         I64Attr:$feature_group_count, I64Attr:$batch_group_count,
         OptionalAttr<HLO_PrecisionConfigAttr>:$precision_config));
}

def StableHLO_ConvolutionOp : StableHLO_Op<"convolution", [Pure]> {
  let summary = "Convolution";
  let description = [{
    Products of windows of `lhs` with the kernel `rhs`. `dimension_numbers`
    defines the role of each dimension; strides and dilations default to 1,
    padding to 0.

    ```mlir
    %r = stablehlo.convolution(%x, %k)
         dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
         window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
         {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
         : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x8x8x4xf32>
    ```
  }];
  let arguments = StableHLO_Convolution<
      (ins), (ins OptionalAttr<I64ElementsAttr>:$padding)>.arguments;
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    `(` operands `)` `dim_numbers` `=`
    custom<ConvolutionDimensions>($dimension_numbers) `,` `window` `=`
    custom<WindowAttributes>($window_strides, $padding, $lhs_dilation,
                             $rhs_dilation, $window_reversal)
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Number of spatial dimensions.
    int64_t getNumSpatialDimensions();
  }];
  let hasVerifier = 1;
}

def StableHLO_DynamicConvOp : StableHLO_Op<"dynamic_conv", [Pure]> {
  let summary = "Convolution with padding given as a tensor";
  let description = [{
    Like convolution, with the padding as an operand.

    ```mlir
    %r = "stablehlo.dynamic_conv"(%x, %k, %pad) <{
      batch_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64}>
      : (tensor<1x8x3xf32>, tensor<3x3x4xf32>, tensor<1x2xi32>)
      -> tensor<1x?x4xf32>
    ```
  }];
  let arguments = StableHLO_Convolution<
      (ins HLO_Tensor:$padding), (ins)>.arguments;
  let results = (outs HLO_Tensor);
}

def StableHLO_CholeskyOp
    : StableHLO_SameTypeOp<"cholesky", [Pure]> {
  let summary = "Cholesky decomposition";
  let description = [{
    The triangular factor of each symmetric (Hermitian) matrix of a batch.

    ```mlir
    %r = stablehlo.cholesky %x, lower = true : tensor<4x4xf32>
    ```
  }];
  let arguments = (ins HLO_FpOrComplexTensor:$a,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$lower);
  let results = (outs HLO_FpOrComplexTensor:$result);
  let assemblyFormat = [{
    $a (`,` `lower` `=` $lower^)? attr-dict `:`
    custom<SameOperandsAndResultType>(type($a), type($result))
  }];
  let hasVerifier = 1;
}

def StableHLO_TriangularSolveOp
    : StableHLO_InferredOp<"triangular_solve", [Pure]> {
  let summary = "Solution of triangular systems";
  let description = [{
    Solves op(a) x = b, or x op(a) = b, for each matrix of a batch; op is the
    identity, the transpose or the adjoint.

    ```mlir
    %r = "stablehlo.triangular_solve"(%a, %b) <{
      left_side = true, lower = true,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>,
      unit_diagonal = false}>
      : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins HLO_FpOrComplexTensor:$a, HLO_FpOrComplexTensor:$b,
    BoolAttr:$left_side, BoolAttr:$lower, BoolAttr:$unit_diagonal,
    StableHLO_TransposeAttr:$transpose_a);
  let results = (outs HLO_FpOrComplexTensor);
}

def StableHLO_FftOp : StableHLO_InferredOp<"fft", [Pure]> {
  let summary = "Fast Fourier transform";
  let description = [{
    Forward or inverse Fourier transform over the last dimensions, whose sizes
    are `fft_length`.

    ```mlir
    %r = stablehlo.fft %x, type = RFFT, length = [8]
         : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
    ```
  }];
  let arguments = (ins HLO_FpOrComplexTensor:$operand,
    StableHLO_FftTypeAttr:$fft_type, DenseI64ArrayAttr:$fft_length);
  let results = (outs HLO_FpOrComplexTensor);
  let assemblyFormat = [{
    $operand `,` `type` `=` custom<Enum>($fft_type) `,`
    `length` `=` $fft_length attr-dict `:` functional-type(operands, results)
  }];
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOLINEARALGEBRAOPS_TD
