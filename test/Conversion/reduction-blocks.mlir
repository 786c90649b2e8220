// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels), \
// RUN:   whale-outline-kernels{target=sm_80},whale-check-threads)" | FileCheck %s

// The positions are computed, not read; neighbours combine what they have.

// CHECK-LABEL: func.func @main
// CHECK: whale.launch @k0
// CHECK-LABEL: func.func @k0
// CHECK-SAME: whale.threads = 256
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<40000000xf32>
// CHECK-NOT: memref<40000000xi32>
// CHECK: gpu.barrier
// CHECK-NOT: memref<40000000xi32>
// CHECK: return
func.func @main(%x: tensor<800x50000xf32>) -> tensor<800xi32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %at = stablehlo.iota dim = 1 : tensor<800x50000xi32>
  %0:2 = stablehlo.reduce(%x init: %low), (%at init: %zero)
      across dimensions = [1]
      : (tensor<800x50000xf32>, tensor<800x50000xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<800xf32>, tensor<800xi32>)
   reducer(%a: tensor<f32>, %c: tensor<f32>)
          (%b: tensor<i32>, %d: tensor<i32>) {
    %1 = stablehlo.compare GE, %a, %c
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %a, %c : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<800xi32>
}
