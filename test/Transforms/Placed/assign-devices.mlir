// RUN: whale-opt %s -split-input-file -whale-assign-devices | FileCheck %s

// Stages of a pipeline: the first gets the devices with more memory.

module attributes {whale.config = {num_micro_batch = 4 : i64}} {
  whale.cluster @cluster {
    kinds = {small = {flops = {f32 = 1.0e12}, memory_bytes = 1024,
                      memory_bandwidth = 1.0e11},
             large = {flops = {f32 = 1.0e12}, memory_bytes = 2048,
                      memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "small", count = 2},
                                         {kind = "large", count = 2}]}]}
  // CHECK: whale.virtual_device @vd0 {{\[\[}}2, 3]]
  // CHECK: whale.virtual_device @vd1 {{\[\[}}0, 1]]
  // CHECK: whale.task_graph "front" {{.*}}on @vd0
  // CHECK: whale.task_graph "back" {{.*}}on @vd1
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = whale.task_graph "front" forward strategy #whale.replicate<devices = 2, name = "front"> -> tensor<8xf32> {
      %2 = stablehlo.tanh %x : tensor<8xf32>
      whale.yield %2 : tensor<8xf32>
    }
    %1 = whale.task_graph "back" forward strategy #whale.replicate<devices = 2, name = "back"> -> tensor<8xf32> {
      %2 = stablehlo.sine %0 : tensor<8xf32>
      whale.yield %2 : tensor<8xf32>
    }
    return %1 : tensor<8xf32>
  }
}

// -----

// Without micro-batches or stages they are taken in turn, but for links inside
// a node. A later piece of a TaskGraph has its devices.

module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1024,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "one", devices = [{kind = "cpu"}]},
             {name = "two", devices = [{kind = "cpu", count = 2}]}]}
  // CHECK: whale.virtual_device @vd0 {{\[\[}}1, 2]]
  // CHECK: whale.virtual_device @vd1 {{\[\[}}0]]
  // CHECK: whale.task_graph "a" {{.*}}on @vd0
  // CHECK: whale.task_graph "b" {{.*}}on @vd1
  // CHECK: whale.task_graph "a" {{.*}}on @vd0
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = whale.task_graph "a" forward strategy #whale.replicate<devices = 2, name = "a"> -> tensor<8xf32> {
      %3 = stablehlo.tanh %x : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    %1 = whale.task_graph "b" forward strategy #whale.replicate<devices = 1, name = "b"> -> tensor<8xf32> {
      %3 = stablehlo.sine %0 : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    %2 = whale.task_graph "a" forward strategy #whale.replicate<devices = 2, name = "a"> -> tensor<8xf32> {
      %3 = stablehlo.tanh %1 : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    return %2 : tensor<8xf32>
  }
}

// -----

// What has no strategy asks for no devices, so the stages are repeated.

module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1024,
                    memory_bandwidth = 1.0e11}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 4}]}]}
  // CHECK: whale.virtual_device @vd0 {{\[\[}}0], [2]]
  // CHECK: whale.virtual_device @vd1 {{\[\[}}1], [3]]
  // CHECK: whale.task_graph "a" {{.*}}on @vd0
  // CHECK: whale.task_graph "b" {{.*}}on @vd1
  // CHECK: whale.task_graph "default" apply ->
  func.func @main(%x: tensor<8xf32>, %step: tensor<i32>) -> (tensor<8xf32>, tensor<i32>) {
    %0 = whale.task_graph "a" forward strategy #whale.replicate<devices = 1, name = "a"> -> tensor<8xf32> {
      %3 = stablehlo.tanh %x : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    %1 = whale.task_graph "b" forward strategy #whale.replicate<devices = 1, name = "b"> -> tensor<8xf32> {
      %3 = stablehlo.sine %0 : tensor<8xf32>
      whale.yield %3 : tensor<8xf32>
    }
    %2 = whale.task_graph "default" apply -> tensor<i32> {
      %3 = stablehlo.negate %step : tensor<i32>
      whale.yield %3 : tensor<i32>
    }
    return %1, %2 : tensor<8xf32>, tensor<i32>
  }
}

// -----

// In the loop of a TaskGraph a scope on the same devices keeps its strategy,
// and the default does; the default on others gives way.

module attributes {whale.default_strategy = #whale.replicate<devices = 4>} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 4}]}]}
  // CHECK: whale.virtual_device @vd0 {{\[\[}}0, 1, 2, 3]]
  // CHECK: whale.virtual_device @vd2 {{\[\[}}0, 1]]
  // CHECK: whale.task_graph "default"
  // CHECK: stablehlo.tanh {{.*}} {whale.strategy = #whale.split<devices = 4, name = "same">}
  // CHECK: whale.task_graph "two"
  // CHECK: stablehlo.sine %{{.*}} : tensor<8xf32>
  func.func @main(%x: tensor<8xf32>, %b: tensor<i1>) -> tensor<8xf32> {
    %0 = whale.task_graph "default" forward strategy #whale.replicate<devices = 4> -> tensor<8xf32> {
      %2 = "stablehlo.if"(%b) ({
        %3 = stablehlo.tanh %x {whale.strategy = #whale.split<devices = 4, name = "same">} : tensor<8xf32>
        stablehlo.return %3 : tensor<8xf32>
      }, {
        stablehlo.return %x : tensor<8xf32>
      }) : (tensor<i1>) -> tensor<8xf32>
      whale.yield %2 : tensor<8xf32>
    }
    %1 = whale.task_graph "two" forward strategy #whale.split<devices = 2, name = "two"> -> tensor<8xf32> {
      %2 = "stablehlo.if"(%b) ({
        %3 = stablehlo.sine %0 {whale.strategy = #whale.replicate<devices = 4>} : tensor<8xf32>
        stablehlo.return %3 : tensor<8xf32>
      }, {
        stablehlo.return %0 : tensor<8xf32>
      }) : (tensor<i1>) -> tensor<8xf32>
      whale.yield %2 : tensor<8xf32>
    }
    return %1 : tensor<8xf32>
  }
}
