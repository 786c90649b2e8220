// RUN: echo '{"kinds": {"c": {"flops": {"f32": 1e9}, "memory_bytes": 1e9, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "c"}, {"kind": "c", "slowdown": 2}]}]}' > %t.json
// RUN: whale-opt %s --whale-load-cluster=file=%t.json --whale-micro-batch \
// RUN:   --whale-form-task-graphs --whale-assign-devices --whale-propagate \
// RUN:   --whale-insert-reshards --whale-verify-placements --whale-partition \
// RUN:   --whale-verify-partition | FileCheck %s

// Four samples on devices of speed 2 and 1 are 3 and 1, which takes the first
// one 12 samples of 16. That 5 and not 4 of them go to the second, one
// micro-batch is shared 2 and 2: its samples are exchanged before all others.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: tensor<12x8xf32>
// CHECK: %[[SAMPLES:.*]] = whale.all_to_all
// CHECK-SAME: (tensor<3x8xf32>) -> tensor<2x8xf32>
// CHECK: func.call @[[THREE:.*]](%{{.*}}) {{.*}}: (tensor<3x8xf32>, tensor<8x8xf32>,
// CHECK: func.call @[[THREE]](%{{.*}}) {{.*}}: (tensor<3x8xf32>, tensor<8x8xf32>,
// CHECK: func.call @[[TWO:.*]](%[[SAMPLES]], {{.*}}) {{.*}}: (tensor<2x8xf32>, tensor<8x8xf32>,
// CHECK: func.call @[[THREE]](%{{.*}}) {{.*}}: (tensor<3x8xf32>, tensor<8x8xf32>,
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK-SAME: tensor<4x8xf32>
// CHECK: (tensor<1x8xf32>) -> tensor<2x8xf32>
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
