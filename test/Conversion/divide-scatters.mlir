// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-divide-scatters))' -split-input-file | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-divide-scatters{most=40}))' -split-input-file | FileCheck %s --check-prefix=FEW

// Two million updates of an element by several operations are eight parts of
// 250,000; 40 are 50,000 parts.
// CHECK-LABEL: @apply
// CHECK: stablehlo.while
// CHECK: %[[COUNT:.*]] = stablehlo.constant dense<8>
// CHECK: stablehlo.compare LT, %iterArg, %[[COUNT]]
// CHECK: stablehlo.dynamic_slice %arg1, {{.*}} sizes = [250000, 1]
// CHECK: stablehlo.dynamic_slice %arg2, {{.*}} sizes = [250000]
// CHECK: "stablehlo.scatter"(%iterArg_0
// CHECK-NOT: "stablehlo.scatter"(
// FEW-LABEL: @apply
// FEW: dense<50000>
func.func @apply(%x: tensor<9xf32>, %i: tensor<2000000x1xi32>,
                 %u: tensor<2000000xf32>) -> tensor<9xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.sine %a : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<9xf32>, tensor<2000000x1xi32>, tensor<2000000xf32>)
      -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

// Sums of as many stay; of 51 there is one part of 26, and one of what is left.
// Several operands are updated together.
// CHECK-LABEL: @sums
// CHECK-NOT: stablehlo.while
// FEW-LABEL: @sums
// FEW: %[[LOOP:.*]]:3 = stablehlo.while
// FEW: stablehlo.dynamic_slice %arg3, {{.*}} sizes = [26]
// FEW: %[[INDICES:.*]] = stablehlo.slice %arg2 [26:51, 0:1]
// FEW: %[[FIRST:.*]] = stablehlo.slice %arg3 [26:51]
// FEW: %[[SECOND:.*]] = stablehlo.slice %arg4 [26:51]
// FEW: "stablehlo.scatter"(%[[LOOP]]#1, %[[LOOP]]#2, %[[INDICES]], %[[FIRST]], %[[SECOND]])
func.func @sums(%x: tensor<9xf32>, %y: tensor<9xf32>, %i: tensor<51x1xi32>,
                %u: tensor<51xf32>, %v: tensor<51xf32>)
    -> (tensor<9xf32>, tensor<9xf32>) {
  %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<9xf32>, tensor<9xf32>, tensor<51x1xi32>, tensor<51xf32>,
        tensor<51xf32>) -> (tensor<9xf32>, tensor<9xf32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Batches don't meet: of 30 in each of two, parts are of 15. Where the updates
// have their places is kept.
// FEW-LABEL: @batches
// FEW: stablehlo.dynamic_slice %arg1, {{.*}} sizes = [2, 15, 1]
// FEW: stablehlo.dynamic_slice %arg2, {{.*}} sizes = [3, 2, 15]
// FEW-NOT: stablehlo.slice
func.func @batches(%x: tensor<2x9x3xf32>, %i: tensor<2x30x1xi32>,
                   %u: tensor<3x2x30xf32>) -> tensor<2x9x3xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], inserted_window_dims = [1],
          input_batching_dims = [0], scatter_indices_batching_dims = [0],
          scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x9x3xf32>, tensor<2x30x1xi32>, tensor<3x2x30xf32>)
      -> tensor<2x9x3xf32>
  return %0 : tensor<2x9x3xf32>
}

// -----

// Of 3 x 2 windows of 50 elements each is a part; what is left, one window, has
// no elements that meet.
// FEW-LABEL: @windows
// FEW: stablehlo.while
// FEW: dense<3>
// FEW: stablehlo.dynamic_slice %arg2, {{.*}} sizes = [1, 2, 50]
// FEW: stablehlo.while
// FEW: dense<2>
// FEW: stablehlo.dynamic_slice %{{.*}}, {{.*}} sizes = [1, 1, 50]
// FEW-NOT: stablehlo.while
// FEW: "stablehlo.scatter"
func.func @windows(%x: tensor<99xf32>, %i: tensor<3x2x1xi32>,
                   %u: tensor<3x2x50xf32>) -> tensor<99xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [2], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<99xf32>, tensor<3x2x1xi32>, tensor<3x2x50xf32>)
      -> tensor<99xf32>
  return %0 : tensor<99xf32>
}
