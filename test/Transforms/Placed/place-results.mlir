// Results are made where they are wanted: each device computes its part of what
// can be split, in loops too, and all of what can't.

// RUN: whale-opt %s -whale-place-results -split-input-file -verify-diagnostics | FileCheck %s

// A loop over rounds: what it carries has the placement of its result; the
// values that all elements need, each device has.
// CHECK-DAG: #[[ROWS:.*]] = #whale.placement<[8, 4] split 0 (6, 2) on [0, 1]>
// CHECK-DAG: #[[ONE:.*]] = #whale.placement<[] replicate 2 on [0, 1]>
// CHECK: whale.virtual_device @vd0
// CHECK-SAME: 0, 1
// CHECK: @main(%[[KEY:.*]]: tensor<2xui32> {whale.placement = #whale.placement<[2] replicate 2 on [0, 1]>})
// CHECK: whale.task_graph "default" forward on @vd0
// CHECK: stablehlo.slice %[[KEY]] {{.*}}whale.placements
// CHECK: stablehlo.iota {{.*}}{whale.placements = [#[[ROWS]]]}
// CHECK: stablehlo.while
// CHECK-SAME: whale.placements = [#[[ONE]], #[[ROWS]], #[[ONE]]]
// CHECK: stablehlo.compare {{.*}}whale.placements = [#[[ONE]]]
// CHECK: stablehlo.broadcast_in_dim {{.*}}{whale.placements = [#[[ROWS]]]}
// CHECK: stablehlo.xor {{.*}}{whale.placements = [#[[ROWS]]]}
// CHECK-NOT: whale.reshard
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%key: tensor<2xui32>)
      -> (tensor<8x4xui32> {whale.given_placement = #whale.placement<[8, 4] split 0 (6, 2) on [0, 1]>}) {
    %first = stablehlo.slice %key [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %k = stablehlo.reshape %first : (tensor<1xui32>) -> tensor<ui32>
    %n = stablehlo.iota dim = 0 : tensor<8x4xui32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:3 = stablehlo.while(%i = %zero, %x = %n, %c = %k) : tensor<i32>, tensor<8x4xui32>, tensor<ui32>
    cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %p = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<8x4xui32>
      %y = stablehlo.xor %x, %b : tensor<8x4xui32>
      stablehlo.return %j, %y, %c : tensor<i32>, tensor<8x4xui32>, tensor<ui32>
    }
    return %r#1 : tensor<8x4xui32>
  }
}

// -----

// Two results of one value on other devices, and a third that nobody wants
// anywhere; the argument lies where it is given.
// CHECK-DAG: #[[A:.*]] = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
// CHECK-DAG: #[[B:.*]] = #whale.placement<[8] on [2]>
// CHECK-DAG: #[[ALL:.*]] = #whale.placement<[8] replicate 3 on [0, 1, 2]>
// CHECK: @main(%[[X:.*]]: tensor<8xf32> {{.*}}whale.placement = #[[A]]}
// CHECK: %[[ONA:.*]] = stablehlo.tanh %[[X]] {whale.placements = [#[[A]]]}
// CHECK: %[[SENT:.*]] = whale.reshard %[[X]] from #[[A]] to #[[B]]
// CHECK: %[[ONB:.*]] = stablehlo.tanh %[[SENT]] {whale.placements = [#[[B]]]}
// CHECK: stablehlo.constant {whale.placements = [#[[ALL]]]}
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 3}]}]}
  func.func @main(%x: tensor<8xf32> {whale.given_placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>})
      -> (tensor<8xf32> {whale.given_placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>},
          tensor<8xf32> {whale.given_placement = #whale.placement<[8] on [2]>}, tensor<8xf32>) {
    %y = stablehlo.tanh %x : tensor<8xf32>
    %z = stablehlo.constant dense<1.0> : tensor<8xf32>
    return %y, %y, %z : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// A part of a whole value is cut out of it, right behind it; both are computed
// once.
// CHECK-DAG: #[[PART:.*]] = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[8] replicate 2 on [0, 1]>
// CHECK: %[[S:.*]] = "stablehlo.sort"
// CHECK: whale.placements = [#[[WHOLE]]]
// CHECK: whale.reshard %[[S]] from #[[WHOLE]] to #[[PART]]
// CHECK: stablehlo.negate {{.*}}whale.placements = [#[[PART]]]
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32>)
      -> (tensor<8xf32> {whale.given_placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>}) {
    // expected-remark@+1 {{results: 'stablehlo.sort' cannot be computed in parts: each of devices 0-1 computes all 32 bytes, and keeps its part of them}}
    %s = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {dimension = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    %n = stablehlo.negate %s : tensor<8xf32>
    return %n : tensor<8xf32>
  }
}

// -----

module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32>)
      -> (tensor<8xf32> {whale.given_placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>}) {
    // expected-error@+1 {{calls into Python, which a program whose results are made where another one wants them can't; call the function before or after it}}
    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
