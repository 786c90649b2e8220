// RUN: whale-opt %s -whale-offload-state -split-input-file \
// RUN:   -verify-diagnostics | FileCheck %s

// What only an update reads leaves the devices, with its next value. Weights,
// which the forward reads, a counter, and what no result feeds stay.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<512xf32> {whale.donated, whale.fed_by = 0 : i64},
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<512xf32> {whale.donated, whale.fed_by = 1 : i64, whale.in_host},
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<i32> {whale.donated, whale.fed_by = 2 : i64},
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<512xf32>)
// CHECK-SAME: -> (tensor<512xf32>, tensor<512xf32> {whale.in_host}, tensor<i32>)
module attributes {whale.config = {offload = {level = "state"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}],
      host = {memory_bytes = 1.0e9, bandwidth = 1.0e9}}]}
  // expected-remark @+1 {{offload: 2048 bytes of optimizer state, in 1 tensors, are in the memory of hosts, and copied from and to it for each update}}
  func.func @main(%w: tensor<512xf32> {whale.donated, whale.fed_by = 0 : i64},
                  %m: tensor<512xf32> {whale.donated, whale.fed_by = 1 : i64},
                  %c: tensor<i32> {whale.donated, whale.fed_by = 2 : i64},
                  %r: tensor<512xf32>)
      -> (tensor<512xf32>, tensor<512xf32>, tensor<i32>) {
    %0 = whale.task_graph "a" forward -> tensor<512xf32> {
      %2 = stablehlo.tanh %w : tensor<512xf32>
      whale.yield %2 : tensor<512xf32>
    }
    %1:3 = whale.task_graph "a" apply
        -> tensor<512xf32>, tensor<512xf32>, tensor<i32> {
      %2 = stablehlo.add %m, %0 : tensor<512xf32>
      %3 = stablehlo.add %2, %r : tensor<512xf32>
      %4 = stablehlo.subtract %w, %3 : tensor<512xf32>
      %5 = stablehlo.add %c, %c : tensor<i32>
      whale.yield %4, %2, %5 : tensor<512xf32>, tensor<512xf32>, tensor<i32>
    }
    return %1#0, %1#1, %1#2 : tensor<512xf32>, tensor<512xf32>, tensor<i32>
  }
}

// -----

// Weights leave the devices too where that is asked for, but those that
// micro-batches read, for all of which they are kept.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<512xf32> {whale.fed_by = 0 : i64, whale.in_host},
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<512xf32> {whale.fed_by = 1 : i64})
module attributes {whale.config = {offload = {level = "V0"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}],
      host = {memory_bytes = 1.0e9, bandwidth = 1.0e9}}]}
  // expected-remark @+1 {{offload: 0 bytes of optimizer state and 2048 bytes of weights, in 1 tensors, are in the memory of hosts, and copied from and to it for each update, weights also where they are used}}
  func.func @main(%w: tensor<512xf32> {whale.fed_by = 0 : i64},
                  %v: tensor<512xf32> {whale.fed_by = 1 : i64})
      -> (tensor<512xf32>, tensor<512xf32>) {
    %0 = whale.task_graph "a" forward -> tensor<512xf32> {
      %3 = stablehlo.tanh %w : tensor<512xf32>
      whale.yield %3 : tensor<512xf32>
    }
    %1 = whale.micro_batches [0, 0] ()
        reduce [#whale.reduction<sum>]
        : () -> tensor<512xf32> {
      %3 = whale.task_graph "a" backward -> tensor<512xf32> {
        %4 = stablehlo.tanh %v : tensor<512xf32>
        whale.yield %4 : tensor<512xf32>
      }
      whale.yield %3 : tensor<512xf32>
    }
    %2:2 = whale.task_graph "a" apply -> tensor<512xf32>, tensor<512xf32> {
      %3 = stablehlo.subtract %w, %0 : tensor<512xf32>
      %4 = stablehlo.subtract %v, %1 : tensor<512xf32>
      whale.yield %3, %4 : tensor<512xf32>, tensor<512xf32>
    }
    return %2#0, %2#1 : tensor<512xf32>, tensor<512xf32>
  }
}

// -----

// Without the option nothing changes, wherever there is a host.

// CHECK-LABEL: func.func @main(
// CHECK-NOT: whale.in_host
// CHECK: return
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  func.func @main(%m: tensor<512xf32> {whale.donated, whale.fed_by = 0 : i64})
      -> tensor<512xf32> {
    %0 = whale.task_graph "a" apply -> tensor<512xf32> {
      %1 = stablehlo.tanh %m : tensor<512xf32>
      whale.yield %1 : tensor<512xf32>
    }
    return %0 : tensor<512xf32>
  }
}

// -----

module attributes {whale.config = {offload = {level = "state"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu"}]}]}
  func.func @main(%m: tensor<512xf32> {whale.donated, whale.fed_by = 0 : i64})
      -> tensor<512xf32> {
    %0 = whale.task_graph "a" apply -> tensor<512xf32> {
      // expected-error @+1 {{offload.level: node 'a' has no 'host' in the cluster file, with the memory_bytes and the bandwidth that there is to offload to}}
      %1 = stablehlo.tanh %m : tensor<512xf32>
      whale.yield %1 : tensor<512xf32>
    }
    return %0 : tensor<512xf32>
  }
}

// -----

module attributes {whale.config = {offload = {level = "state"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}],
      host = {memory_bytes = 1.0e9, bandwidth = 1.0e9}}]}
  // expected-note @+1 {{argument 1 stays on the devices: it is returned as another result, too}}
  func.func @main(%m: tensor<8xf32> {whale.donated, whale.fed_by = 0 : i64}, %n: tensor<512xf32> {whale.fed_by = 1 : i64})
      -> (tensor<8xf32>, tensor<512xf32>, tensor<512xf32>) {
    %0:2 = whale.task_graph "a" apply -> tensor<8xf32>, tensor<512xf32> {
      // expected-error @+1 {{offload.level: there is no state of an optimizer that could be in the memory of the hosts; leave it out}}
      %1 = stablehlo.tanh %m : tensor<8xf32>
      %2 = stablehlo.tanh %n : tensor<512xf32>
      whale.yield %1, %2 : tensor<8xf32>, tensor<512xf32>
    }
    return %0#0, %0#1, %n : tensor<8xf32>, tensor<512xf32>, tensor<512xf32>
  }
}
