// On a GPU without arithmetic of bf16 libraries form products and convolutions
// of what is stored as bf16 in f32, rounded once; from compute capability 80 on
// they take bf16 itself.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_70}))' | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80}))' | FileCheck %s --check-prefix=NEW

// NEW-NOT: stablehlo.convert

// CHECK-LABEL: func.func @product
// CHECK-DAG: %[[A:.*]] = stablehlo.convert %arg0 : (tensor<64x80xbf16>) -> tensor<64x80xf32>
// CHECK-DAG: %[[B:.*]] = stablehlo.convert %arg1 : (tensor<80x96xbf16>) -> tensor<80x96xf32>
// CHECK: %[[C:.*]] = whale.matmul %[[A]], %[[B]]
// CHECK-SAME: -> tensor<64x96xf32>
// CHECK: %[[R:.*]] = stablehlo.convert %[[C]] : (tensor<64x96xf32>) -> tensor<64x96xbf16>
// CHECK: return %[[R]]
func.func @product(%a: tensor<64x80xbf16>, %b: tensor<80x96xbf16>)
    -> tensor<64x96xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x80xbf16>, tensor<80x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// A sum that is wanted in f32 is not rounded.
// CHECK-LABEL: func.func @wide
// CHECK: %[[C:.*]] = whale.matmul
// CHECK-NEXT: return %[[C]] : tensor<64x96xf32>
func.func @wide(%a: tensor<64x80xbf16>, %b: tensor<80x96xbf16>)
    -> tensor<64x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x80xbf16>, tensor<80x96xbf16>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}

// CHECK-LABEL: func.func @convolution
// CHECK: %[[C:.*]] = whale.convolution {{.*}} -> tensor<2x6x6x16xf32>
// CHECK: stablehlo.convert %[[C]] : (tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xbf16>
func.func @convolution(%x: tensor<2x8x8x4xbf16>, %w: tensor<3x3x4x16xbf16>)
    -> tensor<2x6x6x16xbf16> {
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x8x4xbf16>, tensor<3x3x4x16xbf16>) -> tensor<2x6x6x16xbf16>
  return %0 : tensor<2x6x6x16xbf16>
}
