// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-divide-windows))' -split-input-file | FileCheck %s

// 5,000 terms are 78 * 64 and 8 behind them, the 78 are 8 * 9 and 6. Those of
// neighbours are there for each place of the padded operand.
// CHECK-LABEL: @line
// CHECK: %[[NEAR:.*]] = "stablehlo.reduce_window"(%arg0
// CHECK-SAME: dense<{{\[}}[0, 0], [2499, 2500]]>
// CHECK-SAME: window_dimensions = array<i64: 1, 64>
// CHECK: -> tensor<2x14936xf32>
// CHECK: "stablehlo.reduce_window"(%[[NEAR]]
// CHECK-SAME: window_dilations = array<i64: 1, 64>
// CHECK-SAME: window_dimensions = array<i64: 1, 9>
// CHECK: "stablehlo.reduce_window"
// CHECK-SAME: window_dilations = array<i64: 1, 576>
// CHECK-SAME: window_dimensions = array<i64: 1, 8>
// CHECK: "stablehlo.reduce_window"(%[[NEAR]]
// CHECK-SAME: dense<{{\[}}[0, 0], [-4608,
// CHECK-SAME: window_dimensions = array<i64: 1, 6>
// CHECK: %[[WHOLE:.*]] = "stablehlo.map"
// CHECK: %[[REST:.*]] = "stablehlo.reduce_window"(%arg0
// CHECK-SAME: dense<{{\[}}[0, 0], [-2493, 2500]]>
// CHECK-SAME: window_dimensions = array<i64: 1, 8>
// CHECK: %[[SUM:.*]] = "stablehlo.map"(%[[WHOLE]], %[[REST]])
// CHECK: return %[[SUM]]
func.func @line(%x: tensor<2x10000xf32>) -> tensor<2x10000xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 1, 5000>,
      padding = dense<[[0, 0], [2499, 2500]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x10000xf32>, tensor<f32>) -> tensor<2x10000xf32>
  return %0 : tensor<2x10000xf32>
}

// -----

// Sums of half precision are formed in f32; an initial value that is not zero
// is added once, behind all windows.
// CHECK-LABEL: @initial
// CHECK: %[[WIDE:.*]] = stablehlo.convert %arg0 : (tensor<40x40xbf16>) -> tensor<40x40xf32>
// CHECK: %[[INIT:.*]] = stablehlo.convert %arg1
// CHECK: %[[ALONG:.*]]:2 = "stablehlo.reduce_window"(%[[WIDE]], %{{.*}}, %[[INIT]], %{{.*}})
// CHECK-SAME: window_dimensions = array<i64: 1, 40>
// CHECK: %[[ALL:.*]]:2 = "stablehlo.reduce_window"(%[[ALONG]]#0, %[[ALONG]]#1
// CHECK-SAME: window_dimensions = array<i64: 40, 1>
// CHECK: %[[THERE:.*]] = stablehlo.compare NE, %[[ALL]]#1
// CHECK: %[[BEFORE:.*]] = stablehlo.broadcast_in_dim %[[INIT]]
// CHECK: %[[SUM:.*]] = "stablehlo.map"(%[[BEFORE]], %[[ALL]]#0)
// CHECK: %[[CHOSEN:.*]] = stablehlo.select %[[THERE]], %[[SUM]], %[[BEFORE]]
// CHECK: stablehlo.convert %[[CHOSEN]] {{.*}} -> tensor<40x40xbf16>
func.func @initial(%x: tensor<40x40xbf16>, %init: tensor<bf16>)
    -> tensor<40x40xbf16> {
  %0 = "stablehlo.reduce_window"(%x, %init) <{
      window_dimensions = array<i64: 40, 40>,
      padding = dense<[[20, 19], [20, 19]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %1 = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %1 : tensor<bf16>
  }) : (tensor<40x40xbf16>, tensor<bf16>) -> tensor<40x40xbf16>
  return %0 : tensor<40x40xbf16>
}

// -----

// The gradient of a global pool.
// CHECK-LABEL: @pool
// CHECK: %[[NUMBERS:.*]] = stablehlo.reshape %{{.*}} : (tensor<8192xi32>) -> tensor<2x64x64xi32>
// CHECK: %[[ALONG:.*]]:3 = "stablehlo.reduce_window"(%arg0, %[[NUMBERS]],
// CHECK-SAME: window_dimensions = array<i64: 1, 1, 64>
// CHECK: stablehlo.compare GE, %{{.*}}, %{{.*}} : {{.*}}tensor<f32>
// CHECK: %[[ALL:.*]]:3 = "stablehlo.reduce_window"(%[[ALONG]]#0
// CHECK-SAME: window_dimensions = array<i64: 1, 64, 1>
// CHECK: %[[THERE:.*]] = stablehlo.compare NE, %[[ALL]]#2
// CHECK: %[[CHOSEN:.*]] = stablehlo.select %[[THERE]], %[[ALL]]#1
// CHECK: %[[PLACES:.*]] = stablehlo.reshape %[[CHOSEN]]
// CHECK: %[[SOURCE:.*]] = stablehlo.reshape %arg1
// CHECK: %[[SUM:.*]] = "stablehlo.scatter"(%{{.*}}, %[[PLACES]], %[[SOURCE]])
// CHECK: %[[RESULT:.*]] = stablehlo.reshape %[[SUM]]
// CHECK: return %[[RESULT]]
func.func @pool(%x: tensor<2x64x64xf32>, %source: tensor<2x1x1xf32>)
    -> tensor<2x64x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %zero) <{
      window_dimensions = array<i64: 1, 64, 64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x64x64xf32>, tensor<2x1x1xf32>, tensor<f32>)
      -> tensor<2x64x64xf32>
  return %0 : tensor<2x64x64xf32>
}

// -----

// Running sums and reductions without padding have forms of their own, few
// terms are a thread's.
// CHECK-LABEL: @others
// CHECK-COUNT-3: stablehlo.reduce_window
// CHECK-NOT: stablehlo.reduce_window
func.func @others(%x: tensor<2x5000xf32>)
    -> (tensor<2x5000xf32>, tensor<2x1xf32>, tensor<2x5000xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 1, 5000>,
      padding = dense<[[0, 0], [4999, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x5000xf32>, tensor<f32>) -> tensor<2x5000xf32>
  %1 = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 1, 5000>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x5000xf32>, tensor<f32>) -> tensor<2x1xf32>
  %2 = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 1, 1024>,
      padding = dense<[[0, 0], [511, 512]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x5000xf32>, tensor<f32>) -> tensor<2x5000xf32>
  return %0, %1, %2
      : tensor<2x5000xf32>, tensor<2x1xf32>, tensor<2x5000xf32>
}
