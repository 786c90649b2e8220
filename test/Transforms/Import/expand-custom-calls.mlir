// RUN: whale-opt %s -whale-expand-chlo | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK:         %[[SORTED:.*]]:2 = "stablehlo.sort"
// CHECK:           stablehlo.compare GT
// CHECK:         stablehlo.slice %[[SORTED]]#0 [0:2]
// CHECK:         stablehlo.slice %[[SORTED]]#1 [0:2]
// CHECK-NOT:     @greater
func.func @main(%x: tensor<8xf32>) -> (tensor<2xf32>, tensor<2xi32>, tensor<8xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %v = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %n = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %v, %n) {called_computations = [@greater], mhlo.backend_config = {reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<8xf32>, tensor<8xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  // CHECK: stablehlo.multiply %arg0, %arg0
  %1 = stablehlo.custom_call @chlo.square(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0#0, %0#1, %1 : tensor<2xf32>, tensor<2xi32>, tensor<8xf32>
}
func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}
