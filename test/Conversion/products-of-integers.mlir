// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=cpu+i8}))' | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops))' | FileCheck %s --check-prefix=NONE

// On processors with instructions for them.
// CHECK-LABEL: @into_i32
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: k = array<i64: 128, 1, 1>
// CHECK-SAME: (tensor<64x128xi8>, tensor<96x128xi8>) -> tensor<64x96xi32>
// NONE-LABEL: @into_i32
// NONE: stablehlo.dot_general
func.func @into_i32(%a: tensor<64x128xi8>, %b: tensor<96x128xi8>)
    -> tensor<64x96xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
      : (tensor<64x128xi8>, tensor<96x128xi8>) -> tensor<64x96xi32>
  return %0 : tensor<64x96xi32>
}

// Few products, sums that oneDNN rounds, other results and other operands are
// for loops.
// CHECK-LABEL: @others
// CHECK-NOT: whale.matmul
func.func @others(%a: tensor<64x128xi8>, %b: tensor<96x128xi8>,
                  %c: tensor<96x128xui8>, %d: tensor<4x128xi8>,
                  %e: tensor<64x515xi8>)
    -> (tensor<64x96xi8>, tensor<64x96xi32>, tensor<64x4xi32>,
        tensor<64x64xi32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
      : (tensor<64x128xi8>, tensor<96x128xi8>) -> tensor<64x96xi8>
  %1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [1]
      : (tensor<64x128xi8>, tensor<96x128xui8>) -> tensor<64x96xi32>
  %2 = stablehlo.dot_general %a, %d, contracting_dims = [1] x [1]
      : (tensor<64x128xi8>, tensor<4x128xi8>) -> tensor<64x4xi32>
  %3 = stablehlo.dot_general %e, %e, contracting_dims = [1] x [1]
      : (tensor<64x515xi8>, tensor<64x515xi8>) -> tensor<64x64xi32>
  return %0, %1, %2, %3 : tensor<64x96xi8>, tensor<64x96xi32>,
                          tensor<64x4xi32>, tensor<64x64xi32>
}
