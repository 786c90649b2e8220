// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-normalize-convolutions))' -split-input-file | FileCheck %s

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

// -----

// What is padded unevenly: an image, and the gradient of one.

// CHECK-LABEL: @uneven
func.func @uneven(%x: tensor<2x8x8x3xf32>, %y: tensor<2x4x4x8xf32>,
                  %w: tensor<8x3x3x3xf32>)
    -> (tensor<2x4x4x8xf32>, tensor<2x8x8x3xf32>) {
  // CHECK: %[[X:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0, 0, 0],
  // CHECK-SAME: high = [0, 1, 1, 0]
  // CHECK: stablehlo.convolution(%[[X]], %arg2)
  // CHECK-SAME: pad = {{\[}}[0, 0], [0, 0]]
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f],
      window = {stride = [2, 2], pad = [[0, 1], [0, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x8x3xf32>, tensor<8x3x3x3xf32>) -> tensor<2x4x4x8xf32>
  // CHECK: %[[G:.*]] = stablehlo.convolution(%arg1, %arg2)
  // CHECK-SAME: pad = {{\[}}[2, 2], [2, 2]]
  // CHECK-SAME: -> tensor<2x9x9x3xf32>
  // CHECK: stablehlo.slice %[[G]] [0:2, 0:8, 0:8, 0:3]
  %1 = stablehlo.convolution(%y, %w)
      dim_numbers = [b, 0, 1, f]x[i, 0, 1, o]->[b, 0, 1, f],
      window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2],
                reverse = [true, true]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x4x4x8xf32>, tensor<8x3x3x3xf32>) -> tensor<2x8x8x3xf32>
  return %0, %1 : tensor<2x4x4x8xf32>, tensor<2x8x8x3xf32>
}

// -----

// Windows of a dilated image that are strides apart are no gradient.

// CHECK-LABEL: @both
func.func @both(%x: tensor<1x4x4x1xf32>, %w: tensor<1x3x3x1xf32>)
    -> tensor<1x2x2x1xf32> {
  // CHECK: %[[C:.*]] = stablehlo.convolution(%arg0,
  // CHECK-SAME: window = {stride = [4, 4], lhs_dilate = [2, 2]}
  // CHECK-SAME: -> tensor<1x2x2x1xf32>
  // CHECK: return %[[C]]
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f],
      window = {stride = [4, 4], lhs_dilate = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x4x1xf32>, tensor<1x3x3x1xf32>) -> tensor<1x2x2x1xf32>
  return %0 : tensor<1x2x2x1xf32>
}

// -----

// Padded alike on all sides, the image would have more elements than 64 bits
// count.

// CHECK-LABEL: @huge
func.func @huge(%x: tensor<1x80x80x1xi32>, %w: tensor<70x70x1x2xi32>)
    -> tensor<1x2x2x2xi32> {
  // CHECK-NOT: stablehlo.pad
  // CHECK: stablehlo.convolution
  // CHECK-NOT: stablehlo.pad
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1099511627776, 1099511627776],
                pad = [[1099511627776, 0], [1099511627776, 0]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x80x80x1xi32>, tensor<70x70x1x2xi32>) -> tensor<1x2x2x2xi32>
  return %0 : tensor<1x2x2x2xi32>
}
