//===- StableHLOIndexingOps.td - Slices, gather, scatter ---*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that read or write at indices, fixed or computed, and `sort`.
//
// A start that would leave the operand is clamped, but a window of `scatter`
// that would is dropped, as StableHLO defines. The updates of one element by
// `scatter` come in no fixed order. `real_dynamic_slice` and `dynamic_gather`
// have sizes in operands; whale-normalize makes static ones of them or refuses
// them. Checks are in lib/Dialect/StableHLO/IR/StableHLOIndexingOps.cpp, those
// of gather and scatter in GatherScatter.cpp beside it.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOINDEXINGOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOINDEXINGOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

def StableHLO_SliceOp : StableHLO_InferredOp<"slice", [Pure]> {
  let summary = "Slice with fixed bounds";
  let description = [{
    Elements from `start_indices` up to `limit_indices` in steps of `strides`,
    printed as start:limit:stride, without a stride of 1.

    ```mlir
    %r = stablehlo.slice %x [0:4, 1:8:2]
         : (tensor<4x8xf32>) -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$start_indices,
                       DenseI64ArrayAttr:$limit_indices,
                       DenseI64ArrayAttr:$strides);
  let results = (outs HLO_Tensor);
  let assemblyFormat = [{
    $operand custom<SliceRanges>($start_indices, $limit_indices, $strides)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def StableHLO_DynamicSliceOp : StableHLO_InferredOp<"dynamic_slice", [Pure]> {
  let summary = "Slice with computed start";
  let description = [{
    A box of `slice_sizes` elements from the start indices, which are clamped so
    that the box stays inside the operand.

    ```mlir
    %r = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 8]
         : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand,
                       Variadic<HLO_ScalarIntTensor>:$start_indices,
                       DenseI64ArrayAttr:$slice_sizes);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` custom<VariadicOperandWithAttribute>($start_indices)
    `sizes` `=` $slice_sizes attr-dict `:` functional-type(operands, results)
  }];
}

def StableHLO_DynamicUpdateSliceOp
    : StableHLO_InferredOp<"dynamic_update_slice", [Pure]> {
  let summary = "Replacement of a slice with computed start";
  let description = [{
    The operand with the box at the start indices replaced by `update`; the
    start is clamped so that the box stays inside.

    ```mlir
    %r = stablehlo.dynamic_update_slice %x, %u, %i
         : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$update,
                       Variadic<HLO_ScalarIntTensor>:$start_indices);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

def StableHLO_RealDynamicSliceOp
    : StableHLO_Op<"real_dynamic_slice", [Pure]> {
  let summary = "Slice with bounds given as tensors";
  let description = [{
    Like slice, with start, limit and strides as operands.

    ```mlir
    %r = stablehlo.real_dynamic_slice %x, %start, %limit, %strides
         : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>)
         -> tensor<?xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_DimensionTensor:$start_indices,
                       HLO_DimensionTensor:$limit_indices,
                       HLO_DimensionTensor:$strides);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def StableHLO_GatherOp : StableHLO_InferredOp<"gather", [Pure]> {
  let summary = "Gather of slices";
  let description = [{
    For each index vector of `start_indices` a slice of `slice_sizes` elements
    of the operand. A start is clamped so that its slice stays inside.

    ```mlir
    %r = "stablehlo.gather"(%x, %i) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>,
      indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}>
      : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_PredOrIntTensor:$start_indices,
    StableHLO_GatherDimensionNumbersAttr:$dimension_numbers,
    DenseI64ArrayAttr:$slice_sizes,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_Tensor:$result);
}

def StableHLO_DynamicGatherOp : StableHLO_Op<"dynamic_gather", [Pure]> {
  let summary = "Gather of slices whose sizes are a tensor";
  let description = [{
    Like gather, with `slice_sizes` as an operand.

    ```mlir
    %r = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [0],
        start_index_map = [0]>}>
      : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, HLO_IntTensor:$start_indices,
    HLO_DimensionTensor:$slice_sizes,
    StableHLO_GatherDimensionNumbersAttr:$dimension_numbers,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

def StableHLO_ScatterOp
    : StableHLO_Op<"scatter", [SameVariadicOperandSize, SingleBlock,
                               RecursiveMemoryEffects,
                               RecursivelySpeculatable]> {
  let summary = "Scatter of updates";
  let description = [{
    Returns the inputs; the region combines each window of `updates` with the
    elements at the index that `scatter_indices` gives. A window that isn't
    entirely inside is dropped. The order of updates to one element is
    unspecified.

    ```mlir
    %r = "stablehlo.scatter"(%x, %i, %u) <{
      indices_are_sorted = false,
      scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>,
      unique_indices = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
    HLO_PredOrIntTensor:$scatter_indices, Variadic<HLO_Tensor>:$updates,
    StableHLO_ScatterDimensionNumbersAttr:$scatter_dimension_numbers,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$unique_indices);
  let regions = (region SizedRegion<1>:$update_computation);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def StableHLO_SortOp
    : StableHLO_Op<"sort", [SameOperandsAndResultShape, SingleBlock,
                            RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "Sort along a dimension";
  let description = [{
    Sorts the inputs together along `dimension` by the comparator, whose
    arguments are a left and a right element of each input.

    ```mlir
    %r = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.compare LT, %a, %b, TOTALORDER
             : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs,
    DefaultValuedOptionalAttr<I64Attr, "-1">:$dimension,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_stable);
  let regions = (region SizedRegion<1>:$comparator);
  let results = (outs Variadic<HLO_Tensor>);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs,
                             CArg<"int64_t", "-1">:$dimension,
                             CArg<"bool", "false">:$isStable)>];
  let hasVerifier = 1;
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOINDEXINGOPS_TD
