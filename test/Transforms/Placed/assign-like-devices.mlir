// A step that reads another one's state has its scopes where that one has
// scopes of their names: also where the scopes of this step alone would be
// another group. What has another number of devices, another name or none is
// assigned as without the other step, among all devices.

// RUN: whale-opt %s -split-input-file -whale-assign-devices -verify-diagnostics | FileCheck %s

// CHECK-LABEL: module
// CHECK: whale.virtual_device @vd0 {{\[}}[1, 2]]
module attributes {whale.like_devices = {one = [array<i64: 1, 2>], two = [array<i64: 0>]}} {
whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 3}]}]}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{'one' is on devices [1-2]}}
  %0 = whale.task_graph "one" forward strategy #whale.replicate<devices = 2, name = "one"> -> tensor<8xf32> {
    %1 = stablehlo.tanh %x : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
}

// -----

// CHECK-LABEL: module
// CHECK: whale.virtual_device @vd0 {{\[}}[0, 1, 2]]
// CHECK: whale.virtual_device @vd1 {{\[}}[2]]
// CHECK: whale.virtual_device @vd2 {{\[}}[0, 1, 2]]
module attributes {whale.like_devices = {one = [array<i64: 1, 2>], two = [array<i64: 2>], default = [array<i64: 1>]}} {
whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 3}]}]}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{'one' is on devices [0-2]}}
  %0 = whale.task_graph "one" forward strategy #whale.replicate<devices = 3, name = "one"> -> tensor<8xf32> {
    %1 = stablehlo.tanh %x : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  // expected-remark@+1 {{'two' is on devices [2]}}
  %2 = whale.task_graph "two" forward strategy #whale.replicate<name = "two"> -> tensor<8xf32> {
    %1 = stablehlo.tanh %0 : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  // expected-remark@+1 {{'default' is on devices [0-2]}}
  %3 = whale.task_graph "default" forward strategy #whale.replicate -> tensor<8xf32> {
    %1 = stablehlo.tanh %2 : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  return %3 : tensor<8xf32>
}
}

// -----

// expected-error@+1 {{attribute 'whale.like_devices' is [array<i64: 0>], expected a dictionary of lists of array<i64: ...>}}
module attributes {whale.like_devices = [array<i64: 0>]} {}
