// RUN: whale-opt %s -whale-stablehlo-to-linalg -whale-fuse-kernels -whale-fuse-rows=blocks -split-input-file | FileCheck %s
// RUN: whale-opt %s -whale-stablehlo-to-linalg -whale-fuse-kernels -whale-fuse-rows="blocks remarks" -split-input-file -verify-diagnostics -o /dev/null

// A block of 256 threads has 4 rows of 256 elements, 64 threads for each. A
// thread combines its terms, a warp what its threads have, a row what its warps
// have; the first thread of a row stores it where all threads read it.
// CHECK-LABEL: @softmax
// CHECK: whale.kernel(%arg0) extent 12 {inplace = array<i64: 0>
// CHECK-SAME: whale.threads = 256
// CHECK: ^bb0(%[[IN:[^:]*]]: memref<48x256xf32>, %{{.*}}: memref<48x256xf32>, %[[BEGIN:[^:]*]]: index, %[[END:[^:]*]]: index):
// CHECK-DAG: memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-DAG: memref.alloca() : memref<1024xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %[[BLOCK:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[ID:.*]] = gpu.thread_id x
// CHECK: arith.divui %[[ID]], %c64
// CHECK: %[[THREAD:.*]] = arith.remui %[[ID]], %c64
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c256{{.*}} step %c64
// CHECK:   arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK:   memref.store %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.load %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c256
// CHECK:   math.exp
// CHECK:   memref.store %{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c256
// CHECK:   arith.divf
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func @softmax(%x: tensor<48x256xf32>) -> tensor<48x256xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  %d = stablehlo.subtract %x, %mb : tensor<48x256xf32>
  %e = stablehlo.exponential %d : tensor<48x256xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.divide %e, %sb : tensor<48x256xf32>
  return %y : tensor<48x256xf32>
}

// -----

// Rows that no more than one fit a block evenly, in two dimensions; the threads
// of a row are a warp, so that nothing but the barrier between nests is waited
// for.
// CHECK-LABEL: @odd
// CHECK: whale.kernel(%arg0) extent 15
// CHECK-SAME: whale.threads = 32
// CHECK-COUNT-1: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func @odd(%x: tensor<3x5x100xf32>) -> tensor<3x5x100xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<3x5x100xf32>, tensor<f32>) -> tensor<3x5xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 1]
      : (tensor<3x5xf32>) -> tensor<3x5x100xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %y = stablehlo.subtract %x, %b : tensor<3x5x100xf32>
  return %y : tensor<3x5x100xf32>
}

// -----

// What a block shares of a row has to fit its memory. What others read, too, is
// not shared.
// CHECK-LABEL: @long
// CHECK: whale.kernel(%arg0) extent 48
// CHECK-SAME: whale.threads = 512
// CHECK-NOT: whale.kernel
func.func @long(%x: tensor<48x12288xf32>) -> tensor<48x12288xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x12288xf32>, tensor<f32>) -> tensor<48xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x12288xf32>
  %d = stablehlo.exponential %sb : tensor<48x12288xf32>
  %e = stablehlo.subtract %x, %d : tensor<48x12288xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x12288xf32>, tensor<f32>) -> tensor<48xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0]
      : (tensor<48xf32>) -> tensor<48x12288xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: a row does not fit shared memory}}
  %y = stablehlo.divide %e, %tb : tensor<48x12288xf32>
  return %y : tensor<48x12288xf32>
}

// -----

// Several sums of each row stay an operation of their own.
// CHECK-LABEL: @parts
// CHECK-NOT: whale.kernel
func.func @parts(%x: tensor<48x64xf32>, %z: tensor<48x4x64xf32>)
    -> tensor<48x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x64xf32>, tensor<f32>) -> tensor<48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x4x64xf32>
  %d = stablehlo.multiply %z, %b : tensor<48x4x64xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: it reduces parts of rows}}
  %y = stablehlo.reduce(%d init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<48x4x64xf32>, tensor<f32>) -> tensor<48x4xf32>
  return %y : tensor<48x4xf32>
}

// -----

// What the first thread of a row computes from what it has stored itself needs
// no barrier; what all threads read does.
// CHECK-LABEL: @scalars
// CHECK: gpu.thread_id x
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK:   memref.store %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: gpu.barrier
// CHECK: scf.if
// CHECK:   memref.load %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK:   math.sqrt
// CHECK: gpu.barrier
// CHECK: arith.mulf
// CHECK: return
func.func @scalars(%x: tensor<48x256xf32>) -> tensor<48x256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %r = stablehlo.rsqrt %s : tensor<48xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  %p = stablehlo.multiply %x, %rb : tensor<48x256xf32>
  %t = stablehlo.reduce(%p init: %zero) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %u = stablehlo.subtract %t, %r : tensor<48xf32>
  %ub = stablehlo.broadcast_in_dim %u, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  // expected-remark @below {{one kernel for 4 loops over rows}}
  %y = stablehlo.add %p, %ub : tensor<48x256xf32>
  return %y : tensor<48x256xf32>
}
