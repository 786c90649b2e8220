// RUN: whale-opt %s -whale-normalize -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s

// Each device's half is cut out; the sum of both goes to both.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK-DAG:     %[[A:.*]] = stablehlo.slice %[[X]] [0:4]
// CHECK-DAG:     %[[B:.*]] = stablehlo.slice %[[X]] [4:8]
// CHECK:         %[[SUM:.*]] = stablehlo.add %[[A]], %[[B]]
// CHECK-DAG:     %[[C:.*]] = stablehlo.multiply %[[A]], %[[SUM]]
// CHECK-DAG:     %[[D:.*]] = stablehlo.multiply %[[B]], %[[SUM]]
// CHECK:         %[[R:.*]] = stablehlo.concatenate %[[C]], %[[D]], dim = 0
// CHECK:         return %[[R]]
// expected-remark@+1 {{dropped 1 sdy.mesh}}
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.multiply %a, %1 : tensor<4xf32>
    sdy.return %2 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What all devices do alike is done once; partition_id is a number.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh
// CHECK-NOT:     stablehlo.tanh
// CHECK-DAG:     %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<1xui32>
// CHECK-DAG:     %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<1xui32>
// CHECK:         stablehlo.concatenate %[[ZERO]], %[[ONE]]
// expected-remark@+1 {{dropped 1 sdy.mesh}}
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xui32>) {
  %0:2 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    %1 = stablehlo.tanh %a : tensor<4xf32>
    %2 = stablehlo.partition_id : tensor<ui32>
    %3 = stablehlo.reshape %2 : (tensor<ui32>) -> tensor<1xui32>
    sdy.return %1, %3 : tensor<4xf32>, tensor<1xui32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xui32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<2xui32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    // expected-error@+1 {{names device 2 of a mesh of 2}}
    %1 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A map over one axis inside of one over another: the inner one cuts and joins
// along its own axis alone, for each device of the outer one.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<4x4xf32>)
// CHECK-DAG:     %[[TOP:.*]] = stablehlo.slice %[[X]] [0:2, 0:4]
// CHECK-DAG:     %[[BOTTOM:.*]] = stablehlo.slice %[[X]] [2:4, 0:4]
// CHECK-DAG:     stablehlo.slice %[[TOP]] [0:2, 0:2]
// CHECK-DAG:     stablehlo.slice %[[TOP]] [0:2, 2:4]
// CHECK-DAG:     stablehlo.slice %[[BOTTOM]] [0:2, 0:2]
// CHECK-DAG:     stablehlo.slice %[[BOTTOM]] [0:2, 2:4]
// CHECK:         %[[ABOVE:.*]] = stablehlo.concatenate {{.*}}, dim = 1 : {{.*}} -> tensor<2x4xf32>
// CHECK:         %[[BELOW:.*]] = stablehlo.concatenate {{.*}}, dim = 1 : {{.*}} -> tensor<2x4xf32>
// CHECK:         %[[R:.*]] = stablehlo.concatenate %[[ABOVE]], %[[BELOW]], dim = 0
// CHECK:         return %[[R]]
// expected-remark@+1 {{dropped 1 sdy.mesh}}
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%a: tensor<2x4xf32>) {
    %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"y"} (%b: tensor<2x2xf32>) {
      %2 = stablehlo.tanh %b : tensor<2x2xf32>
      sdy.return %2 : tensor<2x2xf32>
    } : (tensor<2x4xf32>) -> tensor<2x4xf32>
    sdy.return %1 : tensor<2x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @other = <["y"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    // expected-error@+1 {{is on another mesh than the one around it}}
    %1 = sdy.manual_computation(%a) in_shardings=[<@other, [{"y"}]>] out_shardings=[<@other, [{"y"}]>] manual_axes={"y"} (%b: tensor<2xf32>) {
      sdy.return %b : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A reducer that uses a constant of the body around it is written out with it.
// CHECK-LABEL: func.func @captured_constant
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK-DAG:     %[[A:.*]] = stablehlo.slice %[[X]] [0:4]
// CHECK-DAG:     %[[B:.*]] = stablehlo.slice %[[X]] [4:8]
// CHECK-DAG:     %[[K:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK:         %[[M:.*]] = stablehlo.maximum %[[B]], %[[K]]
// CHECK:         stablehlo.add %[[A]], %[[M]]
// expected-remark@+1 {{dropped 1 sdy.mesh}}
sdy.mesh @mesh = <["x"=2]>
func.func @captured_constant(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    %k = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.maximum %q, %k : tensor<f32>
      %s = stablehlo.add %p, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
