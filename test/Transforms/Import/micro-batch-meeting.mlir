// Samples of all micro-batches that meet at the end of the forward pass: what
// depends on it is computed once, behind the loop, with the gradients that need
// nothing else of samples; the other ones in a second loop. Judged by the order
// of operations, by shapes, and by the remark. On the wrong side, a value would
// be that of a part of the samples, or the model be computed of all at once.

// RUN: whale-opt %s --whale-micro-batch --split-input-file --verify-diagnostics | FileCheck %s

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// Logits of every sample with every other. The gradient of the samples is a
// product with what is joined anyway; that of the weights is a sum over moments.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FIRST:.*]]:6 = whale.micro_batches
// CHECK:   stablehlo.dot_general {{.*}} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK: %[[LEFT:.*]] = stablehlo.concatenate {{.*}} dim = 0 : {{.*}} -> tensor<8x3xf32>
// CHECK: %[[RIGHT:.*]] = stablehlo.concatenate {{.*}} dim = 1 : {{.*}} -> tensor<3x8xf32>
// CHECK: %[[LOGITS:.*]] = stablehlo.dot_general %[[LEFT]], %[[RIGHT]]
// CHECK-SAME: -> tensor<8x8xf32>
// CHECK: %[[EXP:.*]] = stablehlo.exponential %[[LOGITS]] : tensor<8x8xf32>
// CHECK: %[[LOSS:.*]] = stablehlo.reduce(%[[EXP]]
// CHECK: %[[GRADIENT:.*]] = stablehlo.dot_general %[[EXP]], %[[RIGHT]]
// CHECK-SAME: -> tensor<8x3xf32>
// CHECK: %[[PIECE:.*]] = stablehlo.slice %[[GRADIENT]] [0:4, 0:3]
// CHECK: %[[SECOND:.*]] = whale.micro_batches [0, 0](%[[PIECE]],
// CHECK-SAME: reduce [#whale.reduction<sum>]
// CHECK:   stablehlo.multiply {{.*}} : tensor<4x3xf32>
// CHECK:   stablehlo.dot_general {{.*}} -> tensor<4x3xf32>
// CHECK: return %[[LOSS]], %[[SECOND]]
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x3xf32>) -> (tensor<f32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %1 = stablehlo.tanh %0 : tensor<8x3xf32>
  %2 = stablehlo.sine %0 : tensor<8x3xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0]
      : (tensor<8x3xf32>) -> tensor<3x8xf32>
  // expected-remark@+1 {{micro-batches: samples meet here, and what follows is computed of the whole mini-batch, behind all forwards and before all backwards; 288 bytes are kept until then}}
  %4 = stablehlo.dot_general %1, %3, contracting_dims = [1] x [0]
      : (tensor<8x3xf32>, tensor<3x8xf32>) -> tensor<8x8xf32>
  %5 = stablehlo.exponential %4 : tensor<8x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add
      across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  %7 = stablehlo.dot_general %5, %3, contracting_dims = [1] x [1]
      {whale.phase = #whale.phase<backward>}
      : (tensor<8x8xf32>, tensor<3x8xf32>) -> tensor<8x3xf32>
  %8 = stablehlo.multiply %7, %0 {whale.phase = #whale.phase<backward>}
      : tensor<8x3xf32>
  %9 = stablehlo.dot_general %x, %8, contracting_dims = [0] x [0]
      {whale.phase = #whale.phase<backward>}
      : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return %6, %9 : tensor<f32>, tensor<4x3xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A metric: the gradient doesn't wait for it, so one loop is enough. Sums are
// added up before they are spread over the samples.
// CHECK-LABEL: func.func @main(
// CHECK: %[[LOOP:.*]]:4 = whale.micro_batches
// CHECK-SAME: -> (tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK: %[[ALL:.*]] = stablehlo.concatenate
// CHECK: %[[MEAN:.*]] = stablehlo.broadcast_in_dim %[[LOOP]]#0, dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK: stablehlo.subtract %[[ALL]], %[[MEAN]] : tensor<8xf32>
// CHECK-NOT: whale.micro_batches
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %w : tensor<8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<8xf32>
  // expected-remark@+1 {{behind all micro-batches; 32 bytes are kept until then}}
  %3 = stablehlo.subtract %0, %2 : tensor<8xf32>
  %4 = stablehlo.multiply %0, %x {whale.phase = #whale.phase<backward>}
      : tensor<8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add
      across dimensions = [0] {whale.phase = #whale.phase<backward>}
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %5, %3 : tensor<f32>, tensor<8xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// Samples are joined before they are spread: 32 bytes, not 256.
// CHECK-LABEL: func.func @main(
// CHECK: %[[ALL:.*]] = stablehlo.concatenate {{.*}} -> tensor<8xf32>
// CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[ALL]], dims = [0]
// CHECK: %[[COLUMNS:.*]] = stablehlo.broadcast_in_dim %[[ALL]], dims = [1]
// CHECK: stablehlo.subtract %[[ROWS]], %[[COLUMNS]] : tensor<8x8xf32>
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.multiply %x, %w : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0]
      : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.broadcast_in_dim %0, dims = [1]
      : (tensor<8xf32>) -> tensor<8x8xf32>
  // expected-remark@+1 {{32 bytes are kept until then}}
  %3 = stablehlo.subtract %1, %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
}
