// RUN: whale-opt %s -whale-narrow-reductions -split-input-file | FileCheck %s

// What two moments of a backward have added for an update is sent in f16. What
// another backward reads is not, nor a loss, nor what has elements of f64.

// CHECK: whale.reshard %{{.*}}#0 {{.*}} {scale = 6.400000e+01 : f64, wire = f16} : tensor<8xf32>
// CHECK: whale.reshard {{.*}} to #{{[a-z0-9]*}} : tensor<8xf32>
// CHECK: whale.reshard {{.*}} to #{{[a-z0-9]*}} : tensor<8xf64>
// CHECK: whale.reshard {{.*}} to #{{[a-z0-9]*}} : tensor<f32>
#sum = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#sum0 = #whale.placement<[] partial sum 2 on [0, 1]>
#whole0 = #whale.placement<[] replicate 2 on [0, 1]>
module attributes {whale.config = {communication = {fp16 = true, fp16_scale = 64 : i64}}} {
  whale.virtual_device @vd0 [[0, 1]]
  func.func @main(%x: tensor<8xf32> {whale.placement = #sum},
                  %w: tensor<8xf64> {whale.placement = #sum},
                  %l: tensor<f32> {whale.placement = #sum0})
      -> (tensor<8xf32>, tensor<8xf64>, tensor<f32>, tensor<8xf32>) {
    %0:3 = whale.task_graph "a" backward on @vd0 flops 0 bytes 0
        -> tensor<8xf32>, tensor<8xf32>, tensor<8xf64> {
      whale.yield %x, %x, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf64>
    }
    %1 = whale.task_graph "a" forward on @vd0 flops 0 bytes 0 -> tensor<f32> {
      whale.yield %l : tensor<f32>
    }
    %2 = whale.reshard %0#0 from #sum to #whole : tensor<8xf32>
    %3 = whale.reshard %0#1 from #sum to #whole : tensor<8xf32>
    %4 = whale.reshard %0#2 from #sum to #whole : tensor<8xf64>
    %5 = whale.reshard %1 from #sum0 to #whole0 : tensor<f32>
    %6 = whale.task_graph "b" backward on @vd0 flops 0 bytes 0
        -> tensor<8xf32> {
      %8 = stablehlo.tanh %3 {whale.placements = [#whole]} : tensor<8xf32>
      whale.yield %8 : tensor<8xf32>
    }
    %7 = whale.task_graph "a" apply on @vd0 flops 0 bytes 0 -> tensor<8xf32> {
      %8 = stablehlo.tanh %2 {whale.placements = [#whole]} : tensor<8xf32>
      whale.yield %8 : tensor<8xf32>
    }
    return %7, %4, %5, %6 : tensor<8xf32>, tensor<8xf64>, tensor<f32>, tensor<8xf32>
  }
}
