// RUN: whale-opt %s --whale-load-cluster=ranks=4 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// A TaskGraph that asks for two of four devices is repeated: the mini-batch is
// split over the repetitions, the parameter inside each of them, and its
// gradient summed between the devices that store the same part.

// CHECK-DAG: #[[W:.*]] = #whale.placement<[4, 16] replicate 2 split 1 (8, 8) on [0, 1, 2, 3]>
// CHECK-DAG: #[[G:.*]] = #whale.placement<[4, 16] partial sum 2 split 1 (8, 8) on [0, 1, 2, 3]>
// CHECK-LABEL: whale.schedule ranks [0, 1, 2, 3] @rank_class_0
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK-SAME: whale.placement = #[[W]]}
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<4x4xf32>
// CHECK: stablehlo.dot_general
// CHECK: %[[TERM:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[TERM]] channel 0 from #[[G]] to #[[W]]
// CHECK: stablehlo.subtract %[[P]], %[[SUM]]
// CHECK-NOT: func.func
func.func @main(%w: tensor<4x16xf32> {whale.fed_by = 0 : i64},
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x16xf32>, tensor<8x16xf32>) {
  %h = whale.task_graph "head" forward strategy #whale.split<devices = 2>
      -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    whale.yield %0 : tensor<8x16xf32>
  }
  %g = whale.task_graph "head" backward strategy #whale.split<devices = 2>
      -> tensor<4x16xf32> {
    %0 = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
        : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    whale.yield %0 : tensor<4x16xf32>
  }
  %u = whale.task_graph "head" apply strategy #whale.split<devices = 2>
      -> tensor<4x16xf32> {
    %0 = stablehlo.subtract %w, %g : tensor<4x16xf32>
    whale.yield %0 : tensor<4x16xf32>
  }
  return %u, %h : tensor<4x16xf32>, tensor<8x16xf32>
}
