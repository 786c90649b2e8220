// RUN: echo '{"kinds": {"c": {"flops": {"f32": 1e9}, "memory_bytes": 1e9, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "c", "count": 2}]}]}' > %t.json
// RUN: whale-opt %s --whale-load-cluster=file=%t.json --whale-micro-batch \
// RUN:   --whale-form-task-graphs --whale-assign-devices --whale-propagate \
// RUN:   --whale-insert-reshards --whale-verify-placements --whale-partition \
// RUN:   --whale-verify-partition | FileCheck %s

// Four micro-batches call two segments: the first has no sum to add to. The sum
// is exchanged once, behind them.

// CHECK-LABEL: func.func @rank_class_0
// CHECK-NOT: dot_general
// CHECK: %[[X0:.*]] = stablehlo.slice %arg1 [0:2, 0:8]
// CHECK: %[[S0:.*]] = call @segment_0(%[[X0]], %arg0)
// CHECK: %[[X1:.*]] = stablehlo.slice %arg1 [2:4, 0:8]
// CHECK: %[[S1:.*]] = call @segment_1(%[[X1]], %arg0, %[[S0]])
// CHECK: %[[S2:.*]] = call @segment_1(%{{.*}}, %arg0, %[[S1]])
// CHECK: %[[S3:.*]] = call @segment_1(%{{.*}}, %arg0, %[[S2]])
// CHECK: whale.all_reduce %[[S3]]
// CHECK: func.func private @segment_0(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<f32>
// CHECK-SAME: whale.segment
// CHECK: dot_general
// CHECK-NOT: stablehlo.add %
// CHECK: func.func private @segment_1(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<f32> {whale.last_use})
// CHECK: dot_general
// CHECK: stablehlo.add %arg2
// CHECK-NOT: @segment_2
module attributes {whale.config = {num_micro_batch = 4 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%w: tensor<8x8xf32>,
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0, 1] {whale.strategy = #whale.replicate}
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
