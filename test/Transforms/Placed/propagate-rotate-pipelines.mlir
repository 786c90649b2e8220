// RUN: echo '{"kinds": {"c": {"flops": {"f32": 1e9}, "memory_bytes": 1e9, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "c", "count": 2}, {"kind": "c", "count": 2, "slowdown": 3}]}]}' > %t.json
// RUN: whale-opt %s --whale-load-cluster=file=%t.json --whale-micro-batch \
// RUN:   --whale-form-task-graphs --whale-assign-devices --whale-propagate 2>&1 \
// RUN:   | FileCheck %s

// Two pipelines of two stages, the second three times slower, and micro-batches
// of two samples: it takes one sample of every other micro-batch, and has no
// part in those between. Both stages take the same ones.

// CHECK-DAG: load balance of 'front': device 0: 12 of 16 samples (2 1 2 1 2 1 2 1), {{.*}}; device 2: 4 of 16 samples (0 1 0 1 0 1 0 1)
// CHECK-DAG: load balance of 'back': device 1: 12 of 16 samples (2 1 2 1 2 1 2 1), {{.*}}; device 3: 4 of 16 samples (0 1 0 1 0 1 0 1)
// CHECK-DAG: #whale.placement<[2, 8] split 0 (2, 0) on [1, 3]>
// CHECK-DAG: #whale.placement<[2, 8] split 0 (1, 1) on [1, 3]>
#front = #whale.replicate<devices = 1, name = "front">
#back = #whale.replicate<devices = 1, name = "back">
module attributes {whale.config = {num_micro_batch = 8 : i64}} {
  func.func @main(%w: tensor<8x8xf32>,
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.strategy = #front}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
        {whale.strategy = #back}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add
        across dimensions = [0, 1] {whale.strategy = #back}
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
