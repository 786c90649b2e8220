// What each kind of operation is lowered to: a linalg loop, a hand-built
// kernel, or nothing, as loops, library operations and updates of slices stay.
// Judged by iterators, maps and element types, and by the copies, branches and
// initial values that a lowering has to do without.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg))' -split-input-file | FileCheck %s

// CHECK-LABEL: @add
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK: arith.addf
func.func @add(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %a, %b : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A constant that is the same everywhere needs no operand.
// CHECK-LABEL: @splat
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<8xf32>)
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
func.func @splat(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.multiply %a, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Unsigned operands choose unsigned operations on signless scalars.
// CHECK-LABEL: @unsigned
// CHECK: builtin.unrealized_conversion_cast %arg0 : tensor<8xui32> to tensor<8xi32>
// CHECK: arith.maxui
// CHECK: builtin.unrealized_conversion_cast {{.*}} : tensor<8xi32> to tensor<8xui32>
func.func @unsigned(%a: tensor<8xui32>, %b: tensor<8xui32>) -> tensor<8xui32> {
  %0 = stablehlo.maximum %a, %b : tensor<8xui32>
  return %0 : tensor<8xui32>
}

// -----

// Sums of half precision are accumulated in f32.
// CHECK-LABEL: @half_sum
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK-SAME: outs(%{{.*}} : tensor<4xf32>)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
func.func @half_sum(%a: tensor<4x8xbf16>) -> tensor<4xbf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add
      across dimensions = [1] : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// A sum of one term is a loop over the results.
// CHECK-LABEL: @one_term
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK-SAME: ins(%arg0 : tensor<1x4x1xbf16>)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
func.func @one_term(%a: tensor<1x4x1xbf16>) -> tensor<4xbf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add
      across dimensions = [0, 2]
      : (tensor<1x4x1xbf16>, tensor<bf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// A dimension of size one that is padded is not copied for it.
// CHECK-LABEL: @pad_piece
// CHECK: stablehlo.reshape %arg0 : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK-NOT: linalg.generic
func.func @pad_piece(%a: tensor<4xf32>) -> tensor<3x4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [1]
      : (tensor<4xf32>) -> tensor<1x4xf32>
  %1 = stablehlo.pad %0, %c, low = [2, 0], high = [0, 0], interior = [0, 0]
      : (tensor<1x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// Bodies of loops are lowered, the loop stays.
// CHECK-LABEL: @loop
// CHECK: stablehlo.while
// CHECK-NOT: whale.trips
// CHECK: linalg.generic
// CHECK: arith.cmpi slt
// CHECK: linalg.generic
// CHECK: arith.addi
func.func @loop(%n: tensor<i32>, %x: tensor<2xi32>) -> tensor<i32> {
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<2xi32>
  cond {
    %c = stablehlo.constant dense<10> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.add %i, %c : tensor<i32>
    stablehlo.return %1, %y : tensor<i32>, tensor<2xi32>
  }
  return %0#0 : tensor<i32>
}

// -----

// How often a loop runs its body is written down where it is known.
// CHECK-LABEL: @counted
// CHECK: stablehlo.while{{.*}} attributes {whale.trips = 4 : i64}
func.func @counted(%x: tensor<2xi32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<2xi32>
  cond {
    %c = stablehlo.constant dense<10> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.add %i, %c : tensor<i32>
    stablehlo.return %1, %y : tensor<i32>, tensor<2xi32>
  }
  return %0#0 : tensor<i32>
}

// -----

// What is stored comes from a loop, which others can become a part of.
// CHECK-LABEL: @update
// CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%arg1
// CHECK: stablehlo.dynamic_update_slice %arg0, %[[U]], %arg2
func.func @update(%x: tensor<8xf32>, %u: tensor<3xf32>, %i: tensor<i32>)
    -> tensor<8xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i
      : (tensor<8xf32>, tensor<3xf32>, tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: @empty
// CHECK: stablehlo.constant dense<> : tensor<0x3xf32>
func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %0 = stablehlo.negate %x : tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

// -----

// A stack of which the loop stores every slice and reads none needs no initial
// value, one that it reads or leaves a slice of does.
// CHECK-LABEL: @stacks
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1.0
// CHECK-DAG: %[[LONG:.*]] = stablehlo.constant dense<2.0
// CHECK: %[[MEMORY:.*]] = whale.kernel() extent 1
// CHECK: stablehlo.while(%{{[^,]*}}, %{{[^ ]*}} = %[[MEMORY]], %{{[^ ]*}} = %[[ONE]], %{{[^ ]*}} = %[[LONG]])
func.func @stacks(%x: tensor<1x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %f = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  %l = stablehlo.constant dense<2.0> : tensor<5x8xf32>
  %0:4 = stablehlo.while(%i = %zero, %a = %f, %b = %f, %c = %l)
      : tensor<i32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %four, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.dynamic_update_slice %a, %x, %i, %zero
        : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
        -> tensor<4x8xf32>
    %d = stablehlo.add %b, %b : tensor<4x8xf32>
    %t = stablehlo.dynamic_update_slice %d, %x, %i, %zero
        : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
        -> tensor<4x8xf32>
    %u = stablehlo.dynamic_update_slice %c, %x, %i, %zero
        : (tensor<5x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
        -> tensor<5x8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s, %t, %u
        : tensor<i32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x8xf32>
  }
  return %0#1, %0#2, %0#3
      : tensor<4x8xf32>, tensor<4x8xf32>, tensor<5x8xf32>
}

// -----

// What is padded is read where it is: a further dimension of one element makes
// no copy.
// CHECK-LABEL: @padded_piece
// CHECK: stablehlo.reshape %arg0
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @padded_piece(%a: tensor<4x8xf32>) -> tensor<3x4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 2]
      : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.pad %0, %zero, low = [1, 0, 0], high = [1, 0, 0],
      interior = [0, 0, 0]
      : (tensor<1x4x8xf32>, tensor<f32>) -> tensor<3x4x8xf32>
  return %1 : tensor<3x4x8xf32>
}

// -----

// What a product reads is put together piece by piece.
// CHECK-LABEL: @pieces
// CHECK: whale.kernel(%arg0, %arg1) extent 4
// CHECK-NOT: scf.if
// CHECK: whale.matmul
func.func @pieces(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>,
    %w: tensor<16x3xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 1
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %1 = whale.matmul %0, %w {batch = array<i64>, m = array<i64: 4, 16, 3>,
      n = array<i64: 3, 1, 1>, k = array<i64: 16, 1, 3>}
      : (tensor<4x16xf32>, tensor<16x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// Long windows that stay inside are loops over their elements and, innermost,
// over neighbouring windows; what moves by more than one has those outside.
// CHECK-DAG: #[[NEAR:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2 + d3)>
// CHECK-DAG: #[[FAR:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 3 + d3 * 2)>
// CHECK-LABEL: @windows
// CHECK: linalg.generic {indexing_maps = [#[[NEAR]]
// CHECK-SAME: iterator_types = ["parallel", "reduction", "reduction", "parallel"]
// CHECK: linalg.generic {indexing_maps = [#[[FAR]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK-NOT: whale.kernel
// CHECK: return
func.func @windows(%x: tensor<2x100xf64>)
    -> (tensor<2x81xf64>, tensor<2x21xf64>) {
  %c = stablehlo.constant dense<0.0> : tensor<f64>
  %0 = "stablehlo.reduce_window"(%x, %c) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %s = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %s : tensor<f64>
  }) {window_dimensions = array<i64: 1, 20>}
      : (tensor<2x100xf64>, tensor<f64>) -> tensor<2x81xf64>
  %1 = "stablehlo.reduce_window"(%x, %c) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %s = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %s : tensor<f64>
  }) {window_dimensions = array<i64: 1, 20>, window_strides = array<i64: 1, 3>,
      window_dilations = array<i64: 1, 2>}
      : (tensor<2x100xf64>, tensor<f64>) -> tensor<2x21xf64>
  return %0, %1 : tensor<2x81xf64>, tensor<2x21xf64>
}

// -----

// A convolution that the library lacks reads a padded operand.
// CHECK: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d2, d3)>
// CHECK-LABEL: @convolution
// CHECK: tensor<2x11x3xf64>
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel"]
// CHECK-NOT: whale.kernel
// CHECK: return
func.func @convolution(%x: tensor<2x10x3xf64>, %k: tensor<5x3x8xf64>)
    -> tensor<2x4x8xf64> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {stride = [2], pad = [[1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x10x3xf64>, tensor<5x3x8xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}

// -----

// The output features of each of two groups are a dimension of their own.
// CHECK: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d3, d4 + d2 * 3)>
// CHECK-LABEL: @groups
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]
// CHECK-SAME: outs(%{{.*}} : tensor<2x6x2x4xi32>)
// CHECK: stablehlo.reshape {{.*}} -> tensor<2x6x8xi32>
// CHECK-NOT: whale.kernel
// CHECK: return
func.func @groups(%x: tensor<2x10x6xi32>, %k: tensor<5x3x8xi32>)
    -> tensor<2x6x8xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {}
      {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<2x10x6xi32>, tensor<5x3x8xi32>) -> tensor<2x6x8xi32>
  return %0 : tensor<2x6x8xi32>
}

// -----

// Windows that overlap: a loop over channels without a branch.
// CHECK-LABEL: @pool
// CHECK: whale.kernel
// CHECK-COUNT-6: scf.for
// CHECK-NOT: scf.
// CHECK: arith.cmpi eq
// CHECK-NEXT: arith.select
// CHECK-NEXT: memref.store
// CHECK: return
func.func @pool(%x: tensor<2x9x4xf32>, %y: tensor<2x4x4xf32>) -> tensor<2x9x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %y, %zero) <{
      window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x9x4xf32>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x9x4xf32>
  return %0 : tensor<2x9x4xf32>
}
