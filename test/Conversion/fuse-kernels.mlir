// Which elementwise operations, reductions and slices become one loop. A value
// in between is kept in memory only where it is costly to compute again, or
// where its user reads it at computed places. Judged by the loops that are left
// and what each computes. Half precision has to be rounded as often as without
// fusion.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels))' -split-input-file | FileCheck %s

// The squares are never stored.
// CHECK-LABEL: @sum_of_squares
// CHECK-COUNT-2: linalg.generic
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: linalg.generic
func.func @sum_of_squares(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add
      across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// An exponential with two users is computed once, and kept.
// CHECK-LABEL: @kept
// CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>)
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @kept(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %1 = stablehlo.add %0, %x : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A row is not computed again for each line.
// CHECK-LABEL: @not_repeated
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.addf
func.func @not_repeated(%x: tensor<8xf32>, %y: tensor<4x8xf32>)
    -> tensor<4x8xf32> {
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1]
      : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.add %1, %y : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// What is heavy is kept by its first user that lasts; what is cheap is computed
// from it again, and not kept beside it.
// CHECK-LABEL: @heavy_and_cheap
// CHECK: %[[FIRST:.*]]:2 = linalg.generic {{.*}} ins(%arg0, %arg1
// CHECK: math.tanh
// CHECK: arith.mulf
// CHECK: whale.matmul
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[FIRST]]#0 :
// CHECK: arith.subf
// CHECK: arith.mulf
func.func @heavy_and_cheap(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>)
    -> tensor<8x8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %t = stablehlo.tanh %x : tensor<8x8xf32>
  %c = stablehlo.subtract %one, %t : tensor<8x8xf32>
  %p = stablehlo.multiply %t, %y : tensor<8x8xf32>
  %m = whale.matmul %p, %p {batch = array<i64>, m = array<i64: 8, 8, 8>,
      n = array<i64: 8, 1, 1>, k = array<i64: 8, 1, 8>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = stablehlo.multiply %m, %c : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// The same in half precision, where each step is rounded.
// CHECK-LABEL: @heavy_and_cheap_in_half_precision
// CHECK: %[[FIRST:.*]]:2 = linalg.generic {{.*}} ins(%arg0, %arg1
// CHECK: math.tanh
// CHECK: whale.matmul
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[FIRST]]#0 :
// CHECK: arith.subf
// CHECK: arith.mulf
func.func @heavy_and_cheap_in_half_precision(
    %x: tensor<8x8xbf16>, %y: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %one = stablehlo.constant dense<1.0> : tensor<8x8xbf16>
  %half = stablehlo.constant dense<0.5> : tensor<8x8xbf16>
  %t = stablehlo.tanh %x : tensor<8x8xbf16>
  %h = stablehlo.multiply %half, %t : tensor<8x8xbf16>
  %c = stablehlo.subtract %one, %h : tensor<8x8xbf16>
  %p = stablehlo.multiply %t, %y : tensor<8x8xbf16>
  %m = whale.matmul %p, %p {batch = array<i64>, m = array<i64: 8, 8, 8>,
      n = array<i64: 8, 1, 1>, k = array<i64: 8, 1, 8>}
    : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %0 = stablehlo.multiply %m, %c : tensor<8x8xbf16>
  return %0 : tensor<8x8xbf16>
}

// -----

// Two results of one operation meet again in its only user: one loop.
// CHECK-LABEL: @meet_again
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @meet_again(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %e = stablehlo.exponential %x : tensor<8xf32>
  %p = stablehlo.multiply %e, %y : tensor<8xf32>
  %q = stablehlo.divide %p, %e : tensor<8xf32>
  %0 = stablehlo.add %p, %q : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Every operation in half precision rounds its result, fused or not.
// CHECK-LABEL: @rounded_each_time
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: math.tanh
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: linalg.yield
func.func @rounded_each_time(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %0 = stablehlo.multiply %x, %x : tensor<8xbf16>
  %1 = stablehlo.tanh %0 : tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// -----

// CHECK-LABEL: @rounded_by_wish
// CHECK: arith.mulf
// CHECK-NEXT: arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.subf
func.func @rounded_by_wish(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<8xf32>
  %1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xbf16>
  %2 = stablehlo.convert %1 : (tensor<8xbf16>) -> tensor<8xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// A maximum of half precision is found in f32.
// CHECK-LABEL: @wide_maximum
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: arith.maximumf {{.*}} : f32
func.func @wide_maximum(%x: tensor<4x8xbf16>) -> tensor<4xbf16> {
  %c = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum
      across dimensions = [1] : (tensor<4x8xbf16>, tensor<bf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// A reshape that drops dimensions of size one is in no one's way.
// CHECK-LABEL: @dropped_dimension
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: arith.negf
// CHECK-NOT: stablehlo.reshape
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @dropped_dimension(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.exponential %x : tensor<1x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x8xf32>) -> tensor<8xf32>
  %2 = stablehlo.negate %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A slice at a computed place is read where it lies, by each of its users.
// CHECK-LABEL: @slice_read_twice
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: tensor.extract %arg0
// CHECK: math.cos
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @slice_read_twice(%x: tensor<4x8xf32>, %i: tensor<i32>,
    %w: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8x1xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.dynamic_slice %x, %i, %c, sizes = [1, 8]
      : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  %r = stablehlo.reshape %s : (tensor<1x8xf32>) -> tensor<8xf32>
  %0 = stablehlo.exponential %r : tensor<8xf32>
  %t = stablehlo.transpose %s, dims = [1, 0]
      : (tensor<1x8xf32>) -> tensor<8x1xf32>
  %1 = stablehlo.cosine %t : tensor<8x1xf32>
  return %0, %1 : tensor<8xf32>, tensor<8x1xf32>
}

// -----

// What is carried on and also kept in a stack is made and stored by one loop.
// CHECK-LABEL: @kept_in_stack
// CHECK: %[[E:.*]]:2 = linalg.generic
// CHECK: math.exp
// CHECK: linalg.yield
// CHECK: stablehlo.dynamic_update_slice %arg1, %[[E]]#1, %arg2
// CHECK-NOT: linalg.generic
// CHECK: return %[[E]]#0
func.func @kept_in_stack(%x: tensor<8xf32>, %stack: tensor<4x8xf32>,
    %i: tensor<i32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1]
      : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %c
      : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
      -> tensor<4x8xf32>
  return %0, %2 : tensor<8xf32>, tensor<4x8xf32>
}

// -----

// Not if the stack is read between the two: it would be overwritten too early.
// CHECK-LABEL: @read_in_between
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%arg1
// CHECK: linalg.generic
// CHECK: linalg.yield %in
// CHECK: stablehlo.dynamic_update_slice %arg1
func.func @read_in_between(%x: tensor<8xf32>, %stack: tensor<4x8xf32>,
    %i: tensor<i32>) -> (tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %n = stablehlo.negate %stack : tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1]
      : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = stablehlo.dynamic_update_slice %stack, %1, %i, %c
      : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
      -> tensor<4x8xf32>
  return %0, %2, %n : tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A pad reads its operand at places that it computes, so it can't compute it for
// itself: what is cheap is made beside what it needs, before the pad.
// CHECK-LABEL: @captured_in_between
// CHECK: %[[E:.*]]:2 = linalg.generic
// CHECK: math.exp
// CHECK: arith.negf
// CHECK: linalg.generic {{.*}} ins(%[[E]]#0 :
// CHECK: tensor.extract %[[E]]#1
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @captured_in_between(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<8xf32>
  %n = stablehlo.negate %e : tensor<8xf32>
  %p = stablehlo.pad %n, %zero, low = [3], high = [-3], interior = [0]
      : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.add %p, %e : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The same with a concatenation of parts of cheap values.
// CHECK-LABEL: @captured_behind_others
// CHECK: %[[T:.*]] = linalg.generic
// CHECK: math.tanh
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[T]]
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[T]]
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[T]]
// CHECK: tensor.extract %[[A]]
// CHECK: tensor.extract %[[B]]
// CHECK: return
func.func @captured_behind_others(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>)
    -> tensor<4x8xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<4x8xf32>
  %t = stablehlo.tanh %x : tensor<4x8xf32>
  %m = stablehlo.multiply %t, %c : tensor<4x8xf32>
  %n = stablehlo.negate %m : tensor<4x8xf32>
  %a = stablehlo.slice %n [0:4, 4:8] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %b = stablehlo.slice %m [0:4, 0:4] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %r = stablehlo.concatenate %a, %b, dim = 1
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %s = stablehlo.multiply %r, %y : tensor<4x8xf32>
  %0 = stablehlo.add %s, %t : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// An exponential is not computed again in each window that it is in.
// CHECK-LABEL: @windows
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-NOT: math.exp
// CHECK: return
func.func @windows(%x: tensor<100xf64>) -> tensor<81xf64> {
  %c = stablehlo.constant dense<0.0> : tensor<f64>
  %e = stablehlo.exponential %x : tensor<100xf64>
  %0 = "stablehlo.reduce_window"(%e, %c) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %s = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %s : tensor<f64>
  }) {window_dimensions = array<i64: 20>}
      : (tensor<100xf64>, tensor<f64>) -> tensor<81xf64>
  return %0 : tensor<81xf64>
}
