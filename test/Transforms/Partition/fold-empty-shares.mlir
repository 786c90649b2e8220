// RUN: whale-opt %s -whale-fold-empty-shares -split-input-file | FileCheck %s

// A rank without samples adds nothing to a gradient, however that is moved.
// CHECK-LABEL: @rank_class_0
// CHECK-NOT: stablehlo
// CHECK: whale.return %arg2
whale.schedule ranks [0] @rank_class_0(
    %a: tensor<0x4xf32>, %b: tensor<0x8xf32>,
    %before: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<8x4xf32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
      : (tensor<0x4xf32>, tensor<0x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0]
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.multiply %1, %half : tensor<8x4xf32>
  %3 = stablehlo.add %before, %2 : tensor<8x4xf32>
  whale.return %3 : tensor<8x4xf32>
}

// -----

// Sums and scatters of nothing, from zero, are zero.
// CHECK-LABEL: @rank_class_0
// CHECK-NOT: reduce
// CHECK-NOT: scatter
// CHECK: %[[ROWS:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[TABLE:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<9x4xf32>
// CHECK: whale.return %[[ROWS]], %[[TABLE]]
whale.schedule ranks [0] @rank_class_0(
    %a: tensor<0x4xf32>, %index: tensor<0x1xi32>)
    -> (tensor<4xf32>, tensor<9x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %table = stablehlo.constant dense<0.0> : tensor<9x4xf32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = "stablehlo.scatter"(%table, %index, %a) ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %sum = stablehlo.add %old, %new : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
      : (tensor<9x4xf32>, tensor<0x1xi32>, tensor<0x4xf32>) -> tensor<9x4xf32>
  whale.return %0, %1 : tensor<4xf32>, tensor<9x4xf32>
}

// -----

// The mean of nothing isn't a number.
// CHECK-LABEL: @rank_class_0
// CHECK: stablehlo.divide %[[SUM:.*]], %{{.*}}
// CHECK: stablehlo.multiply %[[SUM]], %arg1
whale.schedule ranks [0] @rank_class_0(
    %a: tensor<0x4xf32>, %scale: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.divide %0, %count : tensor<4xf32>
  %2 = stablehlo.multiply %0, %scale : tensor<4xf32>
  whale.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Not what starts with something, nor maxima, nor other functions.
// CHECK-LABEL: @rank_class_0
// CHECK-COUNT-2: stablehlo.reduce(
// CHECK: whale.return
// CHECK-LABEL: @other
// CHECK: dot_general
whale.schedule ranks [0] @rank_class_0(%a: tensor<0x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %one) applies stablehlo.add
      across dimensions = [0] : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%a init: %zero) applies stablehlo.maximum
      across dimensions = [0] : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>
  whale.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @other(%a: tensor<0x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]
      : (tensor<0x4xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// What communicates stays, used or not.
#whole = #whale.placement<[4] replicate 2 on [0, 1]>
#terms = #whale.placement<[4] partial sum 2 on [0, 1]>
// CHECK-LABEL: @rank_class_0
// CHECK: whale.all_reduce
whale.schedule ranks [0, 1] @rank_class_0(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = whale.all_reduce %a channel 0 from #terms to #whole
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return %a : tensor<4xf32>
}
