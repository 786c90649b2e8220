// The buffer of each value of a schedule: kernels in place, donated arguments,
// loops, sums in the buffer of an addend, reductions packed side by side.
// Judged by the buffers, the size of the arena and the copies. Without a copy
// that is needed results would be wrong; one too many costs time and memory.

// RUN: whale-opt %s -whale-plan-buffers -split-input-file | FileCheck %s

module {
  module @kernels {
    func.func @k0(%0: memref<4xf32>, %1: memref<4xf32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @k1(%0: memref<4xf32>, %1: memref<f32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // The second kernel works in place; the reshape is another look at it.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: whale.arena_bytes = 64
  // CHECK-SAME: whale.buffers = [{argument = 0 : i64, bytes = 16 : i64},
  // CHECK-SAME: {arena = 0 : i64, bytes = 16 : i64},
  // CHECK-SAME: {bytes = 4 : i64, result = 0 : i64}]
  // CHECK-SAME: whale.result_buffers = array<i64: 2>
  whale.schedule ranks [0] @rank_class_0(%arg0: tensor<4xf32>) -> tensor<f32> {
    // CHECK: whale.launch @k0(%{{.*}}) {whale.out = array<i64: 1>}
    %0 = whale.launch @k0(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: whale.launch @k0(%{{.*}}) {inplace = array<i64: 0>, whale.out = array<i64: 1>}
    %1 = whale.launch @k0(%0) {inplace = array<i64: 0>}
       : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: stablehlo.reshape %{{.*}} {whale.out = array<i64: 1>}
    %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x2xf32>) -> tensor<4xf32>
    // CHECK: whale.launch @k1(%{{.*}}) {whale.out = array<i64: 2>}
    %4 = whale.launch @k1(%3) : (tensor<4xf32>) -> tensor<f32>
    whale.return %4 : tensor<f32>
  }
}

// -----

module {
  module @kernels {
    func.func @update(%0: memref<4xf32>, %1: memref<4xf32>, %2: memref<4xf32>,
                      %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // The first donated argument is read after its update, the second is not.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: -> (tensor<4xf32>, tensor<4xf32> {whale.alias = 1 : i64})
  // CHECK-SAME: whale.result_buffers = array<i64: [[R0:[0-9]+]], 1>
  whale.schedule ranks [0] @rank_class_0(
      %arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32},
      %arg1: tensor<4xf32> {whale.donated, whale.fed_by = 1 : i64})
      -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: whale.out = array<i64: [[R0]]>
    %0 = whale.launch @update(%arg0, %arg1) {inplace = array<i64: 0>}
       : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: whale.out = array<i64: 1>
    %1 = whale.launch @update(%arg1, %arg0) {inplace = array<i64: 0>}
       : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    whale.return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module {
  module @kernels {
    func.func @update(%0: memref<4xf32>, %1: memref<4xf32>,
                      %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // What one class of ranks cannot do in place, no class does.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-NOT: whale.alias
  // CHECK: whale.return {whale.copies = array<i64: 1, 2>}
  // CHECK-NOT: whale.alias
  // CHECK: whale.return {whale.copies = array<i64: 0, 2>}
  whale.schedule ranks [0] @rank_class_0(
      %arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = whale.launch @update(%arg0) {inplace = array<i64: 0>}
       : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %0, %0 : tensor<4xf32>, tensor<4xf32>
  }
  whale.schedule ranks [1] @rank_class_1(
      %arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = whale.launch @update(%arg0) {inplace = array<i64: 0>}
       : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %0, %arg0 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module {
  module @kernels {
    func.func @less(%0: memref<i32>, %1: memref<i32>, %2: memref<i8>,
                    %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @next(%0: memref<i32>, %1: memref<i32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @row(%0: memref<8x4xf32>, %1: memref<i32>, %2: memref<8x4xf32>,
                   %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // The array that the loop fills stays where it is; the counter starts from
  // a constant, which is copied once. The limit is no iteration's to change.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK: %[[N:.*]] = stablehlo.constant {whale.out = array<i64: [[NB:.*]]>} dense<8>
  // CHECK: stablehlo.while
  // CHECK-SAME: whale.copies = array<i64: [[C:[0-9]+]], [[I:[0-9]+]]>,
  // CHECK-SAME: whale.out = array<i64: [[I]], [[NB]], [[Y:[0-9]+]]>
  // CHECK: whale.launch @row{{.*}}whale.out = array<i64: [[Y]]>
  // CHECK: whale.launch @next{{.*}}whale.out = array<i64: [[I]]>
  // CHECK-NOT: whale.copies
  // CHECK: whale.return
  whale.schedule ranks [0] @rank_class_0(
      %arg0: tensor<8x4xf32> {tf.aliasing_output = 0 : i32})
      -> tensor<8x4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %eight = stablehlo.constant dense<8> : tensor<i32>
    %0:3 = stablehlo.while(%i = %zero, %n = %eight, %ys = %arg0)
        : tensor<i32>, tensor<i32>, tensor<8x4xf32>
    cond {
      %p = whale.launch @less(%i, %n)
         : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %1 = whale.launch @row(%ys, %i) {updates = array<i64: 0>}
         : (tensor<8x4xf32>, tensor<i32>) -> tensor<8x4xf32>
      %2 = whale.launch @next(%i) {inplace = array<i64: 0>}
         : (tensor<i32>) -> tensor<i32>
      stablehlo.return %2, %n, %1 : tensor<i32>, tensor<i32>, tensor<8x4xf32>
    }
    whale.return %0#2 : tensor<8x4xf32>
  }
}

// -----

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: whale.return {whale.copies = array<i64: 0, 1, 0, 2>}
whale.schedule ranks [0] @rank_class_0(%arg0: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  whale.return %arg0, %arg0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A product is added in the buffer of its addend; one that is read later is
// copied first.
module {
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0(
      %a: tensor<4x4xf32>, %b: tensor<4x4xf32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    // CHECK: %[[P:.*]] = whale.matmul %arg0, %arg1 {
    // CHECK-SAME: whale.out = array<i64: [[B:[0-9]+]]>
    %0 = whale.matmul %a, %b {batch = array<i64>, m = array<i64: 4, 4, 4>,
        n = array<i64: 4, 1, 1>, k = array<i64: 4, 1, 4>}
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: %[[Q:.*]] = whale.matmul %arg0, %arg0 plus %[[P]]
    // CHECK-NOT: whale.copies
    // CHECK-SAME: whale.out = array<i64: [[B]]>
    %1 = whale.matmul %a, %a plus %0 : tensor<4x4xf32> {batch = array<i64>,
        m = array<i64: 4, 4, 4>, n = array<i64: 4, 1, 1>,
        k = array<i64: 4, 1, 4>}
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: whale.matmul %arg1, %arg1 plus %[[Q]]
    // CHECK-SAME: whale.copies = array<i64: [[B]]
    %2 = whale.matmul %b, %b plus %1 : tensor<4x4xf32> {batch = array<i64>,
        m = array<i64: 4, 4, 4>, n = array<i64: 4, 1, 1>,
        k = array<i64: 4, 1, 4>}
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    whale.return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

#terms = #whale.placement<[24] partial sum 2 on [0, 1]>
#sum = #whale.placement<[24] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @a(memref<4x4xf32>, memref<4x4xf32>, index, index)
    func.func private @b(memref<8xf32>, memref<8xf32>, index, index)
    func.func private @sgd_a(memref<4x4xf32>, memref<4x4xf32>,
                             memref<4x4xf32>, index, index)
    func.func private @sgd_b(memref<8xf32>, memref<8xf32>, memref<8xf32>,
                             index, index)
  }
  // The gradients are written, reduced and read side by side: no copies, and
  // the parameters are updated where they are.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: whale.arena_bytes = 128
  // CHECK-SAME: whale.buffers = [
  // CHECK-SAME: {argument = 0 : i64, bytes = 64 : i64}
  // CHECK-SAME: {argument = 1 : i64, bytes = 32 : i64}
  // CHECK-SAME: {arena = 0 : i64, bytes = 96 : i64}
  // CHECK-SAME: {arena = 0 : i64, bytes = 64 : i64}
  // CHECK-SAME: {arena = 64 : i64, bytes = 32 : i64}]
  // CHECK-NOT: whale.copies
  // CHECK: whale.launch @a({{.*}}whale.out = array<i64: 3>
  // CHECK: whale.launch @b({{.*}}whale.out = array<i64: 4>
  // CHECK: whale.pack {{.*}}whale.out = array<i64: 2>
  // CHECK: whale.all_reduce {{.*}}whale.out = array<i64: 2>
  // CHECK: whale.unpack {{.*}}whale.out = array<i64: 3, 4>
  // CHECK: whale.launch @sgd_a({{.*}}whale.out = array<i64: 0>
  // CHECK: whale.launch @sgd_b({{.*}}whale.out = array<i64: 1>
  whale.schedule ranks [0, 1] @rank_class_0(
      %p: tensor<4x4xf32> {whale.donated},
      %q: tensor<8xf32> {whale.donated})
      -> (tensor<4x4xf32>, tensor<8xf32>) {
    %0 = whale.launch @a(%p) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = whale.launch @b(%q) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = whale.pack %0, %1 : tensor<4x4xf32>, tensor<8xf32> to tensor<24xf32>
    %3 = whale.all_reduce %2 channel 0 from #terms to #sum
        : (tensor<24xf32>) -> tensor<24xf32>
    %4:2 = whale.unpack %3
         : tensor<24xf32> to tensor<4x4xf32>, tensor<8xf32>
    %5 = whale.launch @sgd_a(%p, %4#0) {inplace = array<i64: 0>}
       : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %6 = whale.launch @sgd_b(%q, %4#1) {inplace = array<i64: 0>}
       : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    whale.return %5, %6 : tensor<4x4xf32>, tensor<8xf32>
  }
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#sum = #whale.placement<[8] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @a(memref<4xf32>, memref<4xf32>, index, index)
  }
  // An argument is copied in, a result out.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: whale.buffers = [
  // CHECK-SAME: {argument = 0 : i64, bytes = 16 : i64}
  // CHECK-SAME: {arena = 0 : i64, bytes = 32 : i64}
  // CHECK-SAME: {arena = 16 : i64, bytes = 16 : i64}
  // CHECK-SAME: {bytes = 16 : i64, result = 0 : i64}
  // CHECK-SAME: {arena = 64 : i64, bytes = 16 : i64}
  // CHECK-SAME: {arena = 0 : i64, bytes = 16 : i64}]
  // CHECK: whale.launch @a({{.*}}whale.out = array<i64: 2>
  // CHECK: whale.pack %arg0, %{{.*}} {whale.copies = array<i64: 0, 5>,
  // CHECK: whale.unpack %{{.*}} {whale.copies = array<i64: 5, 3>,
  // CHECK-SAME: whale.out = array<i64: 3, 2>}
  whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = whale.launch @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = whale.pack %x, %0 : tensor<4xf32>, tensor<4xf32> to tensor<8xf32>
    %2 = whale.all_reduce %1 channel 0 from #terms to #sum
        : (tensor<8xf32>) -> tensor<8xf32>
    %3:2 = whale.unpack %2 : tensor<8xf32> to tensor<4xf32>, tensor<4xf32>
    %4 = whale.launch @a(%3#1) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %3#0 : tensor<4xf32>
  }
}

// -----

// A rank without elements may take part in a reduction without an operand:
// there is nothing to reduce in place.

#terms = #whale.placement<[2, 0] partial sum 2 on [0, 1]>
#sum = #whale.placement<[2, 0] replicate 2 on [0, 1]>
module {
  module @kernels {
  }
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK: whale.all_reduce channel 0
  whale.schedule ranks [0, 1] @rank_class_0() -> tensor<2x0xf32> {
    %0 = whale.all_reduce channel 0 from #terms to #sum : () -> tensor<2x0xf32>
    whale.return %0 : tensor<2x0xf32>
  }
}
