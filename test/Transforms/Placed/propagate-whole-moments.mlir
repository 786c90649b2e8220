// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// Micro-batches of what has no dimension of samples leave no shares to rotate.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: tensor<2x8xf32>
// CHECK: %[[ALL:.*]] = whale.all_gather
// CHECK: stablehlo.slice %[[ALL]] [0:8, 0:2]
// CHECK: stablehlo.slice %[[ALL]] [0:8, 2:4]
// CHECK-COUNT-2: func.call @segment_0
// CHECK: func.func private @segment_0
// CHECK: stablehlo.tanh
// CHECK: stablehlo.add
func.func @main(%x: tensor<4x8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x2xf32> {
  %p:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x2xf32>, tensor<8x2xf32> {
    %t = stablehlo.transpose %x, dims = [1, 0]
        : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %0 = stablehlo.slice %t [0:8, 0:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.slice %t [0:8, 2:4] : (tensor<8x4xf32>) -> tensor<8x2xf32>
    whale.yield %0, %1 : tensor<8x2xf32>, tensor<8x2xf32>
  }
  %r = whale.micro_batches [0, 0](%p#0, %p#1)
      reduce [#whale.reduction<sum>] batch_dims [-1]
      : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32> {
  ^bb0(%a: tensor<8x2xf32>):
    %f = whale.task_graph "default" forward strategy #whale.replicate
        -> tensor<8x2xf32> {
      %0 = stablehlo.tanh %a : tensor<8x2xf32>
      whale.yield %0 : tensor<8x2xf32>
    }
    whale.yield %f : tensor<8x2xf32>
  }
  return %r : tensor<8x2xf32>
}
