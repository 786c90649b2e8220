// RUN: whale-opt %s -whale-order-convolutions -split-input-file | FileCheck %s

// The gradients of a filter and of an image, as JAX writes them.

// CHECK-LABEL: @filter
func.func @filter(%x: tensor<2x9x9x8xf32>, %y: tensor<2x5x5x16xf32>)
    -> tensor<3x3x8x16xf32> {
  // CHECK: %[[G:.*]] = stablehlo.convolution(%arg0, %arg1)
  // CHECK-SAME: [f, 0, 1, b]x[i, 0, 1, o]->[f, 0, 1, b]
  // CHECK-SAME: -> tensor<16x3x3x8xf32>
  // CHECK: stablehlo.transpose %[[G]], dims = [1, 2, 3, 0]
  %0 = stablehlo.convolution(%x, %y)
      dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f],
      window = {pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x9x9x8xf32>, tensor<2x5x5x16xf32>) -> tensor<3x3x8x16xf32>
  return %0 : tensor<3x3x8x16xf32>
}

// -----

// CHECK-LABEL: @image
func.func @image(%y: tensor<2x5x5x16xf32>, %w: tensor<3x3x8x16xf32>)
    -> tensor<2x9x9x8xf32> {
  // CHECK: %[[W:.*]] = stablehlo.transpose %arg1, dims = [3, 0, 1, 2]
  // CHECK: %[[G:.*]] = stablehlo.convolution(%arg0, %[[W]])
  // CHECK-SAME: [b, 0, 1, f]x[i, 0, 1, o]->[b, 0, 1, f]
  // CHECK: return %[[G]]
  %0 = stablehlo.convolution(%y, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2],
                reverse = [true, true]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x5x5x16xf32>, tensor<3x3x8x16xf32>) -> tensor<2x9x9x8xf32>
  return %0 : tensor<2x9x9x8xf32>
}

// -----

// All channels first stay so; else all are last.

// CHECK-LABEL: @first
func.func @first(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> (tensor<2x4x6x6xf32>, tensor<2x6x6x4xf32>) {
  // CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
  // CHECK-SAME: [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  // CHECK-NEXT: %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1]
  // CHECK-NEXT: %[[W:.*]] = stablehlo.transpose %arg1, dims = [0, 2, 3, 1]
  // CHECK-NEXT: stablehlo.convolution(%[[X]], %[[W]])
  // CHECK-SAME: [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f]
  // CHECK-NEXT: return
  %1 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x6x6x4xf32>
  return %0, %1 : tensor<2x4x6x6xf32>, tensor<2x6x6x4xf32>
}
