// RUN: whale-opt %s -split-input-file -whale-cut-task-graphs | FileCheck %s

// A scan over four layers becomes two loops over two layers each. The stacked
// weights are cut where they are kept, the first two rows for the first loop;
// the stacked results are put together in the last stage. The reads of the
// second loop, and its writes, count from its first row on.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[WS:.*]]: tensor<4x8x8xf32>, %[[X:.*]]: tensor<8x8xf32>
  func.func @main(%ws: tensor<4x8x8xf32>, %x: tensor<8x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x8xf32>, tensor<4x8x8xf32>) {
    // CHECK-DAG: %[[W1:.*]] = stablehlo.slice %[[WS]] [2:4, 0:8, 0:8]{{.*}}"stage0"
    // CHECK-DAG: %[[W0:.*]] = stablehlo.slice %[[WS]] [0:2, 0:8, 0:8]{{.*}}"stage0"
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %ys = stablehlo.constant dense<0.0> : tensor<4x8x8xf32>

    // CHECK: %[[A:.*]]:3 = stablehlo.while(%[[I:[^ ]*]] = %{{[^ ]*}}, %{{[^ ]*}} = %[[X]], %[[Y:[^ ]*]] = %{{[^ ]*}}) : tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>
    // CHECK: %[[LIMIT:.*]] = stablehlo.constant {{.*}}dense<2>
    // CHECK: stablehlo.compare LT, %[[I]], %[[LIMIT]]
    // CHECK: stablehlo.dynamic_slice %[[W0]], %[[I]],
    // CHECK-SAME: "stage0"
    // CHECK: stablehlo.dynamic_update_slice %[[Y]], %{{.*}}, %[[I]],

    // CHECK: %[[BEGIN1:.*]] = stablehlo.constant {{.*}}dense<2> : tensor<i32>
    // CHECK: %[[B:.*]]:3 = stablehlo.while(%[[J:[^ ]*]] = %[[BEGIN1]], %{{[^ ]*}} = %[[A]]#1, %{{[^ ]*}} = %{{[^ ]*}}) : tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>
    // CHECK: %[[LIMIT:.*]] = stablehlo.constant {{.*}}dense<4>
    // CHECK: stablehlo.compare LT, %[[J]], %[[LIMIT]]
    // CHECK: %[[TWO:.*]] = stablehlo.constant {{.*}}dense<2>
    // CHECK: %[[ROW:.*]] = stablehlo.subtract %[[J]], %[[TWO]]
    // CHECK: stablehlo.dynamic_slice %[[W1]], %[[ROW]],
    // CHECK-SAME: "stage1"
    // CHECK: %[[ROW:.*]] = stablehlo.subtract %[[J]], %{{.*}}
    // CHECK: stablehlo.dynamic_update_slice %{{.*}}, %{{.*}}, %[[ROW]],
    // CHECK: %[[ALL:.*]] = stablehlo.concatenate %[[A]]#2, %[[B]]#2, dim = 0 {{.*}}"stage1"
    // CHECK: return %[[B]]#1, %[[ALL]]
    %r:3 = stablehlo.while(%i = %c0, %h = %x, %y = %ys) : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>
    cond {
      %p = stablehlo.compare LT, %i, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.dynamic_slice %ws, %i, %c0, %c0, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
      %w = stablehlo.reshape %s : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
      %d = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %e = stablehlo.reshape %d : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
      %u = stablehlo.dynamic_update_slice %y, %e, %i, %c0, %c0 : (tensor<4x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x8xf32>
      %n = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %n, %d, %u : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>
    }
    return %r#1, %r#2 : tensor<8x8xf32>, tensor<4x8x8xf32>
  }
}

// -----

// In reverse: the first loop has the last rows. What is read otherwise than row
// by row stays whole, and so does what is filled with gaps.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[WS:.*]]: tensor<4x8x8xf32>, %[[V:.*]]: tensor<4x8xf32>, %[[X:.*]]: tensor<8x8xf32>
  func.func @main(%ws: tensor<4x8x8xf32>, %v: tensor<4x8xf32>, %x: tensor<8x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x8xf32>, tensor<8x8x8xf32>) {
    // CHECK-DAG: %[[W0:.*]] = stablehlo.slice %[[WS]] [2:4, 0:8, 0:8]
    // CHECK-DAG: %[[W1:.*]] = stablehlo.slice %[[WS]] [0:2, 0:8, 0:8]
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c3 = stablehlo.constant dense<3> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %ys = stablehlo.constant dense<0.0> : tensor<8x8x8xf32>
    // CHECK: stablehlo.while{{.*}} tensor<8x8x8xf32>
    // CHECK: stablehlo.dynamic_slice %[[W0]],
    // CHECK: stablehlo.reduce(%[[V]]
    // CHECK: stablehlo.while{{.*}} tensor<8x8x8xf32>
    // CHECK: stablehlo.dynamic_slice %[[W1]],
    // CHECK: stablehlo.reduce(%[[V]]
    // CHECK-NOT: stablehlo.concatenate
    %r:3 = stablehlo.while(%i = %c0, %h = %x, %y = %ys) : tensor<i32>, tensor<8x8xf32>, tensor<8x8x8xf32>
    cond {
      %p = stablehlo.compare LT, %i, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.subtract %c3, %i : tensor<i32>
      %s = stablehlo.dynamic_slice %ws, %j, %c0, %c0, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
      %w = stablehlo.reshape %s : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
      %d = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %t = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
      %a = stablehlo.add %d, %b : tensor<8x8xf32>
      %e = stablehlo.reshape %a : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
      %u = stablehlo.dynamic_update_slice %y, %e, %i, %c0, %c0 : (tensor<8x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x8x8xf32>
      %n = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %n, %a, %u : tensor<i32>, tensor<8x8xf32>, tensor<8x8x8xf32>
    }
    return %r#1, %r#2 : tensor<8x8xf32>, tensor<8x8x8xf32>
  }
}

// -----

// A loop that isn't counted is one piece.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.while{{.*}}"stage0"
    // CHECK-NOT: stablehlo.while
    // CHECK: stablehlo.tanh{{.*}}"stage1"
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %r = stablehlo.while(%h = %x) : tensor<f32>
    cond {
      %p = stablehlo.compare LT, %h, %one, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %h, %one : tensor<f32>
      stablehlo.return %n : tensor<f32>
    }
    %t = stablehlo.tanh %r : tensor<f32>
    return %t : tensor<f32>
  }
}

// -----

// The rows of a constant are constants, each before the loop that reads it.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8x8xf32> {whale.batch_dim = 0 : i64}) -> tensor<8x8xf32> {
    // CHECK: %[[M0:.*]] = stablehlo.constant {{.*}}dense<3.000000e+00> : tensor<2x8x8xf32>
    // CHECK: stablehlo.while
    // CHECK: stablehlo.dynamic_slice %[[M0]], {{.*}}"stage0"
    // CHECK: %[[M1:.*]] = stablehlo.constant {{.*}}dense<3.000000e+00> : tensor<2x8x8xf32>
    // CHECK: stablehlo.while
    // CHECK: stablehlo.dynamic_slice %[[M1]], {{.*}}"stage1"
    %masks = stablehlo.constant dense<3.0> : tensor<4x8x8xf32>
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %r:2 = stablehlo.while(%i = %c0, %h = %x) : tensor<i32>, tensor<8x8xf32>
    cond {
      %p = stablehlo.compare LT, %i, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.dynamic_slice %masks, %i, %c0, %c0, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
      %m = stablehlo.reshape %s : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
      %a = stablehlo.multiply %h, %m : tensor<8x8xf32>
      %n = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %n, %a : tensor<i32>, tensor<8x8xf32>
    }
    return %r#1 : tensor<8x8xf32>
  }
}
