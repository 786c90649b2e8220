// Who asks for TF32: the configuration, for default precision, or an algorithm.
//
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops))' | FileCheck %s
// RUN: whale-compile %s --cluster=1 --target=none -o %t.whale
// RUN: FileCheck %s --check-prefix=NONE --input-file=%t.whale/manifest.json
// RUN: whale-compile %s --cluster=1 --target=none --tf32 -o %t.whale
// RUN: FileCheck %s --check-prefix=ASKED --input-file=%t.whale/manifest.json
// NONE-COUNT-1: "tf32":{{ ?}}true
// NONE-NOT: "tf32"
// ASKED-COUNT-3: "tf32":{{ ?}}true
// ASKED-NOT: "tf32"

// CHECK-LABEL: @main
// CHECK: whale.matmul
// CHECK-NOT: tf32
// CHECK: whale.matmul {{.*}}tf32
// CHECK: whale.matmul
// CHECK-NOT: tf32
func.func @main(%a: tensor<64x64xf32>, %x: tensor<2x8x8x4xf32>, %w: tensor<3x3x4x4xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<2x6x6x4xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %a, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %1, %a, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<2x6x6x4xf32>
  return %0, %1, %2, %3 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<2x6x6x4xf32>
}
