// RUN: whale-opt %s -whale-partition -whale-verify-partition | FileCheck %s

// An order that was written by hand: the second stage computes both forwards
// before the first backward, which no schedule but gpipe does.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[X0:.*]] = func.call @[[F0:.*]](%arg0)
// CHECK: whale.send_recv %[[X0]] channel 0
// CHECK: %[[X1:.*]] = func.call @[[F0]](%arg1)
// CHECK: whale.send_recv %[[X1]] channel 0
// CHECK: %[[G0:.*]] = whale.send_recv channel 1
// CHECK: func.call @[[B0:.*]](%[[G0]], %arg0,
// CHECK: %[[G1:.*]] = whale.send_recv channel 1
// CHECK: func.call @[[B0]](%[[G1]], %arg1,
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: %[[R0:.*]] = whale.send_recv channel 0
// CHECK: %[[Y0:.*]] = func.call @[[F1:.*]](%[[R0]])
// CHECK: %[[R1:.*]] = whale.send_recv channel 0
// CHECK: %[[Y1:.*]] = func.call @[[F1]](%[[R1]])
// CHECK: %[[D0:.*]] = func.call @[[B1:.*]](%[[Y0]])
// CHECK: whale.send_recv %[[D0]] channel 1
// CHECK: %[[D1:.*]] = func.call @[[B1]](%[[Y1]])
// CHECK: whale.send_recv %[[D1]] channel 1
#first = #whale.placement<[4] on [0]>
#second = #whale.placement<[4] on [1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32> {whale.placement = #first},
                  %b: tensor<4xf32> {whale.placement = #first})
      -> (tensor<4xf32> {whale.placement = #first}) {
    %0 = whale.micro_batches [0, 0](%a, %b) reduce [#whale.reduction<sum>]
        order [
          #whale.order<[0]: forward 0, forward 1, backward 0, backward 1>,
          #whale.order<[1]: forward 0, forward 1, backward 0, backward 1>]
        attributes {whale.placements = [#first]}
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.tanh %x {whale.placements = [#first]} : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %2 = whale.reshard %1 from #first to #second : tensor<4xf32>
      %3 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %7 = stablehlo.tanh %2 {whale.placements = [#second]} : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %4 = whale.task_graph "two" backward on @vd1 -> tensor<4xf32> {
        %7 = stablehlo.sine %3 {whale.placements = [#second]} : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %5 = whale.reshard %4 from #second to #first : tensor<4xf32>
      %6 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.multiply %5, %x {whale.placements = [#first]}
            : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      whale.yield %6 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}
