// RUN: whale-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @identities
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>,
func.func @identities(%x: tensor<4x8xf32>, %v: tensor<f32>, %p: tensor<i1>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.convert %x : tensor<4x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.transpose %1, dims = [0, 1]
    : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1]
    : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.slice %3 [0:4, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.pad %4, %v, low = [0, 0], high = [0, 0], interior = [0, 0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = stablehlo.concatenate %5, dim = 0
    : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = stablehlo.select %p, %6, %6 : tensor<i1>, tensor<4x8xf32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %y = stablehlo.negate %x : tensor<4x8xf32>
  %8 = stablehlo.select %true, %x, %y : tensor<i1>, tensor<4x8xf32>
  // CHECK-NEXT: return %[[X]], %[[X]]
  return %7, %8 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @swap_transpose
func.func @swap_transpose(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: stablehlo.transpose
  %0 = stablehlo.transpose %x, dims = [1, 0]
    : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// What has no effect and no use goes; collectives and calls stay.
// CHECK-LABEL: @dead
func.func @dead(%x: tensor<4xf32>, %z: tensor<f32>, %p: tensor<i1>) {
  // CHECK-NOT: stablehlo.reduce
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add
    across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NOT: stablehlo.if
  %1 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  // CHECK-NOT: @pure
  %2 = stablehlo.custom_call @pure(%x) {has_side_effect = false}
    : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.custom_call @unknown
  %3 = stablehlo.custom_call @unknown(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.collective_permute
  %4 = "stablehlo.collective_permute"(%x) <{
    source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}>
    : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @equal_constants
func.func @equal_constants() -> (tensor<i32>, tensor<i32>) {
  // CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<1> : tensor<i32>
  // CHECK-NEXT: return %[[C]], %[[C]]
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}
