// RUN: whale-opt %s -whale-normalize | FileCheck %s

// CHECK-LABEL: func.func @no_ops
// CHECK-SAME:    (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @no_ops(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.convert %x : tensor<2x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.transpose %1, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = stablehlo.slice %3 [0:2, 0:3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// A transpose of equal extents is no no-op.
// CHECK-LABEL: func.func @square
// CHECK:         stablehlo.transpose
// CHECK:         stablehlo.broadcast_in_dim
func.func @square(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0, %1 : tensor<3x3xf32>, tensor<3x3xf32>
}

// CHECK-LABEL: func.func @chains
// CHECK-SAME:    (%[[X:.*]]: tensor<3xf32>, %[[Y:.*]]: tensor<2x3x4xf32>)
// CHECK-DAG:     stablehlo.broadcast_in_dim %[[X]], dims = [2] : (tensor<3xf32>) -> tensor<2x5x3xf32>
// CHECK-DAG:     stablehlo.reshape %[[Y]] : (tensor<2x3x4xf32>) -> tensor<4x6xf32>
// CHECK-DAG:     stablehlo.transpose %[[Y]], dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
func.func @chains(%x: tensor<3xf32>, %y: tensor<2x3x4xf32>) -> (tensor<2x5x3xf32>, tensor<4x6xf32>, tensor<4x3x2xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<5x3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<5x3xf32>) -> tensor<2x5x3xf32>
  %2 = stablehlo.reshape %y : (tensor<2x3x4xf32>) -> tensor<24xf32>
  %3 = stablehlo.reshape %2 : (tensor<24xf32>) -> tensor<4x6xf32>
  %4 = stablehlo.transpose %y, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0, 2] : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  return %1, %3, %5 : tensor<2x5x3xf32>, tensor<4x6xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: func.func @constants
// CHECK-DAG:     stablehlo.constant dense<2.000000e+00> : tensor<4x5xbf16>
// CHECK-DAG:     stablehlo.constant dense<{{\[}}[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
// CHECK-DAG:     stablehlo.constant dense<{{\[}}[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
// CHECK-DAG:     stablehlo.constant dense<-3.000000e+00> : tensor<2xf32>
// CHECK-DAG:     stablehlo.constant dense<2.000000e+00> : tensor<1x5xbf16>
// CHECK-NEXT:    return
func.func @constants() -> (tensor<4x5xbf16>, tensor<3x2xi32>, tensor<3x2xi32>, tensor<2xf32>, tensor<1x5xbf16>) {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.convert %c : (tensor<f32>) -> tensor<bf16>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<bf16>) -> tensor<4x5xbf16>
  %d = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %2 = stablehlo.transpose %d, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %3 = stablehlo.reshape %d : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %i = stablehlo.constant dense<-3> : tensor<2xi32>
  %4 = stablehlo.convert %i : (tensor<2xi32>) -> tensor<2xf32>
  %5 = stablehlo.slice %1 [0:1, 0:5] : (tensor<4x5xbf16>) -> tensor<1x5xbf16>
  return %1, %2, %3, %4, %5 : tensor<4x5xbf16>, tensor<3x2xi32>, tensor<3x2xi32>, tensor<2xf32>, tensor<1x5xbf16>
}

// Scans that JAX unrolls wholly concatenate the rows of a loop of no turns.
// CHECK-LABEL: func.func @empty_pieces
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3xf32>, %[[Y:[^:]*]]: tensor<1x3xf32>
// CHECK-NEXT:    %[[XY:.*]] = stablehlo.concatenate %[[X]], %[[Y]], dim = 0
// CHECK-NEXT:    return %[[X]], %[[XY]], %arg2
func.func @empty_pieces(%x: tensor<2x3xf32>, %y: tensor<1x3xf32>, %e: tensor<0x3xf32>) -> (tensor<2x3xf32>, tensor<3x3xf32>, tensor<0x3xf32>) {
  %0 = stablehlo.concatenate %e, %x, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.concatenate %x, %e, %y, dim = 0 : (tensor<2x3xf32>, tensor<0x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  %2 = stablehlo.concatenate %e, %e, dim = 0 : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<0x3xf32>
  return %0, %1, %2 : tensor<2x3xf32>, tensor<3x3xf32>, tensor<0x3xf32>
}

// What has no use goes.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT:    return
func.func @dead(%x: tensor<8xf32>) {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = stablehlo.add %0, %0 : tensor<8xf32>
  return
}

// CHECK-LABEL: func.func @same_bits
// CHECK-NEXT:    return %arg0
func.func @same_bits(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.bitcast_convert %x : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
