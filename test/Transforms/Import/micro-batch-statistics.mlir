// Statistics without gradients between layers, as a quantizer's: the forwards of
// all micro-batches come first, up to the statistic, and the layers behind it
// are in a second loop, with the backward of all. Judged by the order of
// operations, by shapes, and by the remark. On the wrong side, a statistic would
// be that of a part of the samples, or the model be computed of all at once.

// RUN: whale-opt %s --whale-micro-batch --split-input-file --verify-diagnostics | FileCheck %s

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// The largest magnitude. What the backward reads of the first loop is kept.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FIRST:.*]]:3 = whale.micro_batches
// CHECK-SAME: reduce [#whale.reduction<max>]
// CHECK:   stablehlo.dot_general {{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[SECOND:.*]]:2 = whale.micro_batches
// CHECK-SAME: (%[[FIRST]]#1, %[[FIRST]]#2
// CHECK-COUNT-2: stablehlo.broadcast_in_dim %[[FIRST]]#0, dims = [] {{.*}} -> tensor<4x4xf32>
// CHECK:   stablehlo.divide {{.*}} : tensor<4x4xf32>
// CHECK:   stablehlo.dot_general {{.*}} -> tensor<4x4xf32>
// CHECK:   stablehlo.divide {{.*}} : tensor<4x4xf32>
// CHECK:   stablehlo.dot_general {{.*}} -> tensor<4x4xf32>
// CHECK: return %[[SECOND]]#{{[01]}}, %[[SECOND]]#{{[01]}}
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum
      across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = []
      : (tensor<f32>) -> tensor<8x4xf32>
  // expected-remark@+1 {{micro-batches: needs a statistic of all samples, so layers from here on wait for the forwards of all micro-batches; 128 bytes are kept until then}}
  %3 = stablehlo.divide %0, %2 : tensor<8x4xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add
      across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %6 = stablehlo.broadcast_in_dim %1, dims = []
      {whale.phase = #whale.phase<backward>} : (tensor<f32>) -> tensor<8x4xf32>
  %7 = stablehlo.divide %4, %6 {whale.phase = #whale.phase<backward>}
      : tensor<8x4xf32>
  %8 = stablehlo.dot_general %0, %7, contracting_dims = [0] x [0]
      {whale.phase = #whale.phase<backward>}
      : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %5, %8 : tensor<f32>, tensor<4x4xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// What needs no sample is computed where it is used, not kept by another loop.
// CHECK-LABEL: func.func @main(
// CHECK: whale.micro_batches
// CHECK-NOT: stablehlo.iota
// CHECK: whale.micro_batches
// CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 1 : tensor<4x4xf32>
// CHECK: %[[EXP:.*]] = stablehlo.exponential %[[IOTA]]
// CHECK: %[[CONSTANT:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK: stablehlo.broadcast_in_dim %[[CONSTANT]]
// CHECK: stablehlo.broadcast_in_dim %[[CONSTANT]]
// CHECK: stablehlo.add {{.*}}, %[[IOTA]]
// CHECK: stablehlo.add {{.*}}, %[[EXP]]
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum
      across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = []
      : (tensor<f32>) -> tensor<8x4xf32>
  // expected-remark@+1 {{needs a statistic of all samples}}
  %3 = stablehlo.divide %0, %2 : tensor<8x4xf32>
  %4 = stablehlo.iota dim = 1 : tensor<8x4xf32>
  %5 = stablehlo.add %3, %4 : tensor<8x4xf32>
  %exp = stablehlo.exponential %4 : tensor<8x4xf32>
  %6 = stablehlo.add %5, %exp : tensor<8x4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %rows = stablehlo.broadcast_in_dim %two, dims = []
      : (tensor<f32>) -> tensor<8x4xf32>
  %row = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %7 = stablehlo.multiply %6, %rows : tensor<8x4xf32>
  %8 = stablehlo.dot_general %7, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %9 = stablehlo.broadcast_in_dim %row, dims = [0]
      : (tensor<8xf32>) -> tensor<8x4xf32>
  %10 = stablehlo.add %8, %9 : tensor<8x4xf32>
  return %10 : tensor<8x4xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A value of each sample that depends on the others, as a quantile: the sort is
// computed once, of all of them, between the loops.
// CHECK-LABEL: func.func @main(
// CHECK: whale.micro_batches
// CHECK: %[[ALL:.*]] = stablehlo.concatenate {{.*}} -> tensor<8x4xf32>
// CHECK: "stablehlo.sort"(%[[ALL]])
// CHECK: whale.micro_batches
// CHECK:   stablehlo.subtract {{.*}} : tensor<4x4xf32>
// CHECK:   stablehlo.dot_general {{.*}} -> tensor<4x4xf32>
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.slice %1 [4:5, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>
  // expected-remark@+1 {{needs a statistic of all samples}}
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1]
      : (tensor<1x4xf32>) -> tensor<8x4xf32>
  %4 = stablehlo.subtract %0, %3 : tensor<8x4xf32>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}
}
