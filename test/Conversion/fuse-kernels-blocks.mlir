// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels{target=sm_80}))' | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels))' | FileCheck %s --check-prefix=KEPT

// What is selected is read of %x and %dy again, which takes no longer than to
// read it, and is not stored; on a processor the sum keeps it.
// CHECK-LABEL: @main
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK: arith.select
// CHECK: } -> tensor<64xf32>
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %{{.*}} :
// CHECK: arith.select
// CHECK: } -> tensor<96x64xf32>
// KEPT-LABEL: @main
// KEPT: } -> (tensor<96x64xf32>, tensor<64xf32>)
func.func @main(%x: tensor<96x64xbf16>, %dy: tensor<96x64xbf16>)
    -> (tensor<64xf32>, tensor<96x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<96x64xbf16>
  %0 = stablehlo.compare GT, %x, %zeros
      : (tensor<96x64xbf16>, tensor<96x64xbf16>) -> tensor<96x64xi1>
  %1 = stablehlo.select %0, %dy, %zeros
      : tensor<96x64xi1>, tensor<96x64xbf16>
  %2 = stablehlo.convert %1 : (tensor<96x64xbf16>) -> tensor<96x64xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<96x64xf32>, tensor<f32>) -> tensor<64xf32>
  %s = stablehlo.broadcast_in_dim %3, dims = [1]
      : (tensor<64xf32>) -> tensor<96x64xf32>
  %4 = stablehlo.subtract %2, %s : tensor<96x64xf32>
  return %3, %4 : tensor<64xf32>, tensor<96x64xf32>
}
