// RUN: whale-opt %s -mlir-disable-threading -whale-partition \
// RUN:   -whale-verify-partition | FileCheck %s

// A rank without samples has a zero for its part of the sum, where the other
// rank has what it has computed. What they compute from it is equal in all its
// sizes, but they don't share it.

// CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
// CHECK-DAG: %[[NONE:.*]] = stablehlo.constant dense<-0.000000e+00>
// CHECK: %[[S0:.*]] = func.call @[[EMPTY:.*]](%[[NONE]])
// CHECK: %[[S1:.*]] = func.call @[[EMPTY]](%[[S0]])
// CHECK: whale.all_reduce %[[S1]]
// CHECK-LABEL: whale.schedule ranks [1] @rank_class_1
// CHECK-DAG: %[[V0:.*]] = func.call @[[FORWARD:.*]](%arg0)
// CHECK-DAG: %[[V1:.*]] = func.call @[[FORWARD]](%arg1)
// CHECK: %[[S0:.*]] = func.call @[[BACKWARD:.*]](%[[V0]], %
// CHECK: %[[S1:.*]] = func.call @[[BACKWARD]](%[[V1]], %[[S0]])
// CHECK: whale.all_reduce %[[S1]]
#rows = #whale.placement<[2, 4] split 0 (0, 2) on [0, 1]>
#part = #whale.placement<[4] partial sum 2 on [0, 1]>
#whole = #whale.placement<[4] replicate 2 on [0, 1]>
#scalar = #whale.placement<[] replicate 2 on [0, 1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0, 1]]
  func.func @main(%a: tensor<2x4xf32> {whale.placement = #rows},
                  %b: tensor<2x4xf32> {whale.placement = #rows})
      -> (tensor<4xf32> {whale.placement = #whole}) {
    %0 = whale.micro_batches [0, 0](%a, %b) reduce [#whale.reduction<sum>]
        order [
          #whale.order<[0, 1]: forward 0, forward 1, backward 0, backward 1>]
        attributes {whale.placements = [#part]}
        : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<2x4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %zero = stablehlo.constant {whale.placements = [#scalar]}
            dense<0.0> : tensor<f32>
        %3 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
            across dimensions = [0] {whale.placements = [#part]}
            : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
        whale.yield %3 : tensor<4xf32>
      }
      %2 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %3 = stablehlo.negate %1 {whale.placements = [#part]} : tensor<4xf32>
        whale.yield %3 : tensor<4xf32>
      }
      whale.yield %2 : tensor<4xf32>
    }
    %1 = whale.reshard %0 from #part to #whole : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
