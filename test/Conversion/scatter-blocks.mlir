// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_80}),whale-outline-kernels{target=sm_80})' -split-input-file | FileCheck %s

// 3000 items: their keys, their stable sort, 47 runs of 64 for each of the 8
// columns, and what goes over the end of a run.

// CHECK-LABEL: func.func @add
// CHECK: %[[KEYS:.*]]:2 = whale.launch @k0(%arg1)
// CHECK: whale.launch @k1(%[[KEYS]]#0, %[[KEYS]]#1)
// CHECK: whale.launch @k2
// CHECK: %[[SORTED:.*]]:2 = whale.launch @k3
// CHECK: %[[SUMS:.*]]:2 = whale.launch @k4(%arg0, %arg2, %[[SORTED]]#0, %[[SORTED]]#1) {{.*}} -> (tensor<500x8xf32>, tensor<47x8xf32>)
// CHECK: %[[RESULT:.*]] = whale.launch @k5(%[[SUMS]]#0, %[[SUMS]]#1, %[[SORTED]]#0)
// CHECK: return %[[RESULT]]
// CHECK-NOT: atomic
func.func @add(%x: tensor<500x8xf32>, %i: tensor<3000x1xi32>,
               %u: tensor<3000x8xf32>) -> tensor<500x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<500x8xf32>, tensor<3000x1xi32>, tensor<3000x8xf32>)
      -> tensor<500x8xf32>
  return %0 : tensor<500x8xf32>
}

// -----

// Keys of more elements than 32 bits count.

// CHECK-LABEL: func.func @large
// CHECK: whale.launch @k0(%arg1) {{.*}} -> (tensor<5000xi64>, tensor<5000xi32>)
func.func @large(%x: tensor<2147483648xi8>, %i: tensor<5000x1xi64>,
                 %u: tensor<5000xi8>) -> tensor<2147483648xi8> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %1 = stablehlo.add %a, %b : tensor<i8>
    stablehlo.return %1 : tensor<i8>
  }) : (tensor<2147483648xi8>, tensor<5000x1xi64>, tensor<5000xi8>)
      -> tensor<2147483648xi8>
  return %0 : tensor<2147483648xi8>
}

// -----

// Nothing to combine: each item is added alone.

// CHECK-LABEL: func.func @unique
// CHECK: %[[RESULT:.*]] = whale.launch @k0(%arg0, %arg2, %arg1)
// CHECK-NEXT: return %[[RESULT]]
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 24000 : i64
func.func @unique(%x: tensor<500x8xf32>, %i: tensor<3000x1xi32>,
               %u: tensor<3000x8xf32>) -> tensor<500x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    unique_indices = true
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<500x8xf32>, tensor<3000x1xi32>, tensor<3000x8xf32>)
      -> tensor<500x8xf32>
  return %0 : tensor<500x8xf32>
}
