// RUN: whale-opt %s -whale-normalize | FileCheck %s

// CHECK-LABEL: func.func @reduce
// CHECK-SAME:    (%[[X:.*]]: tensor<4x8xf32>, %[[I:.*]]: tensor<f32>)
// CHECK:         %[[Z:.*]] = stablehlo.constant {{.*}}dense<0.000000e+00> : tensor<f32>
// CHECK:         %[[R:.*]] = stablehlo.reduce(%[[X]] init: %[[Z]]) applies stablehlo.add across dimensions = [1] {whale.strategy = #whale.split<name = "a">}
// CHECK:         %[[B:.*]] = stablehlo.broadcast_in_dim %[[I]], dims = [] {whale.strategy = #whale.split<name = "a">} : (tensor<f32>) -> tensor<4xf32>
// CHECK:         stablehlo.add %[[B]], %[[R]] {whale.strategy = #whale.split<name = "a">}
func.func @reduce(%x: tensor<4x8xf32>, %init: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] {whale.strategy = #whale.split<name = "a">} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @kinds
// CHECK-DAG:     stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-DAG:     stablehlo.constant dense<2147483647> : tensor<i32>
// CHECK-DAG:     stablehlo.constant dense<true> : tensor<i1>
// CHECK-DAG:     stablehlo.constant dense<0> : tensor<ui32>
// CHECK-DAG:     stablehlo.maximum {{.*}} : tensor<f32>
// CHECK-DAG:     stablehlo.minimum {{.*}} : tensor<i32>
// CHECK-DAG:     stablehlo.and {{.*}} : tensor<i1>
// CHECK-DAG:     stablehlo.maximum {{.*}} : tensor<ui32>
func.func @kinds(%f: tensor<8xf32>, %i: tensor<8xi32>, %b: tensor<8xi1>, %u: tensor<8xui32>, %f0: tensor<f32>, %i0: tensor<i32>, %b0: tensor<i1>, %u0: tensor<ui32>) -> (tensor<f32>, tensor<i32>, tensor<i1>, tensor<ui32>) {
  %0 = stablehlo.reduce(%f init: %f0) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%i init: %i0) applies stablehlo.minimum across dimensions = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.reduce(%b init: %b0) applies stablehlo.and across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
  %3 = stablehlo.reduce(%u init: %u0) applies stablehlo.maximum across dimensions = [0] : (tensor<8xui32>, tensor<ui32>) -> tensor<ui32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<i32>, tensor<i1>, tensor<ui32>
}

// From its identity a reduction stays as it is; -0 is as good as 0.
// CHECK-LABEL: func.func @identity
// CHECK:         %[[R:.*]] = stablehlo.reduce
// CHECK-NEXT:    return %[[R]]
func.func @identity(%x: tensor<8xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<-0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>
// CHECK:         %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK:         %[[S:.*]] = "stablehlo.scatter"(%[[Z]],
// CHECK:         stablehlo.add %[[X]], %[[S]]
func.func @scatter(%x: tensor<8xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A scatter that replaces is no sum.
// CHECK-LABEL: func.func @scatter_set
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>
// CHECK:         "stablehlo.scatter"(%[[X]],
func.func @scatter_set(%x: tensor<8xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
