// RUN: whale-opt %s -whale-plan-buffers | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: whale-opt %s -whale-plan-buffers=alignment=256 | FileCheck %s --check-prefixes=CHECK,WIDE

module @kernels {
  func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  func.func private @k1(memref<4xf32>, memref<4xf32>, memref<f32>, index, index)
}

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// NARROW-SAME: whale.arena_bytes = 128
// NARROW-SAME: {arena = 0 : i64, bytes = 16 : i64}, {arena = 64 : i64, bytes = 16 : i64}
// WIDE-SAME: whale.arena_bytes = 512
// WIDE-SAME: {arena = 0 : i64, bytes = 16 : i64}, {arena = 256 : i64, bytes = 16 : i64}
whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = whale.launch @k1(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  whale.return %2 : tensor<f32>
}
