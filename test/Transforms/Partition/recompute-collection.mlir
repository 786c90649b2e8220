// RUN: whale-opt %s --split-input-file -whale-recompute-forward -verify-diagnostics | FileCheck %s

// All but what is named is computed again; without the option names mean
// nothing.

#x = #whale.placement<[8] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]]:2 = whale.task_graph "all" forward
// CHECK: %[[NAMED:.*]] = stablehlo.tanh
// CHECK-NOT: optimization_barrier
// CHECK: whale.yield %{{.*}}, %[[NAMED]]
// CHECK: %[[GRAD:.*]] = whale.task_graph "head" backward
// CHECK: whale.task_graph "all" backward
// CHECK: %[[KEPT:.*]] = whale.after %[[F]]#1 behind %[[GRAD]]
// CHECK: %[[SINE:.*]] = stablehlo.sine %[[KEPT]]
// CHECK: stablehlo.multiply %[[GRAD]], %[[SINE]]
module attributes {
    whale.config = {gradient_checkpoint = {type = "collection"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%x: tensor<8xf32> {whale.placement = #x},
                  %g: tensor<8xf32> {whale.placement = #x}) -> tensor<8xf32> {
    %f = whale.task_graph "all" forward on @vd0 -> tensor<8xf32> {
      // expected-remark@+1 {{computes 1 operations again, element by element}}
      %0 = stablehlo.tanh %x {whale.placements = [#x]} : tensor<8xf32>
      %1 = stablehlo.optimization_barrier
          {whale.checkpoint_name = "kept", whale.placements = [#x]} %0
          : tensor<8xf32>
      %2 = stablehlo.sine %1 {whale.placements = [#x]} : tensor<8xf32>
      whale.yield %2 : tensor<8xf32>
    }
    %h = whale.task_graph "head" backward on @vd0 -> tensor<8xf32> {
      %3 = stablehlo.negate %g {whale.placements = [#x]} : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    %b = whale.task_graph "all" backward on @vd0 -> tensor<8xf32> {
      %4 = stablehlo.multiply %h, %f {whale.placements = [#x]} : tensor<8xf32>
      whale.yield %4 : tensor<8xf32>
    }
    return %b : tensor<8xf32>
  }
}

// -----

module attributes {
    whale.config = {gradient_checkpoint = {type = "collection"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  // expected-error@+1 {{gradient_checkpoint.type: 'collection' keeps the values that jax.ad_checkpoint.checkpoint_name names, and the step names none}}
  func.func @main(%x: tensor<8xf32>
                  {whale.placement = #whale.placement<[8] on [0]>})
      -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}
