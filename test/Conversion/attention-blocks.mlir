// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80}))' 2>/dev/null | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80}))' 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-lower-library-ops{target=sm_80}),whale-outline-kernels{target=sm_80}, \
// RUN:   whale-check-threads)" 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=KERNEL

// The scores of a tile are all that there is of them.

// REMARK: remark: attention is left to the library: tiles of heads
// CHECK-LABEL: func.func @forward
// CHECK-NOT: whale.library_call
// CHECK: whale.kernel
// CHECK-NOT: tensor<2x4x128x128
// CHECK-LABEL: func.func @large
// CHECK: whale.library_call "attention"
// CHECK-LABEL: func.func @long
// CHECK-NOT: whale.library_call
// CHECK: whale.kernel

// Queries, keys and values go through shared memory; sums of a row are those of
// 16 threads of a warp; nothing is added by atomics.
// KERNEL-LABEL: func.func @k0
// KERNEL-SAME: whale.threads = 256
// KERNEL-COUNT-4: memref.alloca() : memref<{{.*}}#gpu.address_space<workgroup>>
// KERNEL: gpu.barrier
// KERNEL: math.fma
// KERNEL: gpu.shuffle xor
// KERNEL: math.exp
// KERNEL: math.fma
// KERNEL-NOT: atomic
// KERNEL: return
func.func @forward(%q: tensor<2x128x4x64xf32>, %k: tensor<2x128x4x64xf32>,
                   %v: tensor<2x128x4x64xf32>) -> tensor<2x128x4x64xf32> {
  %0 = whale.attention query "bqhd" %q key "bkhd" %k value "bkhe" %v
      to "bqhe" scale 0.125 {causal = 0 : i64}
      : (tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>,
         tensor<2x128x4x64xf32>) -> tensor<2x128x4x64xf32>
  return %0 : tensor<2x128x4x64xf32>
}

func.func @large(%q: tensor<8x1024xf32>, %k: tensor<8x1024xf32>,
                 %v: tensor<8x1024xf32>) -> tensor<8x1024xf32> {
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v
      to "qe" scale 1.0 : (tensor<8x1024xf32>, tensor<8x1024xf32>,
                           tensor<8x1024xf32>) -> tensor<8x1024xf32>
  return %0 : tensor<8x1024xf32>
}

func.func @long(%q: tensor<32000x128xf32>, %k: tensor<32000x128xf32>,
                %v: tensor<32000x128xf32>) -> tensor<32000x128xf32> {
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v
      to "qe" scale 1.0 {causal = 0 : i64}
      : (tensor<32000x128xf32>, tensor<32000x128xf32>,
         tensor<32000x128xf32>) -> tensor<32000x128xf32>
  return %0 : tensor<32000x128xf32>
}
