// RUN: whale-opt %s -whale-order-instructions | FileCheck %s
// RUN: whale-opt %s -whale-order-instructions -whale-plan-buffers | FileCheck %s --check-prefix=BUFFERS

// What is computed again stays behind the gradient that it is for, although
// less would be alive if it came before, which frees what it reads. A
// whale.after is no instruction: its result is where its operand is.

// CHECK-LABEL: whale.schedule
// CHECK: %[[KEPT:.*]] = whale.launch @wide(%arg0)
// CHECK: %[[GRAD:.*]] = whale.launch @wide(%arg1)
// CHECK: %[[AFTER:.*]] = whale.after %[[KEPT]] behind %[[GRAD]]
// CHECK: whale.launch @narrow(%[[AFTER]])
// BUFFERS: whale.launch @wide(%arg0) {whale.out = array<i64: [[OUT:.*]]>}
// BUFFERS: whale.after {{.*}} {whale.out = array<i64: [[OUT]]>}
module {
  module @kernels {
    func.func private @wide(memref<64xf32>, memref<64xf32>, index, index)
        attributes {whale.extent = 64 : i64}
    func.func private @narrow(memref<64xf32>, memref<1xf32>, index, index)
        attributes {whale.extent = 1 : i64}
    func.func private @both(memref<64xf32>, memref<1xf32>, memref<64xf32>,
                            index, index)
        attributes {whale.extent = 64 : i64}
  }
  whale.schedule ranks [0] @rank_class_0(%x: tensor<64xf32>, %y: tensor<64xf32>)
      -> tensor<64xf32> {
    %kept = whale.launch @wide(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %g = whale.launch @wide(%y) : (tensor<64xf32>) -> tensor<64xf32>
    %k = whale.after %kept behind %g : tensor<64xf32>, tensor<64xf32>
    %a = whale.launch @narrow(%k) : (tensor<64xf32>) -> tensor<1xf32>
    %r = whale.launch @both(%g, %a)
        : (tensor<64xf32>, tensor<1xf32>) -> tensor<64xf32>
    whale.return %r : tensor<64xf32>
  }
}
