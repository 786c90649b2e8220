// What kernels note of their work for who prices them: the class of most of
// their FLOPs, where these are not elementwise, and the type that they compute
// in, where that is not the one of their first result. Judged by the attributes
// of the kernels, whose numbers are computed by hand.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows),whale-outline-kernels)' -split-input-file | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_90},whale-fuse-kernels{target=sm_90},whale-fuse-rows{target=sm_90}),whale-outline-kernels{target=sm_90})' -split-input-file | FileCheck %s --check-prefix=GPU

// What is fused into a sum is part of it: 32 exponentials and 32 additions, of
// 128 bytes that are read and 16 that are written.
// CHECK-LABEL: @sum_of_exponentials
// CHECK: func.func @k0
// CHECK-SAME: whale.bytes = 144 : i64, whale.class = "reduction"
// CHECK-SAME: whale.flops = 64 : i64
// GPU-LABEL: @sum_of_exponentials
// GPU: func.func @k0{{.*}} whale.class = "reduction"
func.func @sum_of_exponentials(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add
      across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A comparison gives bits, but is one of floats.
// CHECK-LABEL: @compare
// CHECK: func.func @k0
// CHECK-NOT: whale.class
// CHECK-SAME: whale.computes_in = f64
// GPU-LABEL: @compare
// GPU: func.func @k0{{.*}} whale.computes_in = f64
func.func @compare(%x: tensor<8xf64>, %y: tensor<8xf64>) -> tensor<8xi1> {
  %0 = stablehlo.compare LT, %x, %y
      : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}

// -----

// A product in loops: each operand is read again along a loop that it lacks.
// CHECK-LABEL: @product
// CHECK: func.func @k0{{.*}} whale.class = "matmul"
// GPU-LABEL: @product
// GPU: func.func @k0{{.*}} whale.class = "matmul"
func.func @product(%x: tensor<4x8xf32>, %y: tensor<8x2xf32>)
    -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Which neither operand of a sum of squares does.
// CHECK-LABEL: @squares
// CHECK: func.func @k0{{.*}} whale.class = "reduction"
// GPU-LABEL: @squares
// GPU: func.func @k0{{.*}} whale.class = "reduction"
func.func @squares(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %y : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add
      across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What is moved counts no FLOPs.
// CHECK-LABEL: @move
// CHECK: func.func @k0
// CHECK-SAME: whale.bytes = 256 : i64
// CHECK-NOT: whale.class
// CHECK-SAME: whale.flops = 0 : i64
// GPU-LABEL: @move
func.func @move(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// Of a table that is updated no more is read and written than there are
// updates: 4 indices and 128 bytes of updates, and twice as much of the table.
// CHECK-LABEL: @scatter
// CHECK: func.func @k0
// CHECK-SAME: whale.bytes = 432 : i64, whale.class = "other"
// CHECK-SAME: whale.flops = 32 : i64
// GPU-LABEL: @scatter
// GPU: whale.class = "other"
func.func @scatter(%x: tensor<1000x8xf32>, %i: tensor<4x1xi32>,
    %u: tensor<4x8xf32>) -> tensor<1000x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1000x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>)
    -> tensor<1000x8xf32>
  return %0 : tensor<1000x8xf32>
}
