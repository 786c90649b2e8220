// What the backward of a stage computes again for a later stage is taken from
// the forward; what it computes again for itself, or for an earlier stage,
// stays.

// RUN: whale-opt %s --whale-keep-received --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: module @across
// CHECK: %[[H:.*]] = stablehlo.tanh %arg0
// CHECK: %[[S:.*]] = stablehlo.reduce(%[[H]]
// CHECK: %[[Y:.*]] = stablehlo.sine %[[S]]
// CHECK-NOT: stablehlo.tanh
// CHECK-NOT: stablehlo.reduce
// CHECK: %[[G:.*]] = stablehlo.cosine %[[S]]
// CHECK: %[[R:.*]] = stablehlo.multiply %[[Y]], %[[G]]
// CHECK: return %[[R]]
module @across {
  // expected-remark@+1 {{stages keep 1 values from their forward}}
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4xf32> {
    %z = stablehlo.constant {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} dense<0.0> : tensor<f32>
    %h = stablehlo.tanh %x {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4x2xf32>
    %s = stablehlo.reduce(%h init: %z) applies stablehlo.add across dimensions = [1] {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %y = stablehlo.sine %s {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
    %z2 = stablehlo.constant {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} dense<0.0> : tensor<f32>
    %h2 = stablehlo.tanh %x {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4x2xf32>
    %s2 = stablehlo.reduce(%h2 init: %z2) applies stablehlo.add across dimensions = [1] {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %g = stablehlo.cosine %s2 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
    %r = stablehlo.multiply %y, %g : tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// Within a stage, and from a later stage to an earlier one.
// CHECK-LABEL: module @stays
// CHECK-COUNT-2: stablehlo.tanh %arg0
// CHECK: stablehlo.cosine
// CHECK-COUNT-2: stablehlo.exponential
module @stays {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %h = stablehlo.tanh %x {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
    %h2 = stablehlo.tanh %x {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
    %g = stablehlo.cosine %h2 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
    %a = stablehlo.add %g, %h {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
    %e = stablehlo.exponential %x {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
    %e2 = stablehlo.exponential %x {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
    %n = stablehlo.negate %e2 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
    %b = stablehlo.add %n, %e : tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Another function of the same operand, and other attributes, are no repetition.
// CHECK-LABEL: module @unlike
// CHECK: stablehlo.slice %arg0 [0:2]
// CHECK: stablehlo.slice %arg0 [1:3]
module @unlike {
  func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %h = stablehlo.slice %x [0:2] {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : (tensor<4xf32>) -> tensor<2xf32>
    %y = stablehlo.sine %h {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<2xf32>
    %h2 = stablehlo.slice %x [1:3] {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage0">} : (tensor<4xf32>) -> tensor<2xf32>
    %g = stablehlo.cosine %h2 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<2xf32>
    return %y, %g : tensor<2xf32>, tensor<2xf32>
  }
}
