// Reductions and adding scatters have to start from the identity of their
// operation, and the initial value comes behind them: else each device would
// add it. Also regions in a wider type than their operands, windows that only
// repeat elements, and constants that a region takes from outside. Judged by
// the IR after whale-normalize.

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

// A region in a wider type takes converted operands.
// CHECK-LABEL: func.func @promote_reduce
// CHECK-SAME:    (%[[X:.*]]: tensor<8xbf16>
// CHECK:         %[[C:.*]] = stablehlo.convert %[[X]] {whale.strategy = #whale.split<name = "a">} : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK:         stablehlo.reduce(%[[C]] init: {{.*}}) applies stablehlo.add across dimensions = [0] {whale.strategy = #whale.split<name = "a">} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
func.func @promote_reduce(%x: tensor<8xbf16>, %init: tensor<bf16>) -> tensor<f32> {
  %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {whale.strategy = #whale.split<name = "a">} : (tensor<8xbf16>, tensor<bf16>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @promote_second
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xi8>
// CHECK:         %[[C:.*]] = stablehlo.convert %[[Y]] : (tensor<8xi8>) -> tensor<8xi32>
// CHECK:         stablehlo.reduce(%[[X]] init: {{.*}}), (%[[C]] init:
func.func @promote_second(%x: tensor<8xf32>, %y: tensor<8xi8>, %i: tensor<f32>, %j: tensor<i8>) -> (tensor<f32>, tensor<i32>) {
  %0:2 = "stablehlo.reduce"(%x, %y, %i, %j) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<8xf32>, tensor<8xi8>, tensor<f32>, tensor<i8>) -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}

// CHECK-LABEL: func.func @promote_scatter
// CHECK-SAME:    (%[[X:.*]]: tensor<8xbf16>, %[[I:.*]]: tensor<3x1xi32>, %[[U:.*]]: tensor<3xbf16>)
// CHECK-DAG:     %[[V:.*]] = stablehlo.convert %[[U]] : (tensor<3xbf16>) -> tensor<3xf32>
// CHECK-DAG:     %[[Y:.*]] = stablehlo.convert %[[X]] : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK:         "stablehlo.scatter"(%[[Y]], %[[I]], %[[V]])
func.func @promote_scatter(%x: tensor<8xbf16>, %i: tensor<3x1xi32>, %u: tensor<3xbf16>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xbf16>, tensor<3x1xi32>, tensor<3xbf16>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Its comparison goes on to see the narrow type.
// CHECK-LABEL: func.func @promote_select
// CHECK:         ^{{.*}}(%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>):
// CHECK-DAG:     %[[C:.*]] = stablehlo.convert %[[A]] : (tensor<f32>) -> tensor<bf16>
// CHECK-DAG:     %[[D:.*]] = stablehlo.convert %[[B]] : (tensor<f32>) -> tensor<bf16>
// CHECK:         stablehlo.compare GE, %[[C]], %[[D]]
func.func @promote_select(%x: tensor<8xbf16>, %s: tensor<4xbf16>, %i: tensor<bf16>) -> tensor<8xf32> {
  %0 = "stablehlo.select_and_scatter"(%x, %s, %i) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xbf16>, tensor<4xbf16>, tensor<bf16>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @promote_all_reduce
// CHECK-SAME:    (%[[X:.*]]: tensor<8xi8>)
// CHECK:         %[[C:.*]] = stablehlo.convert %[[X]]
// CHECK:         return %[[C]]
func.func @promote_all_reduce(%x: tensor<8xi8>) -> tensor<8xi32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<8xi8>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}

// The gradient of a mean over windows side by side gives each element to all of
// its window.
// CHECK-LABEL: func.func @spread
// CHECK-SAME:    (%[[X:.*]]: tensor<2x4x3xf32>)
// CHECK-NOT:     reduce_window
// CHECK:         %[[B:.*]] = stablehlo.broadcast_in_dim %[[X]], dims = [0, 1, 3] : (tensor<2x4x3xf32>) -> tensor<2x4x2x3xf32>
// CHECK:         %[[R:.*]] = stablehlo.reshape %[[B]] : (tensor<2x4x2x3xf32>) -> tensor<2x8x3xf32>
// CHECK:         return %[[R]]
func.func @spread(%x: tensor<2x4x3xf32>) -> tensor<2x8x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 1, 0] : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x9x3xf32>
  %init = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<f32>
  %1 = "stablehlo.reduce_window"(%0, %init) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 1, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x9x3xf32>, tensor<f32>) -> tensor<2x8x3xf32>
  return %1 : tensor<2x8x3xf32>
}

// Windows that overlap add up neighbours.
// CHECK-LABEL: func.func @overlap
// CHECK:         stablehlo.reduce_window
func.func @overlap(%x: tensor<4xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// A constant from outside comes inside, whatever it is made of.
// CHECK-LABEL: func.func @captured_constant
// CHECK:         stablehlo.reduce
// CHECK:         reducer(%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>)
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.multiply %[[B]], %[[C]]
// CHECK-NEXT:    stablehlo.add %[[A]], %[[M]]
func.func @captured_constant(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %k = stablehlo.convert %two : (tensor<i32>) -> tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.multiply %b, %k : tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<4xf32>
}

// Updates of 0.0 are never -0.0, and stay as they are where 0.0 is added; those
// of -0.0, and what is added to -0.0, may be.
// CHECK-LABEL: func.func @plusZero
// CHECK:         %[[S:.*]] = "stablehlo.scatter"
// CHECK:         %[[T:.*]] = "stablehlo.scatter"
// CHECK:         %[[U:.*]] = stablehlo.add %[[T]],
// CHECK:         return %[[S]], %[[U]]
func.func @plusZero(%i: tensor<3x1xi32>, %u: tensor<3xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %plus = stablehlo.constant dense<0.0> : tensor<8xf32>
  %minus = stablehlo.constant dense<-0.0> : tensor<8xf32>
  %0 = "stablehlo.scatter"(%plus, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  %1 = stablehlo.add %plus, %0 : tensor<8xf32>
  %2 = "stablehlo.scatter"(%minus, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  %3 = stablehlo.add %2, %plus : tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
