// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-convolutions-to-products))' -split-input-file | FileCheck %s

// The gradient of a filter is summed over all pixels.

// CHECK-LABEL: @filter
func.func @filter(%x: tensor<2x5x5x8xbf16>, %y: tensor<2x5x5x16xbf16>)
    -> tensor<1x1x8x16xbf16> {
  // CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %arg1,
  // CHECK-SAME: contracting_dims = [0, 1, 2] x [0, 1, 2]
  // CHECK-SAME: -> tensor<8x16xbf16>
  // CHECK: %[[G:.*]] = stablehlo.reshape %[[P]]
  // CHECK: return %[[G]]
  %0 = stablehlo.convolution(%x, %y)
      dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x5x5x8xbf16>, tensor<2x5x5x16xbf16>) -> tensor<1x1x8x16xbf16>
  return %0 : tensor<1x1x8x16xbf16>
}

// -----

// A window of one element has no other end. Precision is kept.

// CHECK-LABEL: @image
func.func @image(%y: tensor<2x5x5x16xf32>, %w: tensor<1x1x8x16xf32>)
    -> tensor<2x5x5x8xf32> {
  // CHECK: %[[W:.*]] = stablehlo.reshape %arg1 : {{.*}} -> tensor<8x16xf32>
  // CHECK: stablehlo.dot_general %arg0, %[[W]], contracting_dims = [3] x [1],
  // CHECK-SAME: precision = [HIGHEST, HIGHEST]
  // CHECK-NOT: transpose
  %0 = stablehlo.convolution(%y, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f],
      window = {reverse = [true, true]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       precision_config = [#stablehlo<precision HIGHEST>,
                           #stablehlo<precision HIGHEST>]}
      : (tensor<2x5x5x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x5x5x8xf32>
  return %0 : tensor<2x5x5x8xf32>
}

// -----

// Channels first, and a window that is all of one dimension.

// CHECK-LABEL: @lines
func.func @lines(%x: tensor<2x8x5x7xf32>, %w: tensor<16x8x1x7xf32>)
    -> tensor<2x16x5x1xf32> {
  // CHECK: %[[W:.*]] = stablehlo.reshape %arg1 : {{.*}} -> tensor<16x8x7xf32>
  // CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %[[W]],
  // CHECK-SAME: contracting_dims = [1, 3] x [1, 2]
  // CHECK-SAME: -> tensor<2x5x16xf32>
  // CHECK: %[[T:.*]] = stablehlo.transpose %[[P]], dims = [0, 2, 1]
  // CHECK: stablehlo.reshape %[[T]] : {{.*}} -> tensor<2x16x5x1xf32>
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x5x7xf32>, tensor<16x8x1x7xf32>) -> tensor<2x16x5x1xf32>
  return %0 : tensor<2x16x5x1xf32>
}

// -----

// Strides leave out pixels, padding adds some, groups are several products, and
// larger windows overlap. A dilated image has holes, also where as many windows
// as pixels are looked at.

// CHECK-LABEL: @others
// CHECK-COUNT-5: stablehlo.convolution
func.func @others(%x: tensor<2x5x5x8xf32>, %w: tensor<1x1x8x16xf32>,
                  %g: tensor<1x1x4x16xf32>, %v: tensor<3x3x8x16xf32>,
                  %z: tensor<2x2x2x8xf32>)
    -> (tensor<2x3x3x16xf32>, tensor<2x7x7x16xf32>, tensor<2x5x5x16xf32>,
        tensor<2x3x3x16xf32>, tensor<2x2x2x16xf32>) {
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x5x5x8xf32>, tensor<1x1x8x16xf32>) -> tensor<2x3x3x16xf32>
  %1 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x5x5x8xf32>, tensor<1x1x8x16xf32>) -> tensor<2x7x7x16xf32>
  %2 = stablehlo.convolution(%x, %g)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<2x5x5x8xf32>, tensor<1x1x4x16xf32>) -> tensor<2x5x5x16xf32>
  %3 = stablehlo.convolution(%x, %v)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x5x5x8xf32>, tensor<3x3x8x16xf32>) -> tensor<2x3x3x16xf32>
  %4 = stablehlo.convolution(%z, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [2, 2], lhs_dilate = [3, 3]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x2x2x8xf32>, tensor<1x1x8x16xf32>) -> tensor<2x2x2x16xf32>
  return %0, %1, %2, %3, %4 : tensor<2x3x3x16xf32>, tensor<2x7x7x16xf32>,
      tensor<2x5x5x16xf32>, tensor<2x3x3x16xf32>, tensor<2x2x2x16xf32>
}
