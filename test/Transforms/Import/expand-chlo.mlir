// RUN: whale-opt %s -split-input-file -whale-expand-chlo | FileCheck %s

// Values are compared with XLA's in test/Import/test_equivalence.py.

// CHECK-LABEL: func.func @simple
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK:         %[[S:.*]] = stablehlo.multiply %[[X]], %[[X]] : tensor<8xf32>
// CHECK:         %[[A:.*]] = stablehlo.abs %[[S]] : tensor<8xf32>
// CHECK:         %[[I:.*]] = stablehlo.constant dense<0x7F800000> : tensor<8xf32>
// CHECK:         stablehlo.compare EQ, %[[A]], %[[I]], FLOAT
// CHECK:         stablehlo.tan %[[X]]
func.func @simple(%x: tensor<8xf32>) -> (tensor<8xi1>, tensor<8xf32>) {
  %0 = chlo.square %x : tensor<8xf32> -> tensor<8xf32>
  %1 = chlo.is_inf %0 : tensor<8xf32> -> tensor<8xi1>
  %2 = chlo.tan %x : tensor<8xf32> -> tensor<8xf32>
  return %1, %2 : tensor<8xi1>, tensor<8xf32>
}

// -----

// Narrow floats are computed in f32 and rounded once.

// CHECK-LABEL: func.func @narrow
// CHECK-SAME:    (%[[X:.*]]: tensor<8xbf16>)
// CHECK:         %[[W:.*]] = stablehlo.convert %[[X]] : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK:         %[[R:.*]] = stablehlo.atan2 %[[W]], %{{.*}} : tensor<8xf32>
// CHECK-NEXT:    %[[N:.*]] = stablehlo.convert %[[R]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:    return %[[N]]
func.func @narrow(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %0 = chlo.atan %x : tensor<8xbf16> -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// -----

// The strategy and phase of an operation are those of its expansion.

// CHECK-LABEL: func.func @attributes
// CHECK:         stablehlo.atan2 {{.*}} {whale.phase = #whale.phase<backward>, whale.strategy = #whale.split<name = "a">}
func.func @attributes(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = chlo.atan %x {whale.phase = #whale.phase<backward>, whale.strategy = #whale.split<name = "a">} : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @top_k
// CHECK-SAME:    (%[[X:.*]]: tensor<4x9xf32>)
// CHECK:         %[[I:.*]] = stablehlo.iota dim = 1 : tensor<4x9xi32>
// CHECK:         %[[S:.*]]:2 = "stablehlo.sort"(%[[X]], %[[I]]) <{dimension = 1 : i64, is_stable = true}>
// CHECK:           stablehlo.compare GT, %{{.*}}, %{{.*}}, TOTALORDER
// CHECK:         stablehlo.slice %[[S]]#0 [0:4, 0:3]
// CHECK:         stablehlo.slice %[[S]]#1 [0:4, 0:3]
func.func @top_k(%x: tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  %values, %indices = chlo.top_k(%x, k = 3) : tensor<4x9xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return %values, %indices : tensor<4x3xf32>, tensor<4x3xi32>
}

// -----

// CHECK-LABEL: func.func @mulhi
// CHECK:         stablehlo.multiply {{.*}} : tensor<4xi64>
// CHECK:         stablehlo.shift_right_arithmetic {{.*}} : tensor<4xi64>
// CHECK:         stablehlo.convert {{.*}} : (tensor<4xi64>) -> tensor<4xi32>
func.func @mulhi(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %0 = chlo.mulhi %x, %y : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @conj
// CHECK:         %[[R:.*]] = stablehlo.real
// CHECK:         %[[I:.*]] = stablehlo.imag
// CHECK:         %[[N:.*]] = stablehlo.negate %[[I]]
// CHECK:         stablehlo.complex %[[R]], %[[N]]
func.func @conj(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = chlo.conj %x : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// A ragged free dimension: rows of group g meet the matrix g.

// CHECK-LABEL: func.func @ragged_dot
// CHECK-SAME:    (%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<2x8x3xf32>
// CHECK:         %[[C:.*]] = stablehlo.broadcast_in_dim %[[X]], dims = [1, 2] : (tensor<4x8xf32>) -> tensor<2x4x8xf32>
// CHECK:         %[[M:.*]] = stablehlo.select %{{.*}}, %[[C]], %{{.*}}
// CHECK:         stablehlo.dot_general %[[M]], %[[W]], contracting_dims = [2, 0] x [1, 0]
func.func @ragged_dot(%x: tensor<4x8xf32>, %w: tensor<2x8x3xf32>, %n: tensor<2xi32>) -> tensor<4x3xf32> {
  %0 = "chlo.ragged_dot"(%x, %w, %n) <{
    precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>],
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
    : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
