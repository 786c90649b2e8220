// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// Branches end in one layout: samples stay where they are, a sum that only one
// branch has terms of is reduced in it.

// CHECK-LABEL: func.func @rank_class_0
// CHECK: %[[H:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x16xf32>
// CHECK: "stablehlo.case"
// CHECK: %[[T:.*]] = stablehlo.tanh %[[H]] : tensor<4x16xf32>
// CHECK: %[[TERM:.*]] = stablehlo.dot_general
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[TERM]]
// CHECK: stablehlo.return %[[T]], %[[SUM]]
// CHECK: stablehlo.return %[[H]], %arg0
func.func @main(%w: tensor<4x16xf32>,
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> (tensor<8x16xf32>, tensor<4x16xf32>) {
  %g:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x16xf32>, tensor<4x16xf32> {
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %0:2 = "stablehlo.case"(%n) ({
      %1 = stablehlo.tanh %h : tensor<8x16xf32>
      %2 = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      stablehlo.return %1, %2 : tensor<8x16xf32>, tensor<4x16xf32>
    }, {
      stablehlo.return %h, %w : tensor<8x16xf32>, tensor<4x16xf32>
    }) : (tensor<i32>) -> (tensor<8x16xf32>, tensor<4x16xf32>)
    whale.yield %0#0, %0#1 : tensor<8x16xf32>, tensor<4x16xf32>
  }
  return %g#0, %g#1 : tensor<8x16xf32>, tensor<4x16xf32>
}
