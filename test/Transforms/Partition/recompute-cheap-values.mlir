// RUN: whale-opt %s --split-input-file -whale-recompute-cheap-values | FileCheck %s

// What the task graph in the loop reads is made there again, from the row that
// is made before; a product of it is not cheap, and what a product reads is no
// loop's.

#row = #whale.placement<[4] on [0]>
#whole = #whale.placement<[64, 4] on [0]>
#square = #whale.placement<[4, 4] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: %[[BEFORE:.*]]:4 = whale.task_graph "before"
// CHECK: %[[ROW:.*]] = stablehlo.reverse
// CHECK: %[[WIDE:.*]] = stablehlo.broadcast_in_dim %[[ROW]]
// CHECK: whale.yield %[[WIDE]], %{{.*}}, %{{.*}}, %[[ROW]]
// CHECK: whale.task_graph "in"
// CHECK: %[[AGAIN:.*]] = stablehlo.broadcast_in_dim %[[BEFORE]]#3
// CHECK: %[[SUM:.*]] = stablehlo.add %[[AGAIN]]
// CHECK: %[[EXP:.*]] = stablehlo.add %[[SUM]], %[[BEFORE]]#1
// CHECK: stablehlo.dot_general %[[EXP]], %[[BEFORE]]#2
whale.virtual_device @vd0 [[0]]
func.func @main(%a: tensor<4xf32> {whale.placement = #row},
                %b: tensor<4xf32> {whale.placement = #row},
                %x: tensor<64x4xf32> {whale.placement = #whole})
    -> tensor<64x4xf32> {
  %m:3 = whale.task_graph "before" forward on @vd0
      -> tensor<64x4xf32>, tensor<64x4xf32>, tensor<4x4xf32> {
    %t = stablehlo.reverse %a, dims = [0] {whale.placements = [#row]}
        : tensor<4xf32>
    %0 = stablehlo.broadcast_in_dim %t, dims = [1]
        {whale.placements = [#whole]} : (tensor<4xf32>) -> tensor<64x4xf32>
    %1 = stablehlo.exponential %x {whale.placements = [#whole]}
        : tensor<64x4xf32>
    %2 = stablehlo.broadcast_in_dim %a, dims = [1]
        {whale.placements = [#square]} : (tensor<4xf32>) -> tensor<4x4xf32>
    whale.yield %0, %1, %2 : tensor<64x4xf32>, tensor<64x4xf32>, tensor<4x4xf32>
  }
  %y = whale.micro_batches [0, 0] (%a, %b) reduce [#whale.reduction<sum>]
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<64x4xf32> {
  ^bb0(%s: tensor<4xf32>):
    %0 = whale.task_graph "in" forward on @vd0 -> tensor<64x4xf32> {
      %1 = stablehlo.add %m#0, %x {whale.placements = [#whole]}
          : tensor<64x4xf32>
      %2 = stablehlo.add %1, %m#1 {whale.placements = [#whole]}
          : tensor<64x4xf32>
      %3 = stablehlo.dot_general %2, %m#2, contracting_dims = [1] x [0]
          {whale.placements = [#whole]}
          : (tensor<64x4xf32>, tensor<4x4xf32>) -> tensor<64x4xf32>
      whale.yield %3 : tensor<64x4xf32>
    }
    whale.yield %0 : tensor<64x4xf32>
  }
  return %y : tensor<64x4xf32>
}

// -----

// What a task graph computes again is copied as it was before that one computes
// something again itself.

#row = #whale.placement<[4] on [0]>
#whole = #whale.placement<[64, 4] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.*]] = whale.task_graph "first"
// CHECK: stablehlo.broadcast_in_dim %arg2
// CHECK: whale.task_graph "second"
// CHECK: %[[AGAIN:.*]] = stablehlo.broadcast_in_dim %arg2
// CHECK: stablehlo.negate %[[AGAIN]]
// CHECK: whale.task_graph "third"
// CHECK: %[[NEGATED:.*]] = stablehlo.negate %[[FIRST]]
// CHECK: stablehlo.add %[[NEGATED]], %arg1
whale.virtual_device @vd0 [[0]]
func.func @main(%a: tensor<4xf32> {whale.placement = #row},
                %x: tensor<64x4xf32> {whale.placement = #whole})
    -> tensor<64x4xf32> {
  %y = whale.micro_batches [0, 0] (%a, %a) reduce [#whale.reduction<sum>]
      order [#whale.order<[0]: forward 0, forward 1>]
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<64x4xf32> {
  ^bb0(%s: tensor<4xf32>):
    %0 = whale.task_graph "first" forward on @vd0 -> tensor<64x4xf32> {
      %1 = stablehlo.broadcast_in_dim %s, dims = [1]
          {whale.placements = [#whole]} : (tensor<4xf32>) -> tensor<64x4xf32>
      whale.yield %1 : tensor<64x4xf32>
    }
    %2 = whale.task_graph "second" forward on @vd0 -> tensor<64x4xf32> {
      %3 = stablehlo.negate %0 {whale.placements = [#whole]}
          : tensor<64x4xf32>
      whale.yield %3 : tensor<64x4xf32>
    }
    %4 = whale.task_graph "third" forward on @vd0 -> tensor<64x4xf32> {
      %5 = stablehlo.add %2, %x {whale.placements = [#whole]}
          : tensor<64x4xf32>
      whale.yield %5 : tensor<64x4xf32>
    }
    whale.yield %4 : tensor<64x4xf32>
  }
  return %y : tensor<64x4xf32>
}
