// RUN: whale-opt %s -whale-normalize | FileCheck %s

// CHECK-LABEL: func.func @residual
// CHECK: %[[Y:.*]] = stablehlo.maximum
// CHECK: stablehlo.compare GT, %[[Y]],
func.func @residual(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>,
                    %w: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %x = stablehlo.add %a, %b : tensor<4x8xf32>
  %y = stablehlo.maximum %x, %zero : tensor<4x8xf32>
  %c = stablehlo.compare GT, %x, %zero
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %p, %c : tensor<4x8xf32>, tensor<4x8xi1>
}

// A sum with a bias is cheap to make again; a result that no product reads may
// not be kept; another number than zero tells something else.
// CHECK-LABEL: func.func @others
// CHECK: %[[X0:.*]] = stablehlo.add
// CHECK: stablehlo.compare GT, %[[X0]],
// CHECK: %[[X1:.*]] = stablehlo.add
// CHECK: stablehlo.compare GT, %[[X1]],
// CHECK: %[[X2:.*]] = stablehlo.add
// CHECK: stablehlo.compare GT, %[[X2]],
func.func @others(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %v: tensor<8xf32>,
                  %w: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xi1>,
        tensor<4x8xf32>, tensor<4x8xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  %bias = stablehlo.broadcast_in_dim %v, dims = [1]
      : (tensor<8xf32>) -> tensor<4x8xf32>
  %x0 = stablehlo.add %a, %bias : tensor<4x8xf32>
  %y0 = stablehlo.maximum %x0, %zero : tensor<4x8xf32>
  %c0 = stablehlo.compare GT, %x0, %zero
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %p0 = stablehlo.dot_general %y0, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %x1 = stablehlo.add %a, %b : tensor<4x8xf32>
  %y1 = stablehlo.maximum %x1, %zero : tensor<4x8xf32>
  %c1 = stablehlo.compare GT, %x1, %zero
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %x2 = stablehlo.add %b, %b : tensor<4x8xf32>
  %y2 = stablehlo.maximum %x2, %zero : tensor<4x8xf32>
  %c2 = stablehlo.compare GT, %x2, %one
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %p2 = stablehlo.dot_general %y2, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %p0, %c0, %y1, %c1, %p2, %c2
      : tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xi1>,
        tensor<4x8xf32>, tensor<4x8xi1>
}
