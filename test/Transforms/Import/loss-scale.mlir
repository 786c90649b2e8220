// RUN: whale-opt %s -whale-mixed-precision -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: remark: amp: a loss scale of 1024 multiplies gradients at 1 places; a step with one that is not finite keeps the state
// REMARK: remark: amp: 2 of 2 products of f32 take f16{{$}}
// REMARK: remark: amp: a loss scale that the program finds multiplies gradients at 2 places
// REMARK: remark: amp: 1 of 1 products of f32 take f16{{$}}
// REMARK: remark: amp: a loss scale of 8 multiplies gradients at 1 places
// REMARK: remark: amp: a loss scale of 8 multiplies gradients at 1 places
// REMARK: remark: amp: a loss scale of 8 multiplies gradients at 1 places
// REMARK-NOT: loss scale

// The constant that the backward begins with is multiplied, the gradient is
// divided where the optimizer reads it, and the parameter stays where it is not
// finite. The loss is not touched.

// CHECK-LABEL: @fixed
// CHECK: %[[Y:.*]] = stablehlo.convert %{{.*}} : (tensor<4x8xf16>) -> tensor<4x8xf32>
// CHECK: %[[SEED:.*]] = stablehlo.constant {{.*}} dense<2.500000e-01>
// CHECK: %[[SCALE:.*]] = stablehlo.constant {{.*}} dense<1.024000e+03> : tensor<f32>
// CHECK: %[[SCALES:.*]] = stablehlo.broadcast_in_dim %[[SCALE]]
// CHECK: %[[BEGIN:.*]] = stablehlo.multiply %[[SEED]], %[[SCALES]]
// CHECK: %[[DY:.*]] = stablehlo.multiply %[[BEGIN]], %[[Y]]
// CHECK: %[[HALF:.*]] = stablehlo.convert %[[DY]]
// CHECK: %[[G:.*]] = stablehlo.dot_general %{{.*}}, %[[HALF]], {{.*}} (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<8x8xf32>
// CHECK: %[[GRADIENT:.*]] = stablehlo.divide %[[G]], {{.*}}phase<apply>
// CHECK: %[[NEXT:.*]] = stablehlo.subtract %arg0, %[[GRADIENT]]
// CHECK: %[[EACH:.*]] = stablehlo.is_finite %[[GRADIENT]]
// CHECK: %[[ALL:.*]] = stablehlo.reduce(%[[EACH]] init: %{{.*}}) applies stablehlo.and
// CHECK: %[[KEPT:.*]] = stablehlo.select %[[ALL]], %[[NEXT]], %arg0
// CHECK: return %[[KEPT]], %{{.*}} : tensor<8x8xf32>, tensor<4x8xf32>
module @fixed attributes {whale.config = {amp = {level = "f16", loss_scale = 1024 : i64}}} {
  func.func @main(%w: tensor<8x8xf32> {whale.donated, whale.fed_by = 0 : i64}, %x: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %loss = stablehlo.tanh %y {whale.phase = #whale.phase<forward>} : tensor<4x8xf32>
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<4x8xf32>
    %dy = stablehlo.multiply %seed, %y {whale.phase = #whale.phase<backward>} : tensor<4x8xf32>
    %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next, %loss : tensor<8x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Without a number, the scale is in an argument behind the user's, with a
// result. A second term of a gradient is multiplied, too.

// CHECK-LABEL: @dynamic
// CHECK: @main(%arg0: tensor<8x8xf32> {whale.fed_by = 0 : i64}, %arg1: tensor<8x8xf32>, %[[STATE:.*]]: tensor<2xf32> {whale.fed_by = 1 : i64, whale.initial = array<i64: 32768, 0>})
// CHECK-SAME: -> (tensor<8x8xf32>, tensor<2xf32> {jax.result_info = "amp.loss_scale"})
// CHECK: stablehlo.slice %[[STATE]] [0:1]
// CHECK: stablehlo.slice %[[STATE]] [0:1]
// CHECK: %[[TERM:.*]] = stablehlo.multiply %arg0, %{{.*}}phase<backward>
// CHECK: stablehlo.add %{{.*}}, %[[TERM]]
// CHECK: %[[ALL:.*]] = stablehlo.reduce
// CHECK: %[[KEPT:.*]] = stablehlo.select %[[ALL]], %{{.*}}, %arg0
// CHECK: stablehlo.slice %[[STATE]] [1:2]
// CHECK: %[[NEXT:.*]] = stablehlo.concatenate
// CHECK: return %[[KEPT]], %[[NEXT]]
module @dynamic attributes {whale.config = {amp = {level = "O1"}}} {
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8x8xf32>
    %g = stablehlo.dot_general %x, %c, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = stablehlo.transpose %g, dims = [1, 0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %sum = stablehlo.add %t, %w {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %next = stablehlo.subtract %w, %sum {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next : tensor<8x8xf32>
  }
}

// -----

// In a loop over layers, the chain is what it carries: it is multiplied before,
// and the gradients are divided behind. A result that is a gradient is no state.

// CHECK-LABEL: @loop
// CHECK: %[[BEGIN:.*]] = stablehlo.multiply %arg1, %{{.*}}phase<backward>
// CHECK: %[[H:.*]] = stablehlo.negate %[[BEGIN]]
// CHECK: %[[LOOP:.*]]:3 = stablehlo.while({{.*}} = %[[H]],
// CHECK-NOT: stablehlo.multiply
// CHECK: %[[G:.*]] = stablehlo.divide %[[LOOP]]#2,
// CHECK-NOT: stablehlo.select
// CHECK: return %[[G]]
module @loop attributes {whale.config = {amp = {level = "f16", loss_scale = 8 : i64}}} {
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %zeros = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.0> : tensor<8x8xf32>
    %h = stablehlo.negate %x {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %r:3 = stablehlo.while(%i = %zero, %d = %h, %sum = %zeros) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32> attributes {whale.phase = #whale.phase<backward>}
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %0 = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %2 = stablehlo.add %sum, %1 : tensor<8x8xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %0, %2 : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %r#2 : tensor<8x8xf32>
  }
}

// -----

// Of two factors, the one with the longer way is the gradient; what
// jax.checkpoint computes again is none.

// CHECK-LABEL: @recomputed
// CHECK: %[[SEED:.*]] = stablehlo.constant {{.*}}2.500000e-01
// CHECK: stablehlo.multiply %[[SEED]], %{{.*}}phase<backward>
// CHECK-NOT: multiply {{.*}}phase<backward>
// CHECK: stablehlo.dot_general
module @recomputed attributes {whale.config = {amp = {level = "f16", loss_scale = 8 : i64}}} {
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %a = stablehlo.negate %x {whale.phase = #whale.phase<backward>} : tensor<8x8xf32> loc("checkpoint/rematted_computation/neg")
    %b = stablehlo.negate %a {whale.phase = #whale.phase<backward>} : tensor<8x8xf32> loc("checkpoint/rematted_computation/neg")
    %c = stablehlo.negate %b {whale.phase = #whale.phase<backward>} : tensor<8x8xf32> loc("checkpoint/rematted_computation/neg")
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8x8xf32>
    %d = stablehlo.negate %seed {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %g = stablehlo.dot_general %c, %d, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next : tensor<8x8xf32>
  }
}

// -----

// The gradient of a pooling is linear in what it scatters.

// CHECK-LABEL: @pooling
// CHECK: %[[SEED:.*]] = stablehlo.constant {{.*}}2.500000e-01
// CHECK: %[[BEGIN:.*]] = stablehlo.multiply %[[SEED]], %{{.*}}phase<backward>
// CHECK: %[[D:.*]] = "stablehlo.select_and_scatter"(%arg1, %[[BEGIN]],
// CHECK: stablehlo.divide %[[D]], %{{.*}}phase<apply>
module @pooling attributes {whale.config = {amp = {level = "f16", loss_scale = 8 : i64}}} {
  func.func @main(%w: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.0> : tensor<f32>
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<4xf32>
    %d = "stablehlo.select_and_scatter"(%x, %seed, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %0 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %0 : tensor<f32>
    }) {whale.phase = #whale.phase<backward>} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
    %next = stablehlo.subtract %w, %d {whale.phase = #whale.phase<apply>} : tensor<8xf32>
    return %next : tensor<8xf32>
  }
}

// -----

// Without gradients there is no scale.

// CHECK-LABEL: @forward
// CHECK: @main(%arg0: tensor<8x8xf32>) ->
module @forward attributes {whale.config = {amp = {level = "f16", loss_scale = "dynamic"}}} {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.tanh %x : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
