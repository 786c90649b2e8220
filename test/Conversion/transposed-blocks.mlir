// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels{target=sm_80}), \
// RUN:   whale-outline-kernels{target=sm_80},whale-check-threads)" \
// RUN:   -split-input-file | FileCheck %s

// Tiles of 32 x 32, of which the last ones are not full: 4 x 3 x 2 blocks.
// What is read in order does not go through shared memory.

// CHECK-LABEL: func.func @main
// CHECK-LABEL: func.func @k0
// CHECK-SAME: whale.extent = 24 : i64,{{.*}} whale.threads = 256 : i64
// CHECK: %[[TILE:.*]] = memref.alloca() : memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: memref.alloca
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c4
// CHECK: memref.load %{{.*}} : memref<18000xf32>
// CHECK: memref.store %{{.*}}, %[[TILE]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[TILE]]
// CHECK: memref.load %{{.*}} : memref<18000xf32>
// CHECK: memref.store
// CHECK: return
func.func @main(%x: tensor<4x90x50xf32>, %y: tensor<4x50x90xf32>)
    -> tensor<4x50x90xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1]
      : (tensor<4x90x50xf32>) -> tensor<4x50x90xf32>
  %1 = stablehlo.add %0, %y : tensor<4x50x90xf32>
  return %1 : tensor<4x50x90xf32>
}

// -----

// Lines of less than half a tile: a thread for each element.

// CHECK-LABEL: func.func @main
// CHECK-LABEL: func.func @k0
// CHECK-SAME: whale.extent = 30000 : i64
// CHECK-NOT: memref.alloca
func.func @main(%x: tensor<3x10000xf32>) -> tensor<10000x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<3x10000xf32>) -> tensor<10000x3xf32>
  return %0 : tensor<10000x3xf32>
}
