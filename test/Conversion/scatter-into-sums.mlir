// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-scatter-into-sums))' | FileCheck %s

// What another use of the table gave, or micro-batches before, is on either
// side.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: stablehlo.add %arg0
// CHECK: %[[ONE:.*]] = "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK: %[[TWO:.*]] = "stablehlo.scatter"(%[[ONE]], %arg1, %arg2)
// CHECK: return %[[TWO]]
func.func @sum(%x: tensor<9xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>)
    -> tensor<9xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<9xf32>
  %0 = "stablehlo.scatter"(%zeros, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<9xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<9xf32>
  %1 = stablehlo.add %x, %0 : tensor<9xf32>
  %2 = "stablehlo.scatter"(%zeros, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<9xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<9xf32>
  %3 = stablehlo.add %2, %1 : tensor<9xf32>
  return %3 : tensor<9xf32>
}

// The other term is there only after the updates.
// CHECK-LABEL: func.func @later
// CHECK: %[[SINE:.*]] = stablehlo.sine %arg0
// CHECK: %[[SUM:.*]] = "stablehlo.scatter"(%[[SINE]], %arg1, %arg2)
// CHECK: return %[[SUM]]
func.func @later(%x: tensor<9xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>)
    -> tensor<9xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<9xf32>
  %0 = "stablehlo.scatter"(%zeros, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<9xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<9xf32>
  %1 = stablehlo.sine %x : tensor<9xf32>
  %2 = stablehlo.add %0, %1 : tensor<9xf32>
  return %2 : tensor<9xf32>
}

// The table's gradient is needed by itself; sums of bf16 would lose digits; a
// largest update is no sum.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-3: "stablehlo.scatter"(%cst
// CHECK-NOT: "stablehlo.scatter"(%arg
func.func @stay(%x: tensor<9xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>,
                %y: tensor<9xbf16>, %v: tensor<4xbf16>)
    -> (tensor<9xf32>, tensor<9xf32>, tensor<9xbf16>, tensor<9xf32>) {
  %zeros = stablehlo.constant dense<0.0> : tensor<9xf32>
  %0 = "stablehlo.scatter"(%zeros, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<9xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<9xf32>
  %1 = stablehlo.add %x, %0 : tensor<9xf32>
  %half = stablehlo.constant dense<0.0> : tensor<9xbf16>
  %2 = "stablehlo.scatter"(%half, %i, %v) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %6 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %6 : tensor<bf16>
  }) : (tensor<9xbf16>, tensor<4x1xi32>, tensor<4xbf16>) -> tensor<9xbf16>
  %3 = stablehlo.add %y, %2 : tensor<9xbf16>
  %4 = "stablehlo.scatter"(%zeros, %i, %u) <{
      scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<9xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<9xf32>
  %5 = stablehlo.add %x, %4 : tensor<9xf32>
  return %0, %1, %3, %5 : tensor<9xf32>, tensor<9xf32>, tensor<9xbf16>, tensor<9xf32>
}
