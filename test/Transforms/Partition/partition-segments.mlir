// What a micro-batch computes between two collectives is a function, a segment,
// that schedules call. All micro-batches, all ranks and equal TaskGraphs have
// to share one; what differs between them is an operand. Judged by the calls
// with their operands, and by what is inside. The passes that verify have to
// accept it.

// RUN: echo '{"kinds": {"c": {"flops": {"f32": 1e9}, "memory_bytes": 1e9, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "c", "count": 2}]}]}' > %t.json
// RUN: whale-opt %s --split-input-file --whale-load-cluster=file=%t.json --whale-micro-batch \
// RUN:   --whale-form-task-graphs --whale-assign-devices --whale-propagate \
// RUN:   --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-schedule-micro-batches --whale-partition \
// RUN:   --whale-verify-partition | FileCheck %s

// Four micro-batches call one segment. The sum begins with what a term is added
// to without a change, and is exchanged once, behind them.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: dot_general
// CHECK-DAG: %[[X0:.*]] = whale.view %arg1 offset 0 :
// CHECK-DAG: %[[NONE:.*]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK: %[[S0:.*]] = func.call @segment_0(%[[X0]], %arg0, %[[NONE]]) {whale.moment = 0 : i64}
// CHECK: %[[X1:.*]] = whale.view %arg1 offset 16 :
// CHECK: %[[S1:.*]] = func.call @segment_0(%[[X1]], %arg0, %[[S0]]) {whale.moment = 1 : i64}
// CHECK: %[[S2:.*]] = func.call @segment_0(%{{.*}}, %arg0, %[[S1]]) {whale.moment = 2 : i64}
// CHECK: %[[S3:.*]] = func.call @segment_0(%{{.*}}, %arg0, %[[S2]]) {whale.moment = 3 : i64}
// CHECK: whale.all_reduce %[[S3]]
// CHECK: func.func private @segment_0(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<f32> {whale.last_use})
// CHECK-SAME: whale.segment
// CHECK: dot_general
// CHECK: stablehlo.add %arg2
// CHECK-NOT: @segment_1
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

// -----

// Where a moment starts and where a rank's samples start are operands: segments
// differ in neither.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[RANK:.*]] = whale.shard_offset 0
// CHECK: func.call @segment_0(%[[M0:[^,]*]], %{{[^,]*}}, %{{[^,]*}}, %[[RANK]])
// CHECK: func.call @segment_0(%[[M1:[^,]*]], %{{[^,]*}}, %{{[^,]*}}, %[[RANK]])
// CHECK: func.func private @segment_0
// CHECK-NOT: shard_offset
// CHECK: stablehlo.iota
module attributes {whale.config = {num_micro_batch = 2 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %i = stablehlo.iota dim = 0 {whale.strategy = #whale.replicate}
        : tensor<8xf32>
    %0 = stablehlo.multiply %x, %i {whale.strategy = #whale.replicate}
        : tensor<8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0] {whale.strategy = #whale.replicate}
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// What a stage receives and sends is between its calls, in a segment of
// its own stage alone.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-COUNT-4: func.call @segment_0{{.*}} {whale.moment = {{[0-3]}} : i64}
// CHECK-NOT: call
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: %[[R0:.*]] = whale.send_recv
// CHECK: func.call @segment_1(%[[R0]], %arg1, {{.*}}) {whale.moment = 0 : i64}
// CHECK: %[[R1:.*]] = whale.send_recv
// CHECK-NEXT: func.call @segment_1(%[[R1]], %arg1, {{.*}}) {whale.moment = 1 : i64}
// CHECK-COUNT-2: func.call @segment_1{{.*}} {whale.moment = {{[23]}} : i64}
// CHECK-NOT: call
// CHECK-LABEL: func.func private @segment_0
// CHECK-NOT: send_recv
module attributes {whale.config = {num_micro_batch = 4 : i64}} {
  func.func @main(%w: tensor<8x8xf32>, %v: tensor<8x8xf32>,
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "a", scope = 0>}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "b", scope = 1>}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add
        across dimensions = [0, 1]
        {whale.strategy = #whale.replicate<devices = 1, name = "b", scope = 1>}
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----

// The updates of a table go into the sum itself, which begins with 0.0: no
// element of a term is -0.0, as one of the other sum may be.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-DAG: stablehlo.constant dense<0.000000e+00> : tensor<9x4xf32>
// CHECK-DAG: stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK: func.func private @segment_0
// CHECK: %[[SUM:.*]] = "stablehlo.scatter"(%[[BEFORE:arg[0-9]+]],
// CHECK-NOT: stablehlo.add %[[BEFORE]]
// CHECK: return {{.*}}%[[SUM]]
module attributes {whale.config = {num_micro_batch = 2 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%i: tensor<16x1xi32> {whale.batch_dim = 0 : i64},
                  %u: tensor<16x4xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<9x4xf32>, tensor<f32>) {
    %zeros = stablehlo.constant dense<0.0> : tensor<9x4xf32>
    %0 = "stablehlo.scatter"(%zeros, %i, %u) <{
        scatter_dimension_numbers = #stablehlo.scatter<
            update_window_dims = [1], inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {whale.strategy = #whale.replicate}
        : (tensor<9x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>)
        -> tensor<9x4xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%u init: %zero) applies stablehlo.add
        across dimensions = [0, 1] {whale.strategy = #whale.replicate}
        : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1 : tensor<9x4xf32>, tensor<f32>
  }
}

// -----

// Equal TaskGraphs have one segment, whatever their scopes are called; so have
// what the regions in them take.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: call @segment_0
// CHECK: whale.schedule {{.*}}@rank_class_1
// CHECK: call @segment_0
// CHECK: func.func private @segment_0
// CHECK-NOT: @segment_1
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
  func.func @main(%v: tensor<8x8xf32>, %w: tensor<8x8xf32>,
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<16x8xf32> {
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "front">}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
        loc("jit(f)/whale:replicate:1:0:front/dot_general"("model.py":3:1))
    %m0 = stablehlo.reduce(%0 init: %least) applies stablehlo.maximum
        across dimensions = [1]
        {whale.strategy = #whale.replicate<devices = 1, name = "front">}
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<16xf32>
        loc("jit(f)/whale:replicate:1:0:front/max"("model.py":4:1))
    %b0 = stablehlo.broadcast_in_dim %m0, dims = [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "front">}
        : (tensor<16xf32>) -> tensor<16x8xf32>
        loc("jit(f)/whale:replicate:1:0:front/broadcast"("model.py":4:1))
    %1 = stablehlo.dot_general %b0, %w, contracting_dims = [1] x [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "back">}
        : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
        loc("jit(f)/whale:replicate:1:1:back/dot_general"("model.py":3:1))
    %m1 = stablehlo.reduce(%1 init: %least) applies stablehlo.maximum
        across dimensions = [1]
        {whale.strategy = #whale.replicate<devices = 1, name = "back">}
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<16xf32>
        loc("jit(f)/whale:replicate:1:1:back/max"("model.py":4:1))
    %b1 = stablehlo.broadcast_in_dim %m1, dims = [0]
        {whale.strategy = #whale.replicate<devices = 1, name = "back">}
        : (tensor<16xf32>) -> tensor<16x8xf32>
        loc("jit(f)/whale:replicate:1:1:back/broadcast"("model.py":4:1))
    return %b1 : tensor<16x8xf32>
  }
}
