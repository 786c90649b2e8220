// RUN: whale-opt %s -split-input-file -whale-form-task-graphs | FileCheck %s

// Operations of one strategy and phase come together; the constant goes into
// each task graph that uses it.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]]:2 = whale.task_graph "a" forward strategy #whale.replicate<devices = 2, name = "a", scope = 0> flops 24 bytes 224 -> tensor<8xf32>, tensor<8xf32> {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant
// CHECK-NEXT:      %[[T:.*]] = stablehlo.tanh %[[X]] : tensor<8xf32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.multiply %[[X]], %[[C]] : tensor<8xf32>
// CHECK-NEXT:      %[[S:.*]] = stablehlo.sine %[[M]] : tensor<8xf32>
// CHECK-NEXT:      whale.yield %[[T]], %[[S]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[B:.*]] = whale.task_graph "b" forward strategy #whale.split<devices = 2, name = "b", scope = 1> flops 16 bytes 192 -> tensor<8xf32> {
// CHECK:           stablehlo.constant
// CHECK:           stablehlo.add %[[A]]#0,
// CHECK:         %[[G:.*]] = whale.task_graph "a" backward
// CHECK-NEXT:      stablehlo.negate %[[A]]#1
// CHECK:         return %[[B]], %[[G]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = stablehlo.constant dense<2.0> : tensor<8xf32>
  %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<devices = 2, name = "a", scope = 0>} : tensor<8xf32>
  %1 = stablehlo.multiply %0, %c {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 2, name = "b", scope = 1>} : tensor<8xf32>
  %2 = stablehlo.multiply %x, %c {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<devices = 2, name = "a", scope = 0>} : tensor<8xf32>
  %3 = stablehlo.sine %2 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<devices = 2, name = "a", scope = 0>} : tensor<8xf32>
  %4 = stablehlo.negate %3 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 2, name = "a", scope = 0>} : tensor<8xf32>
  %5 = stablehlo.add %0, %1 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 2, name = "b", scope = 1>} : tensor<8xf32>
  return %5, %4 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A TaskGraph around another one is two pieces.

// CHECK-LABEL: func.func @main
// CHECK:         whale.task_graph "a" forward
// CHECK:         whale.task_graph "b" forward
// CHECK:         whale.task_graph "a" forward
// CHECK-NOT:     whale.task_graph
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.strategy = #whale.replicate<name = "a">} : tensor<8xf32>
  %1 = stablehlo.sine %0 {whale.strategy = #whale.split<name = "b">} : tensor<8xf32>
  %2 = stablehlo.cosine %1 {whale.strategy = #whale.replicate<name = "a">} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Without strategies one task graph for each phase; a name that a scope has
// is left to it; a constant result is in a task graph too.

// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.*]]:2 = whale.task_graph "default_1" forward flops 8 bytes 64 -> tensor<f32>, tensor<8xf32> {
// CHECK:         whale.task_graph "default" forward strategy
// CHECK:         whale.task_graph "default_1" apply flops 8
// CHECK:         return %{{.*}}, %[[C]]#0
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = stablehlo.sine %0 {whale.strategy = #whale.split<name = "default">} : tensor<8xf32>
  %2 = stablehlo.cosine %1 {whale.phase = #whale.phase<apply>} : tensor<8xf32>
  return %2, %c : tensor<8xf32>, tensor<f32>
}

// -----

// A loop captures from outside of the task graph and counts its trips.

// CHECK-LABEL: func.func @main
// CHECK:         whale.task_graph "default" forward strategy #whale.replicate<devices = 8> flops 650 bytes
// CHECK:           stablehlo.while
// CHECK:             stablehlo.dot_general
// CHECK:         whale.yield
module attributes {whale.default_strategy = #whale.replicate<devices = 8>} {
  func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<4x4xf32>, tensor<i32>
    cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %1, %2 : tensor<4x4xf32>, tensor<i32>
    }
    return %0#0 : tensor<4x4xf32>
  }
}

// -----

// Scopes without names are called by the lines where they are, two on one
// line by line and number, one without a line by its id. What has only joined
// a scope (the first operation) is not where it is.

// CHECK-LABEL: func.func @main
// CHECK:         whale.task_graph "model.py:7" forward strategy #whale.replicate<scope = 4>
// CHECK:         whale.task_graph "model.py:7_1" forward strategy #whale.split<scope = 5>
// CHECK:         whale.task_graph "scope6" forward strategy #whale.split<scope = 6>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<scope = 4>} : tensor<8xf32> loc("jit(f)/tanh"("/home/me/model.py":3:4))
  %1 = stablehlo.sine %0 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<scope = 4>} : tensor<8xf32> loc("jit(f)/whale:replicate:*:4:/sin"(callsite("layer"("/usr/lib/python3/site-packages/flax/layer.py":90:4) at "step"("/home/me/model.py":7:4))))
  %2 = stablehlo.cosine %1 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<scope = 5>} : tensor<8xf32> loc("jit(f)/whale:split:*:5:/cos"("/home/me/model.py":7:30))
  %3 = stablehlo.negate %2 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<scope = 6>} : tensor<8xf32> loc("jit(f)/whale:split:*:6:/neg")
  return %3 : tensor<8xf32>
}
