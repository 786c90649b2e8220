// RUN: echo '{"kinds": {"c": {"flops": {"f32": 1e9}, "memory_bytes": 1e9, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "c", "count": 3}]}]}' > %t.json
// RUN: whale-opt %s --split-input-file --whale-load-cluster=file=%t.json \
// RUN:   --whale-micro-batch --whale-form-task-graphs --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition -o %t.mlir 2> %t.txt
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: FileCheck %s --check-prefix=BALANCE --input-file=%t.txt

// A micro-batch of one sample is computed by one device, each in its turn, with
// what it has at hand: nothing moves but the terms at the end. That a reshape
// leaves no dimension of samples is no obstacle.

// BALANCE: load balance of 'default'
// BALANCE-SAME: device 0: 2 of 6 samples (1 0 0 1 0 0)
// BALANCE-SAME: device 1: 2 of 6 samples (0 1 0 0 1 0)
// BALANCE-SAME: device 2: 2 of 6 samples (0 0 1 0 0 1)
// CHECK: whale.schedule ranks [0] @rank_class_0(
// CHECK-SAME: %[[W:[^ ]*]]: tensor<8x8xf32>
// CHECK-SAME: %[[X:[^ ]*]]: tensor<6x8xf32>
// CHECK-NOT: {{= whale.}}
// CHECK: %[[FIRST:.*]] = whale.view %[[X]] offset 0 :
// CHECK-NOT: {{= whale.}}
// CHECK: func.call @segment_0(%[[FIRST]], %[[W]],
// CHECK: func.call @segment_0(%{{.*}}, %[[W]],
// CHECK-NOT: call
// CHECK: whale.all_reduce
// CHECK-SAME: (tensor<f32>) -> tensor<f32>
// CHECK: whale.schedule {{.*}}@rank_class_1(
// CHECK-COUNT-2: func.call @segment
// CHECK-NOT: call
// CHECK: whale.schedule {{.*}}@rank_class_2(
// CHECK-COUNT-2: func.call @segment
// CHECK-NOT: call
// CHECK: func.func private @segment_0
// CHECK: reshape %{{.*}} : (tensor<1x8xf32>) -> tensor<8xf32>
module attributes {whale.config = {num_micro_batch = 6 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%w: tensor<8x8xf32>,
                  %x: tensor<6x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %row = stablehlo.reshape %x {whale.strategy = #whale.replicate}
        : (tensor<6x8xf32>) -> tensor<48xf32>
    %back = stablehlo.reshape %row {whale.strategy = #whale.replicate}
        : (tensor<48xf32>) -> tensor<6x8xf32>
    %0 = stablehlo.dot_general %back, %w, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate}
        : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0, 1] {whale.strategy = #whale.replicate}
        : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// Two micro-batches for three devices: the last one has no term of the sum and
// gives zero. Results by sample come from who has made them. A loop goes where
// its sample is, with all that it carries.

// BALANCE: load balance of 'default'
// BALANCE-SAME: device 0: 1 of 2 samples (1 0)
// BALANCE-SAME: device 1: 1 of 2 samples (0 1)
// BALANCE-SAME: device 2: 0 of 2 samples (0 0)
// CHECK: whale.schedule {{.*}}@rank_class_0(
// CHECK: func.call @segment
// CHECK-NOT: call
// CHECK: whale.schedule {{.*}}@rank_class_1(
// CHECK: func.call @segment
// CHECK-NOT: call
// CHECK: whale.schedule {{.*}}@rank_class_2(
// CHECK-NOT: call
// CHECK: %[[NONE:.*]] = stablehlo.constant dense<0.0{{.*}}> : tensor<8xf32>
// CHECK: whale.all_reduce %[[NONE]]
// CHECK-COUNT-2: whale.broadcast channel
// CHECK: stablehlo.concatenate
// CHECK: func.func private @segment_
// CHECK: stablehlo.while
module attributes {whale.config = {num_micro_batch = 2 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%x: tensor<2x8xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<8xf32>, tensor<2x8xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %start, %carry = %x)
        : tensor<i32>, tensor<2x8xf32>
        attributes {whale.strategy = #whale.replicate}
    cond {
      %end = stablehlo.constant dense<3> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %y = stablehlo.tanh %carry : tensor<2x8xf32>
      stablehlo.return %next, %y : tensor<i32>, tensor<2x8xf32>
    }
    %1 = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add
        across dimensions = [0] {whale.strategy = #whale.replicate}
        : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
    return %1, %0#1 : tensor<8xf32>, tensor<2x8xf32>
  }
}

// -----

// Where micro-batches differ in size, the larger ones are shared out.

// BALANCE: load balance of 'default'
// BALANCE-SAME: device 0: 2 of 5 samples (1 1 0)
// BALANCE-SAME: device 1: 2 of 5 samples (1 0 1)
// BALANCE-SAME: device 2: 1 of 5 samples (0 1 0)
module attributes {whale.config = {num_micro_batch = 3 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%x: tensor<5x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.tanh %x {whale.strategy = #whale.replicate}
        : tensor<5x8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0] {whale.strategy = #whale.replicate}
        : (tensor<5x8xf32>, tensor<f32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
