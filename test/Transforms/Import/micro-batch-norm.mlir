// Statistics of each micro-batch in the place of those of the mini-batch, where
// layers follow: sums over samples get a dimension for the micro-batches, up to
// where they are spread over the samples again, and what leaves is their mean.
// Judged by the shapes in the loop and by what is behind it. On the wrong side, a
// batch norm would be refused, or mix micro-batches.

// RUN: whale-opt %s --whale-micro-batch --split-input-file | FileCheck %s

module attributes {whale.config = {batch_norm = "micro",
                                   num_micro_batch = 2 : i64}} {
// CHECK-LABEL: func.func @main(
// CHECK: %[[LOOP:.*]]:3 = whale.micro_batches
// CHECK-SAME: reduce [#whale.reduction<sum>]
// CHECK:   %[[H:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x3xf32>
// CHECK:   %[[OWN:.*]] = stablehlo.reshape %[[H]] {{.*}} -> tensor<1x4x3xf32>
// CHECK:   %[[SUM:.*]] = stablehlo.reduce(%[[OWN]] {{.*}} across dimensions = [1]
// CHECK-SAME: -> tensor<1x3xf32>
// CHECK:   %[[FACTOR:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<1x3xf32>
// CHECK:   %[[SCALED:.*]] = stablehlo.multiply %[[SUM]], %[[FACTOR]]
// CHECK:   %[[MEAN:.*]] = stablehlo.divide %[[SCALED]],
// CHECK:   %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[MEAN]], dims = [0, 2]
// CHECK-SAME: -> tensor<1x4x3xf32>
// CHECK:   stablehlo.reshape %[[SPREAD]] {{.*}} -> tensor<4x3xf32>
// CHECK:   whale.yield
// CHECK: return %{{.*}}, %[[LOOP]]#0
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x3xf32>, %v: tensor<3x2xf32>)
    -> (tensor<8x2xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<3xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = stablehlo.divide %1, %count : tensor<3xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [1]
      : (tensor<3xf32>) -> tensor<8x3xf32>
  %4 = stablehlo.subtract %0, %3 : tensor<8x3xf32>
  %5 = stablehlo.dot_general %4, %v, contracting_dims = [1] x [0]
      : (tensor<8x3xf32>, tensor<3x2xf32>) -> tensor<8x2xf32>
  return %5, %2 : tensor<8x2xf32>, tensor<3xf32>
}
}
