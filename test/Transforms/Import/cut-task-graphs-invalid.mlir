// RUN: whale-opt %s -split-input-file -whale-cut-task-graphs \
// RUN:   -verify-diagnostics

// expected-error @below {{expects a function @main with a body}}
module attributes {whale.config = {num_task_graph = 2 : i64}} {
}

// -----

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  // expected-error @below {{num_task_graph = 2: there is no forward operation with FLOPs to cut; leave num_task_graph out}}
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// expected-error @below {{has no whale.cluster; run whale-load-cluster first}}
module attributes {whale.config = {num_task_graph = 1 : i64}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {whale.config = {num_task_graph = 2 : i64},
                   whale.default_strategy = #whale.replicate<devices = 2>} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 5}]}]}
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{num_task_graph = 2: a group of 4 devices ('stage0' asks for 2, 'stage1' asks for 2) doesn't divide the cluster's 5 devices}}
    %0 = stablehlo.tanh %x : tensor<8xf32>
    %1 = stablehlo.sine %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 64,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%w: tensor<32xf32> {whale.fed_by = 0 : i64}, %x: tensor<32xf32>) -> tensor<32xf32> {
    // expected-error @below {{num_task_graph = 2: parameters and optimizer state of 128 bytes don't fit 2 task graphs, however they are cut: no device has more than 64 bytes; more task graphs}}
    %0 = stablehlo.tanh %x : tensor<32xf32>
    %1 = stablehlo.add %0, %w : tensor<32xf32>
    return %1 : tensor<32xf32>
  }
}

// -----

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32>
    // expected-error @below {{num_task_graph = 2 cuts a step without scopes, but this operation is in one, and the scopes make 1 task graphs; leave num_task_graph or the scopes out}}
    %1 = stablehlo.sine %0 {whale.strategy = #whale.replicate<devices = 1, name = "b">} : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

module attributes {whale.config = {num_task_graph = 32768 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{num_task_graph = 32768 is more than 1024 task graphs}}
    %0 = stablehlo.tanh %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {whale.config = {num_task_graph = 2 : i64}} {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    // expected-error @below {{num_task_graph = 2: there is no forward operation with FLOPs to cut outside of this loop, which computes gradients as well and is one piece; leave num_task_graph out, or let num_micro_batch sum up the gradients in the place of the loop}}
    %0:2 = stablehlo.while(%i = %c0, %v = %x) : tensor<i32>, tensor<8xf32> attributes {whale.phase = #whale.phase<backward>}
    cond {
      %c4 = stablehlo.constant dense<4> : tensor<i32>
      %p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.add %i, %c1 : tensor<i32>
      %w = stablehlo.tanh %v : tensor<8xf32>
      stablehlo.return %n, %w : tensor<i32>, tensor<8xf32>
    }
    return %0#1 : tensor<8xf32>
  }
}
