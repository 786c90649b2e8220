// RUN: whale-opt %s -whale-plan-buffers -split-input-file | FileCheck %s

// The segment has a local, which has one place in the arena for both calls. The
// second call reads its operand before it writes its first result there.
module {
  module @kernels {
    func.func private @k0(memref<32xf32>, memref<32xf32>, index, index)
    func.func private @k1(memref<32xf32>, memref<32xf32>, memref<32xf32>, index,
                          index)
  }

  // CHECK-LABEL: func.func private @segment_0
  // CHECK-SAME: whale.buffers = [{bytes = 128 : i64, operand = 0 : i64},
  // CHECK-SAME: {bytes = 4 : i64, constant = 0 : i64},
  // CHECK-SAME: {bytes = 128 : i64, local = 0 : i64},
  // CHECK-SAME: {bytes = 128 : i64, result = 0 : i64},
  // CHECK-SAME: {bytes = 128 : i64, result = 1 : i64}]
  // CHECK-SAME: whale.result_buffers = array<i64: 3, 4>
  func.func private @segment_0(%x: tensor<32xf32>)
      -> (tensor<32xf32>, tensor<32xf32>) attributes {whale.segment} {
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    // CHECK: whale.launch @k0(%{{.*}}) {whale.out = array<i64: 2>}
    %0 = whale.launch @k0(%x) : (tensor<32xf32>) -> tensor<32xf32>
    // CHECK: whale.launch @k0(%{{.*}}) {whale.out = array<i64: 3>}
    %1 = whale.launch @k0(%0) : (tensor<32xf32>) -> tensor<32xf32>
    // CHECK: whale.launch @k1(%{{.*}}) {whale.out = array<i64: 4>}
    %2 = whale.launch @k1(%0, %1)
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    return %1, %2 : tensor<32xf32>, tensor<32xf32>
  }

  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: whale.arena_bytes = 384
  // CHECK-SAME: whale.buffers = [{argument = 0 : i64, bytes = 128 : i64},
  // CHECK-SAME: {arena = 128 : i64, bytes = 128 : i64},
  // CHECK-SAME: {arena = 256 : i64, bytes = 128 : i64},
  // CHECK-SAME: {bytes = 128 : i64, result = 0 : i64}]
  // CHECK-SAME: whale.locals = {segment_0 = [array<i64: 0>]}
  whale.schedule ranks [0] @rank_class_0(%x: tensor<32xf32>) -> tensor<32xf32> {
    // CHECK: func.call @segment_0(%{{.*}}) {whale.out = array<i64: 1, 2>}
    %0:2 = func.call @segment_0(%x)
         : (tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
    // CHECK: func.call @segment_0(%{{.*}}) {whale.out = array<i64: 1, 2>}
    %1:2 = func.call @segment_0(%0#0)
         : (tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
    %2 = whale.launch @k1(%1#0, %1#1)
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    whale.return %2 : tensor<32xf32>
  }
}

// -----

// A sum over three micro-batches stays where it is; it begins as a constant,
// which is copied.
module {
  module @kernels {
    func.func private @add(memref<32xf32>, memref<32xf32>, memref<32xf32>,
                           index, index)
  }

  // CHECK-LABEL: func.func private @segment_0
  // CHECK-SAME: whale.buffers = [{bytes = 128 : i64, operand = 0 : i64},
  // CHECK-SAME: {bytes = 128 : i64, operand = 1 : i64}]
  // CHECK-SAME: whale.result_buffers = array<i64: 0>
  // CHECK: whale.out = array<i64: 0>
  func.func private @segment_0(%sum: tensor<32xf32> {whale.last_use},
                               %x: tensor<32xf32>) -> tensor<32xf32>
      attributes {whale.segment} {
    %0 = whale.launch @add(%sum, %x) {inplace = array<i64: 0>}
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }

  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: whale.arena_bytes = 0
  // CHECK-SAME: whale.buffers = [{argument = 0 : i64, bytes = 384 : i64},
  // CHECK-SAME: {bytes = 128 : i64, constant = 0 : i64},
  // CHECK-SAME: {argument = 0 : i64, bytes = 128 : i64, offset = 0 : i64},
  // CHECK-SAME: {bytes = 128 : i64, result = 0 : i64},
  // CHECK-SAME: {argument = 0 : i64, bytes = 128 : i64, offset = 128 : i64},
  // CHECK-SAME: {argument = 0 : i64, bytes = 128 : i64, offset = 256 : i64}]
  // CHECK-SAME: whale.locals = {segment_0 = [array<i64>]}
  // CHECK-SAME: whale.result_buffers = array<i64: 3>
  whale.schedule ranks [0] @rank_class_0(
      %x: tensor<3x32xf32>) -> tensor<32xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<32xf32>
    // CHECK: whale.view %{{.*}} offset 0 {whale.out = array<i64: 2>}
    %x0 = whale.view %x offset 0 : tensor<3x32xf32> -> tensor<32xf32>
    // CHECK: func.call @segment_0(%{{.*}}) {whale.copies = array<i64: 1, 3>, whale.out = array<i64: 3>}
    %0 = func.call @segment_0(%zero, %x0)
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    // CHECK: whale.view %{{.*}} offset 32 {whale.out = array<i64: 4>}
    %x1 = whale.view %x offset 32 : tensor<3x32xf32> -> tensor<32xf32>
    // CHECK: func.call @segment_0(%{{.*}}) {whale.out = array<i64: 3>}
    %1 = func.call @segment_0(%0, %x1)
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    %x2 = whale.view %x offset 64 : tensor<3x32xf32> -> tensor<32xf32>
    // CHECK: func.call @segment_0(%{{.*}}) {whale.out = array<i64: 3>}
    %2 = func.call @segment_0(%1, %x2)
       : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    whale.return %2 : tensor<32xf32>
  }
}

// -----

// The donated argument is not written while parts of it are read. A part that
// is returned is copied.
module {
  module @kernels {
    func.func private @k(memref<2x8xf32>, memref<2x8xf32>, index, index)
  }
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-NOT: whale.alias
  // CHECK: whale.return {whale.copies = array<i64: 2, 4>}
  whale.schedule ranks [0] @rank_class_0(
      %x: tensor<2x8xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<2x8xf32>, tensor<4xf32>) {
    %flat = stablehlo.reshape %x : (tensor<2x8xf32>) -> tensor<16xf32>
    %row = whale.view %flat offset 8 : tensor<16xf32> -> tensor<8xf32>
    %part = whale.view %row offset 4 : tensor<8xf32> -> tensor<4xf32>
    %0 = whale.launch @k(%x) {inplace = array<i64: 0>}
       : (tensor<2x8xf32>) -> tensor<2x8xf32>
    whale.return %0, %part : tensor<2x8xf32>, tensor<4xf32>
  }
}
