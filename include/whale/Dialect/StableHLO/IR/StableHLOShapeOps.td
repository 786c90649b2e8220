//===- StableHLOShapeOps.td - Shapes and data movement -----*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants, `iota`, and operations that move, repeat or pad elements without
// computing. Most accept any element type, since nothing is computed.
//
// Where the shape of the result follows from operands and attributes it is
// inferred; a reshape, a broadcast and an iota are given it. Folds only return
// an operand or a constant's value: constants may be large, so none is
// computed. The forms with a shape or amounts as operands are those of
// jax.export; whale-normalize makes them static or refuses them. Checks and
// folds are in lib/Dialect/StableHLO/IR/StableHLOShapeOps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOSHAPEOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOSHAPEOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def StableHLO_ConstantOp
    : StableHLO_InferredOp<"constant", [ConstantLike, Pure,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Constant";
  let description = [{
    A tensor of known elements.

    ```mlir
    %c = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    ```
  }];
  let arguments = (ins HLO_DenseElements:$value);
  let results = (outs HLO_Tensor:$output);
  let builders = [OpBuilder<(ins "::mlir::Attribute":$value)>];
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1;
}

def StableHLO_IotaOp : StableHLO_Op<"iota", [Pure]> {
  let summary = "Indices along a dimension";
  let description = [{
    Each element is its own index along `iota_dimension`.

    ```mlir
    %r = stablehlo.iota dim = 0 : tensor<4x2xi32>
    ```
  }];
  let arguments = (ins I64Attr:$iota_dimension);
  let results = (outs HLO_NumericTensor:$output);
  let assemblyFormat = "`dim` `=` $iota_dimension attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def StableHLO_BroadcastInDimOp : StableHLO_Op<"broadcast_in_dim", [Pure]> {
  let summary = "Broadcast to a larger shape";
  let description = [{
    Dimension i of the operand becomes dimension `broadcast_dimensions[i]` of
    the result. Elements are repeated along dimensions of size 1 and along the
    other dimensions of the result.

    ```mlir
    %r = stablehlo.broadcast_in_dim %x, dims = [1]
         : (tensor<4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand,
                       DenseI64ArrayAttr:$broadcast_dimensions);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $broadcast_dimensions attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def StableHLO_ReshapeOp : StableHLO_Op<"reshape", [Pure]> {
  let summary = "Change of shape";
  let description = [{
    The same elements in row-major order in another shape.

    ```mlir
    %r = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def StableHLO_TransposeOp : StableHLO_InferredOp<"transpose", [Pure]> {
  let summary = "Permutation of dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the operand.

    ```mlir
    %r = stablehlo.transpose %x, dims = [1, 0]
         : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $permutation attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def StableHLO_ReverseOp
    : StableHLO_SameTypeOp<"reverse", [Pure]> {
  let summary = "Reversal of dimensions";
  let description = [{
    Elements in reverse order along the given dimensions.

    ```mlir
    %r = stablehlo.reverse %x, dims = [0] : tensor<4x2xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$dimensions);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $dimensions attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
  let hasVerifier = 1;
}

def StableHLO_ConcatenateOp : StableHLO_InferredOp<"concatenate", [Pure]> {
  let summary = "Concatenation";
  let description = [{
    The operands one after the other along `dimension`.

    ```mlir
    %r = stablehlo.concatenate %a, %b, dim = 0
         : (tensor<1xf32>, tensor<2xf32>) -> tensor<3xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, I64Attr:$dimension);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    custom<VariadicOperandWithAttribute>($inputs) `dim` `=` $dimension
    attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def StableHLO_PadOp : StableHLO_InferredOp<"pad", [Pure]> {
  let summary = "Padding";
  let description = [{
    Adds elements before, after and between those of the operand; a negative
    `low` or `high` removes elements.

    ```mlir
    %r = stablehlo.pad %x, %v, low = [1], high = [0], interior = [1]
         : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_ScalarTensor:$padding_value,
                       DenseI64ArrayAttr:$edge_padding_low,
                       DenseI64ArrayAttr:$edge_padding_high,
                       DenseI64ArrayAttr:$interior_padding);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $operand `,` $padding_value `,` `low` `=` $edge_padding_low `,`
    `high` `=` $edge_padding_high `,` `interior` `=` $interior_padding
    attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def StableHLO_GetDimensionSizeOp
    : StableHLO_InferredOp<"get_dimension_size", [Pure]> {
  let summary = "Size of a dimension";
  let description = [{
    The size of the given dimension as a scalar.

    ```mlir
    %r = stablehlo.get_dimension_size %x, dim = 0
         : (tensor<4x2xf32>) -> tensor<i32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, I64Attr:$dimension);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $operand `,` `dim` `=` $dimension attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Forms whose shape is an operand, as jax.export prints them
//===----------------------------------------------------------------------===//

def StableHLO_DynamicBroadcastInDimOp
    : StableHLO_Op<"dynamic_broadcast_in_dim", [Pure]> {
  let summary = "Broadcast to a shape given as a tensor";
  let description = [{
    Like broadcast_in_dim, with the shape of the result as an operand.

    ```mlir
    %r = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1]
         : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand,
    HLO_DimensionTensor:$output_dimensions,
    DenseI64ArrayAttr:$broadcast_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$known_expanding_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$known_nonexpanding_dimensions);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $operand `,` $output_dimensions `,` `dims` `=` $broadcast_dimensions
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_DynamicIotaOp : StableHLO_Op<"dynamic_iota", [Pure]> {
  let summary = "Indices in a shape given as a tensor";
  let description = [{
    Like iota, with the shape of the result as an operand.

    ```mlir
    %r = stablehlo.dynamic_iota %shape, dim = 0
         : (tensor<2xi32>) -> tensor<?x?xi32>
    ```
  }];
  let arguments = (ins HLO_DimensionTensor:$output_shape,
                       I64Attr:$iota_dimension);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $output_shape `,` `dim` `=` $iota_dimension attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_DynamicPadOp : StableHLO_Op<"dynamic_pad", [Pure]> {
  let summary = "Padding by amounts given as tensors";
  let description = [{
    Like pad, with the amounts as operands.

    ```mlir
    %r = stablehlo.dynamic_pad %x, %v, %low, %high, %interior
         : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>,
            tensor<1xi32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_ScalarTensor:$padding_value,
    HLO_DimensionTensor:$edge_padding_low,
    HLO_DimensionTensor:$edge_padding_high,
    HLO_DimensionTensor:$interior_padding);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def StableHLO_DynamicReshapeOp : StableHLO_Op<"dynamic_reshape", [Pure]> {
  let summary = "Change of shape to one given as a tensor";
  let description = [{
    Like reshape, with the shape of the result as an operand.

    ```mlir
    %r = stablehlo.dynamic_reshape %x, %shape
         : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_DimensionTensor:$output_shape);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOSHAPEOPS_TD
