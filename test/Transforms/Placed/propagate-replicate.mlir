// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards | FileCheck %s
// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s --check-prefix=PART

// A data-parallel step: the batch is split, the gradient is a partial sum that
// is reduced once, at the boundary to the optimizer.

// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[4, 16] replicate 2 on [0, 1]>
// CHECK-DAG: #[[PARTIAL:.*]] = #whale.placement<[4, 16] partial sum 2 on [0, 1]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<4x16xf32> {whale.fed_by = 0 : i64, whale.placement = #[[WHOLE]]}
// CHECK-SAME: %arg1: tensor<8x4xf32> {whale.batch_dim = 0 : i64, whale.placement = #whale.placement<[8, 4] split 0 (4, 4) on [0, 1]>}
// CHECK: whale.task_graph "default" backward
// CHECK: stablehlo.dot_general
// CHECK-SAME: whale.placements = [#[[PARTIAL]]]
// CHECK: whale.reshard %{{.*}} from #[[PARTIAL]] to #[[WHOLE]]
// CHECK-NOT: whale.reshard
// CHECK: whale.task_graph "default" apply

// PART-LABEL: whale.schedule ranks [0, 1] @rank_class_0
// PART-SAME: %arg0: tensor<4x16xf32>
// PART-SAME: %arg1: tensor<4x4xf32>
// PART: stablehlo.dot_general {{.*}} -> tensor<4x16xf32>
// PART: stablehlo.dot_general {{.*}} -> tensor<4x16xf32>
// PART-COUNT-1: whale.all_reduce
// PART-NOT: whale.all_reduce
// PART: return
func.func @main(%w: tensor<4x16xf32> {whale.fed_by = 0 : i64},
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> tensor<4x16xf32> {
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16xf32>
    whale.yield %1 : tensor<8x16xf32>
  }
  %g = whale.task_graph "default" backward strategy #whale.replicate
      -> tensor<4x16xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
        : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    whale.yield %0 : tensor<4x16xf32>
  }
  %w2 = whale.task_graph "default" apply strategy #whale.replicate
      -> tensor<4x16xf32> {
    %0 = stablehlo.multiply %g, %g : tensor<4x16xf32>
    %1 = stablehlo.add %w, %0 : tensor<4x16xf32>
    whale.yield %1 : tensor<4x16xf32>
  }
  return %w2 : tensor<4x16xf32>
}
