// RUN: whale-opt %s -whale-assign-devices -split-input-file -verify-diagnostics

// expected-error@+1 {{has no whale.cluster; run whale-load-cluster first}}
module {
  func.func @main() {
    return
  }
}

// -----

// expected-error@+1 {{expects a function @main with a body}}
module {}

// -----

whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 4} ]} ]}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{task graph 'head' asks for 5 devices, the cluster has 4}}
  %0 = whale.task_graph "head" forward strategy #whale.split<devices = 5>
      -> tensor<8xf32> {
    whale.yield %x : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 4} ]} ]}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{a group of 3 devices ('head' asks for 3) doesn't divide the cluster's 4 devices; group sizes that fit are 1, 2, 4, and numbers of devices that fit this group are 3 and 6; or set cluster.uneven_replicas}}
  %0 = whale.task_graph "head" forward strategy #whale.split<devices = 3>
      -> tensor<8xf32> {
    whale.yield %x : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

module attributes {whale.config = {cluster = {uneven_replicas = true}},
                   whale.virtual_devices = [array<i64: 0>]} {
whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 4}]}]}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{cluster.uneven_replicas groups all devices, and wh.cluster says which to use; leave one of them out}}
  %0 = whale.task_graph "head" forward strategy #whale.replicate<name = "head"> -> tensor<8xf32> {
    %1 = stablehlo.tanh %x : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
}

// -----

whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 4} ]} ]}
func.func @main(%x: tensor<8xf32>, %b: tensor<i1>) -> tensor<8xf32> {
  // expected-remark@+1 {{'a' is on devices [0-1]}}
  %0 = whale.task_graph "a" forward strategy #whale.split<devices = 2, name = "a">
      -> tensor<8xf32> {
    // expected-note@+1 {{this is the loop or branch}}
    %1 = "stablehlo.if"(%b) ({
      // expected-remark@+2 {{'b' is on devices [2-3]}}
      // expected-error@+1 {{scope 'b' is on devices [2-3], and a loop or branch is on the devices of one TaskGraph, here 'a' on [0-1]; give the scopes in it the same devices, or write it out; where a library's loop calls the scopes, as a line search of optax calls the loss, give it a function without scopes, or set num_task_graph in their place}}
      %2 = stablehlo.tanh %x {whale.strategy = #whale.replicate<devices = 2, name = "b">} : tensor<8xf32>
      stablehlo.return %2 : tensor<8xf32>
    }, {
      stablehlo.return %x : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
