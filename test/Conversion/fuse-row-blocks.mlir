// Fusion of rows for a GPU, where a block of threads has a row or several. One
// run compares where values of a row are kept (in registers, in shared memory,
// or computed again), how the threads combine theirs, and where they wait for
// each other. The other run compares the remarks: what is fused, and why the
// rest is not.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows{target=sm_80}))' -split-input-file | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows{target=sm_80 remarks}))' -split-input-file -verify-diagnostics -o /dev/null

// Four warps have a row each. A thread has 8 elements of it, in two accesses,
// from the first nest to the last; no memory but that of the result is written,
// and no thread waits for another warp.
// CHECK-LABEL: @softmax
// CHECK: whale.kernel(%arg0) extent 1024 {inplace = array<i64: 0>
// CHECK-SAME: whale.threads = 128
// CHECK-NOT: memref.alloca
// CHECK: %[[ID:.*]] = gpu.thread_id x
// CHECK: arith.divui %[[ID]], %c32
// CHECK: %[[THREAD:.*]] = arith.remui %[[ID]], %c32
// CHECK-COUNT-2: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-8: arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-8: math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-8: arith.divf
// CHECK-COUNT-2: vector.store
// CHECK-NOT: memref.store
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func @softmax(%x: tensor<4096x256xf32>) -> tensor<4096x256xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<4096x256xf32>, tensor<f32>) -> tensor<4096xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<4096xf32>) -> tensor<4096x256xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4096x256xf32>
  %e = stablehlo.exponential %d : tensor<4096x256xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<4096x256xf32>, tensor<f32>) -> tensor<4096xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<4096xf32>) -> tensor<4096x256xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.divide %e, %sb : tensor<4096x256xf32>
  return %y : tensor<4096x256xf32>
}

// -----

// Threads can't share 250 elements evenly: values of a row are in shared memory,
// for 4 rows of 64 threads. A thread combines its terms, a warp what its threads
// have, a row what its warps have; the first thread of a row stores it where all
// threads read it.
// CHECK-LABEL: @uneven
// CHECK: whale.kernel(%arg0) extent 256 {inplace = array<i64: 0>
// CHECK-SAME: whale.threads = 256
// CHECK: ^bb0(%[[IN:[^:]*]]: memref<1024x250xf32>, %{{.*}}: memref<1024x250xf32>, %[[BEGIN:[^:]*]]: index, %[[END:[^:]*]]: index):
// CHECK-DAG: memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-DAG: memref.alloca() : memref<1000xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %[[BLOCK:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[ID:.*]] = gpu.thread_id x
// CHECK: arith.divui %[[ID]], %c64
// CHECK: %[[THREAD:.*]] = arith.remui %[[ID]], %c64
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c128{{.*}} step %c128
// CHECK-COUNT-2: memref.load
// CHECK-COUNT-2: arith.maximumf
// CHECK: scf.for %{{.*}} = %{{.*}} to %c250{{.*}} step %c64
// CHECK:   arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK:   memref.store %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: memref.load %{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c128
// CHECK:   math.exp
// CHECK:   memref.store %{{.*}} : memref<1000xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c128
// CHECK-COUNT-2: memref.load
// CHECK-COUNT-2: arith.divf
// CHECK: scf.for %{{.*}} = %{{.*}} to %c250{{.*}} step %c64
// CHECK:   arith.divf
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func @uneven(%x: tensor<1024x250xf32>) -> tensor<1024x250xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<1024x250xf32>, tensor<f32>) -> tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<1024xf32>) -> tensor<1024x250xf32>
  %d = stablehlo.subtract %x, %mb : tensor<1024x250xf32>
  %e = stablehlo.exponential %d : tensor<1024x250xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<1024x250xf32>, tensor<f32>) -> tensor<1024xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<1024xf32>) -> tensor<1024x250xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.divide %e, %sb : tensor<1024x250xf32>
  return %y : tensor<1024x250xf32>
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

// Of many long rows each nest computes the exponentials for itself: no memory
// but that of the result has any.
// CHECK-LABEL: @recomputed
// CHECK: whale.kernel(%arg0) extent 128 {inplace = array<i64: 0>
// CHECK-SAME: whale.threads = 512
// CHECK-NOT: memref<50257xf32
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: gpu.barrier
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: memref.store %{{.*}} : memref<6432896xf32>
// CHECK-NOT: whale.kernel
// CHECK: return
func.func @recomputed(%x: tensor<128x50257xf32>) -> tensor<128x50257xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<128x50257xf32>, tensor<f32>) -> tensor<128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<128xf32>) -> tensor<128x50257xf32>
  %d = stablehlo.subtract %x, %mb : tensor<128x50257xf32>
  %e = stablehlo.exponential %d : tensor<128x50257xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x50257xf32>, tensor<f32>) -> tensor<128xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<128xf32>) -> tensor<128x50257xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.divide %e, %sb : tensor<128x50257xf32>
  return %y : tensor<128x50257xf32>
}

// -----

// What follows from a row's value and the index alone is no operand that tells
// how long a row is: it is not computed again.
// CHECK-LABEL: @untold
// CHECK: whale.kernel
// CHECK: linalg.generic
// CHECK: arith.divf
func.func @untold(%x: tensor<128x50257xf32>) -> tensor<128x50257xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<128x50257xf32>, tensor<f32>) -> tensor<128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<128xf32>) -> tensor<128x50257xf32>
  %i = stablehlo.iota dim = 1 : tensor<128x50257xf32>
  %d = stablehlo.multiply %i, %mb : tensor<128x50257xf32>
  %e = stablehlo.exponential %d : tensor<128x50257xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x50257xf32>, tensor<f32>) -> tensor<128xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<128xf32>) -> tensor<128x50257xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: a row does not fit shared memory}}
  %y = stablehlo.divide %e, %sb : tensor<128x50257xf32>
  return %y : tensor<128x50257xf32>
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
func.func @scalars(%x: tensor<1024x250xf32>) -> tensor<1024x250xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<1024x250xf32>, tensor<f32>) -> tensor<1024xf32>
  %r = stablehlo.rsqrt %s : tensor<1024xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0]
      : (tensor<1024xf32>) -> tensor<1024x250xf32>
  %p = stablehlo.multiply %x, %rb : tensor<1024x250xf32>
  %t = stablehlo.reduce(%p init: %zero) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<1024x250xf32>, tensor<f32>) -> tensor<1024xf32>
  %u = stablehlo.subtract %t, %r : tensor<1024xf32>
  %ub = stablehlo.broadcast_in_dim %u, dims = [0]
      : (tensor<1024xf32>) -> tensor<1024x250xf32>
  // expected-remark @below {{one kernel for 4 loops over rows}}
  %y = stablehlo.add %p, %ub : tensor<1024x250xf32>
  return %y : tensor<1024x250xf32>
}

// -----

// In registers all threads of a row compute its one values, here of two warps
// whose parts of a sum are in shared memory; the first thread stores what
// others need. A line that all rows read is read where it is needed.
// CHECK-LABEL: @norm
// CHECK: whale.kernel(%arg0, %arg1) extent 6
// CHECK-SAME: whale.threads = 64
// CHECK-COUNT-6: vector.load %{{.*}} : memref<9216xf32>, vector<4xf32>
// CHECK: memref.alloca() : memref<2xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: math.sqrt
// CHECK: scf.if
// CHECK-NEXT: memref.store
// CHECK-COUNT-6: vector.load %{{.*}} : memref<1536xf32>, vector<4xf32>
// CHECK-COUNT-6: vector.store
// CHECK: return
func.func @norm(%x: tensor<6x1536xf32>, %g: tensor<1536xf32>)
    -> (tensor<6x1536xf32>, tensor<6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %q = stablehlo.multiply %x, %x : tensor<6x1536xf32>
  %s = stablehlo.reduce(%q init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<6x1536xf32>, tensor<f32>) -> tensor<6xf32>
  %r = stablehlo.rsqrt %s : tensor<6xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0]
      : (tensor<6xf32>) -> tensor<6x1536xf32>
  %gb = stablehlo.broadcast_in_dim %g, dims = [1]
      : (tensor<1536xf32>) -> tensor<6x1536xf32>
  %n = stablehlo.multiply %x, %rb : tensor<6x1536xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.multiply %n, %gb : tensor<6x1536xf32>
  return %y, %r : tensor<6x1536xf32>, tensor<6xf32>
}
