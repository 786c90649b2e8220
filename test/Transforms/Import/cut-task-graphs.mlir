// Where num_task_graph cuts a step: by FLOPs, by the speed of devices, where
// little crosses a slow network, with stages that share a device; or nowhere,
// if scopes make as many TaskGraphs. Judged by the TaskGraph of each operation,
// and by a remark for each stage with its devices and operations. Loops are in
// cut-loops.mlir.

// RUN: whale-opt %s -split-input-file -whale-cut-task-graphs \
// RUN:   -verify-diagnostics | FileCheck %s

// Equal devices: as many FLOPs in each stage. The backward of a stage stands
// with it, the update with the parameter, constants with their users.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  func.func @main(%w0: tensor<8x8xf32> {whale.fed_by = 1 : i64},
                  %w1: tensor<8x8xf32> {whale.fed_by = 2 : i64},
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>) {
    // The cast of a parameter goes with its use.
    // CHECK: stablehlo.negate %arg1
    // CHECK-SAME: "stage1"
    %c1 = stablehlo.negate %w1 {whale.phase = #whale.phase<forward>} : tensor<8x8xf32>
    // expected-remark @below {{stage0 on devices [0]: 2 forward operations from 'stablehlo.dot_general'}}
    %h = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %t = stablehlo.tanh %h {whale.phase = #whale.phase<forward>} : tensor<16x8xf32>
    // CHECK: stablehlo.tanh
    // CHECK-SAME: #whale.replicate<devices = 1, name = "stage0">
    // CHECK-NEXT: stablehlo.dot_general
    // CHECK-SAME: #whale.replicate<devices = 1, name = "stage1">
    // expected-remark @below {{stage1 on devices [1]: 2 forward operations from 'stablehlo.dot_general', 6336 FLOPs with its backward, 256 bytes of parameters and optimizer state, 1024 bytes over its cut}}
    %y = stablehlo.dot_general %t, %c1, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] {whale.phase = #whale.phase<forward>} : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>

    // One for each stage.
    // CHECK: %[[ONE:.*]] = stablehlo.constant {{.*}} dense<1.0
    // CHECK-NEXT: %[[ONES1:.*]] = stablehlo.broadcast_in_dim %[[ONE]]{{.*}}"stage1"
    // CHECK-NEXT: %[[ONES0:.*]] = stablehlo.broadcast_in_dim %[[ONE]]{{.*}}"stage0"
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %ones = stablehlo.broadcast_in_dim %one, dims = [] {whale.phase = #whale.phase<backward>} : (tensor<f32>) -> tensor<16x8xf32>
    // CHECK: stablehlo.dot_general %{{.*}}, %[[ONES1]]
    // CHECK-SAME: phase<backward>{{.*}}"stage1"
    %dw1 = stablehlo.dot_general %t, %ones, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    // CHECK: stablehlo.dot_general %[[ONES1]]
    // CHECK-SAME: phase<backward>{{.*}}"stage1"
    %dt = stablehlo.dot_general %ones, %c1, contracting_dims = [1] x [1] {whale.phase = #whale.phase<backward>} : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    // CHECK: stablehlo.multiply %{{.*}}, %[[ONES0]]
    // CHECK-SAME: phase<backward>{{.*}}"stage0"
    %hh = stablehlo.multiply %h, %ones {whale.phase = #whale.phase<backward>} : tensor<16x8xf32>
    %dh = stablehlo.multiply %dt, %hh {whale.phase = #whale.phase<backward>} : tensor<16x8xf32>
    // CHECK: stablehlo.dot_general %arg2
    // CHECK-SAME: phase<backward>{{.*}}"stage0"
    %dw0 = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>

    // CHECK: stablehlo.subtract %arg0
    // CHECK-SAME: phase<apply>{{.*}}"stage0"
    // CHECK: stablehlo.subtract %arg1
    // CHECK-SAME: phase<apply>{{.*}}"stage1"
    %n0 = stablehlo.subtract %w0, %dw0 {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %n1 = stablehlo.subtract %w1, %dw1 {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %loss, %n0, %n1 : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}

// -----

// Devices of speed 1 and 3: the second stage takes three products of four. The
// copies of a default strategy keep its number of devices.

module attributes {whale.config = {num_task_graph = 2 : i64},
                   whale.default_strategy = #whale.split<devices = 1>} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", slowdown = 3.0},
                                         {kind = "cpu"}]}]}

  // CHECK-LABEL: func.func @main
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // CHECK: dot_general{{.*}}#whale.split<devices = 1, name = "stage0">
    // CHECK: dot_general{{.*}}#whale.split<devices = 1, name = "stage1">
    // CHECK: dot_general{{.*}}#whale.split<devices = 1, name = "stage1">
    // CHECK: dot_general{{.*}}#whale.split<devices = 1, name = "stage1">
    // expected-remark @below {{stage0 on devices [0]: 1 forward operations}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-remark @below {{stage1 on devices [1]: 3 forward operations}}
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %3 : tensor<8x8xf32>
  }
}

// -----

// Five devices for two stages: three and two. A slow network is crossed where
// little crosses, though the FLOPs were more even elsewhere.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "a", devices = [{kind = "cpu", count = 3}]},
             {name = "b", devices = [{kind = "cpu", count = 2}]}],
    network = {bandwidth = 1.0e6, latency = 0.0}}

  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // CHECK: stablehlo.tanh{{.*}}#whale.replicate<devices = 3, name = "stage0">
    // expected-remark @below {{stage0 on devices [0, 1, 2]: 2 forward operations}}
    %0 = stablehlo.tanh %x : tensor<64x64xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // CHECK: stablehlo.reduce{{.*}}"stage0"
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    // expected-remark @below {{stage1 on devices [3, 4]: 3 forward operations from 'stablehlo.broadcast_in_dim', 8192 FLOPs with its backward, 0 bytes of parameters and optimizer state, 256 bytes over its cut}}
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    // CHECK: stablehlo.sine{{.*}}#whale.replicate<devices = 2, name = "stage1">
    %3 = stablehlo.sine %2 : tensor<64x64xf32>
    %4 = stablehlo.cosine %3 : tensor<64x64xf32>
    return %4 : tensor<64x64xf32>
  }
}

// -----

// As many scopes as wanted stay what they are.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // CHECK: stablehlo.tanh{{.*}}name = "a"
    %0 = stablehlo.tanh %x {whale.strategy = #whale.replicate<devices = 1, name = "a">} : tensor<8xf32>
    // CHECK: stablehlo.sine{{.*}}name = "b"
    %1 = stablehlo.sine %0 {whale.strategy = #whale.replicate<devices = 1, name = "b">} : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// The first and the last stage take turns on a device, and take half together.

module attributes {whale.config = {num_task_graph = 3 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  // CHECK-LABEL: func.func @main
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // CHECK-COUNT-1: stablehlo.dot_general {{.*}}"stage0"
    // CHECK-COUNT-2: stablehlo.dot_general {{.*}}"stage1"
    // CHECK-COUNT-1: stablehlo.dot_general {{.*}}"stage2"
    // expected-remark @below {{stage0 on devices [0]: 1 forward}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-remark @below {{stage1 on devices [1]: 2 forward}}
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-remark @below {{stage2 on devices [0]: 1 forward}}
    %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %3 : tensor<8x8xf32>
  }
}

// -----

// Fewer operations with FLOPs than wanted: one less, whose stages share out the
// devices of all.

module attributes {whale.config = {num_task_graph = 3 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 3}]}]}
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // CHECK: stablehlo.tanh
    // CHECK-SAME: #whale.replicate<devices = 2, name = "stage0">
    // CHECK: stablehlo.sine
    // CHECK-SAME: #whale.replicate<devices = 1, name = "stage1">
    // expected-remark @below {{num_task_graph = 3: cut into 2 task graphs, as of more of them some would have less than a tenth of an even part of the work}}
    // expected-remark @below {{stage0 on devices [0, 1]: 1 forward operations}}
    %0 = stablehlo.tanh %x : tensor<8xf32>
    // expected-remark @below {{stage1 on devices [2]}}
    %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x4xf32>) -> tensor<8xf32>
    %3 = stablehlo.sine %2 : tensor<8xf32>
    return %3 : tensor<8xf32>
  }
}

// -----

// Two would have a few scalars: their devices go to the others.

module attributes {whale.config = {num_task_graph = 4 : i64},
                   whale.default_strategy = #whale.replicate<devices = 1>} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 4}]}]}
  // CHECK-LABEL: func.func @main
  func.func @main(%w0: tensor<64x64xf32>, %w1: tensor<64x64xf32>,
                  %x: tensor<64x64xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    // expected-remark @below {{num_task_graph = 4: cut into 2 task graphs}}
    // expected-remark @below {{stage0 on devices [0, 1]: 1 forward operations}}
    %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-remark @below {{stage1 on devices [2, 3]: 6 forward operations}}
    %1 = stablehlo.dot_general %0, %w1, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = stablehlo.slice %1 [0:1, 0:1] {whale.phase = #whale.phase<forward>} : (tensor<64x64xf32>) -> tensor<1x1xf32>
    %3 = stablehlo.reshape %2 {whale.phase = #whale.phase<forward>} : (tensor<1x1xf32>) -> tensor<f32>
    %4 = stablehlo.negate %3 {whale.phase = #whale.phase<forward>} : tensor<f32>
    %5 = stablehlo.tanh %4 {whale.phase = #whale.phase<forward>} : tensor<f32>
    %6 = stablehlo.sine %5 {whale.phase = #whale.phase<forward>} : tensor<f32>
    return %6 : tensor<f32>
  }
}

// -----

// What is computed element by element takes half of the time by itself, but
// next to none in the kernel of the product before it.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e10}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  // CHECK-LABEL: func.func @main
  func.func @main(%w: tensor<128x512xf32>,
                  %x: tensor<64x128xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    // expected-remark @below {{num_task_graph = 2: cut into 1 task graph, as}}
    // expected-remark @below {{stage0 on devices [0, 1]: 4 forward operations}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<64x128xf32>, tensor<128x512xf32>) -> tensor<64x512xf32>
    %1 = stablehlo.tanh %0 {whale.phase = #whale.phase<forward>} : tensor<64x512xf32>
    %2 = stablehlo.multiply %1, %1 {whale.phase = #whale.phase<forward>} : tensor<64x512xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1] {whale.phase = #whale.phase<forward>} : (tensor<64x512xf32>, tensor<f32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}

// -----

// Without any product, it is the work.

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e10}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<64x512xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    // expected-remark @below {{stage0 on devices [0]: 2 forward operations}}
    %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>} : tensor<64x512xf32>
    %1 = stablehlo.sine %0 {whale.phase = #whale.phase<forward>} : tensor<64x512xf32>
    // expected-remark @below {{stage1 on devices [1]: 2 forward operations}}
    %2 = stablehlo.multiply %1, %1 {whale.phase = #whale.phase<forward>} : tensor<64x512xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1] {whale.phase = #whale.phase<forward>} : (tensor<64x512xf32>, tensor<f32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
