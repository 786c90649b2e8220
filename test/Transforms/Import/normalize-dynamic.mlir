// RUN: whale-opt %s -whale-normalize | FileCheck %s

// CHECK-LABEL: func.func @static
// CHECK-DAG:     stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-DAG:     stablehlo.pad %arg0, {{.*}}, low = [1], high = [0], interior = [2]
// CHECK-DAG:     stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NOT:     dynamic
func.func @static(%x: tensor<3xf32>, %v: tensor<f32>) -> (tensor<2x3xf32>, tensor<8xf32>, tensor<4xi32>, tensor<i32>) {
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  %low = stablehlo.constant dense<1> : tensor<1xi32>
  %high = stablehlo.constant dense<0> : tensor<1xi32>
  %interior = stablehlo.constant dense<2> : tensor<1xi32>
  %1 = stablehlo.dynamic_pad %x, %v, %low, %high, %interior : (tensor<3xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8xf32>
  %size = stablehlo.constant dense<4> : tensor<1xi32>
  %2 = stablehlo.dynamic_iota %size, dim = 0 : (tensor<1xi32>) -> tensor<4xi32>
  %3 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<3xf32>) -> tensor<i32>
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<8xf32>, tensor<4xi32>, tensor<i32>
}
