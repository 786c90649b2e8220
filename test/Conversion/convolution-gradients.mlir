// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-convolution-gradients))' -split-input-file | FileCheck %s

// The reversal of the kernel, in whatever order of dimensions, becomes one of
// the windows.

// CHECK-LABEL: @image
func.func @image(%y: tensor<2x4x4x16xf32>, %w: tensor<3x3x8x16xf32>)
    -> tensor<2x8x8x8xf32> {
  // CHECK-NOT: stablehlo.reverse
  // CHECK: stablehlo.convolution(%arg0, %arg1)
  // CHECK-SAME: pad = {{\[}}[2, 1], [2, 1]], lhs_dilate = [2, 2], reverse = [true, true]
  %0 = stablehlo.reverse %w, dims = [1, 0] : tensor<3x3x8x16xf32>
  %1 = stablehlo.convolution(%y, %0)
      dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
      window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x4x4x16xf32>, tensor<3x3x8x16xf32>) -> tensor<2x8x8x8xf32>
  return %1 : tensor<2x8x8x8xf32>
}

// -----

// A reversal of something else stays.

// CHECK-LABEL: @features
func.func @features(%y: tensor<2x4x16xf32>, %w: tensor<3x8x16xf32>)
    -> (tensor<2x8x8xf32>, tensor<3x8x16xf32>) {
  // CHECK: %[[A:.*]] = stablehlo.reverse %arg1, dims = [0, 1]
  // CHECK: %[[B:.*]] = stablehlo.reverse %[[A]], dims = [0]
  // CHECK: stablehlo.convolution(%arg0, %[[B]]){{.*}}reverse = [true]
  %0 = stablehlo.reverse %w, dims = [0, 1] : tensor<3x8x16xf32>
  %1 = stablehlo.convolution(%y, %0)
      dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f],
      window = {pad = [[2, 1]], lhs_dilate = [2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x4x16xf32>, tensor<3x8x16xf32>) -> tensor<2x8x8xf32>
  return %1, %0 : tensor<2x8x8xf32>, tensor<3x8x16xf32>
}

// -----

// The gradient of a transposed convolution's kernel: sums over j of
// x[(o + j - 1) / 2] y[j], and with o = 2 - p of y[p + 2 i - 1] x[i].

// CHECK-LABEL: @kernel
func.func @kernel(%x: tensor<2x4x3xf32>, %y: tensor<2x8x5xf32>)
    -> tensor<3x3x5xf32> {
  // CHECK: %[[W:.*]] = stablehlo.convolution(%arg1, %arg0)
  // CHECK-SAME: [f, 0, b]x[i, 0, o]->[0, f, b]
  // CHECK-SAME: pad = {{\[\[}}1, 0]], rhs_dilate = [2]
  // CHECK: %[[R:.*]] = stablehlo.reverse %[[W]], dims = [0]
  // CHECK: return %[[R]]
  %0 = stablehlo.convolution(%x, %y)
      dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
      window = {pad = [[1, 2]], lhs_dilate = [2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x4x3xf32>, tensor<2x8x5xf32>) -> tensor<3x3x5xf32>
  return %0 : tensor<3x3x5xf32>
}

// -----

// Strided windows of what is spread are in no library; and where nothing is
// spread, nothing is to do.

// CHECK-LABEL: @others
func.func @others(%x: tensor<2x8x3xf32>, %w: tensor<3x3x5xf32>)
    -> (tensor<2x5x5xf32>, tensor<2x6x5xf32>) {
  // CHECK-NOT: stablehlo.reverse
  // CHECK: stride = [3], lhs_dilate = [2]
  // CHECK-NOT: reverse
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {stride = [3], lhs_dilate = [2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x3xf32>, tensor<3x3x5xf32>) -> tensor<2x5x5xf32>
  %1 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x3xf32>, tensor<3x3x5xf32>) -> tensor<2x6x5xf32>
  return %0, %1 : tensor<2x5x5xf32>, tensor<2x6x5xf32>
}
