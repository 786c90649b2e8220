// RUN: whale-opt %s -whale-outline-micro-batches -split-input-file | FileCheck %s

// Two micro-batches are two calls of one function, of two rank classes as well.
// The slices of the argument differ, and come before.
// CHECK-LABEL: @rank_class_0
// CHECK: %[[FIRST:.*]] = stablehlo.slice %arg0 [0:2, 0:4]
// CHECK: %[[A:.*]] = call @micro_batch_0(%[[FIRST]], %arg1)
// CHECK: %[[SECOND:.*]] = stablehlo.slice %arg0 [2:4, 0:4]
// CHECK: %[[B:.*]] = call @micro_batch_0(%[[SECOND]], %arg1)
// CHECK: return %[[A]], %[[B]]
// CHECK-LABEL: @rank_class_1
// CHECK: call @micro_batch_0(%arg0, %arg1)
// CHECK: func.func private @micro_batch_0(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[Y:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK-NEXT: %[[Z:.*]] = stablehlo.tanh %[[Y]]
// CHECK-NEXT: return %[[Z]]
// CHECK-NOT: private
#y = loc("y")
#z = loc("z")
func.func @rank_class_0(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>)
    attributes {whale.ranks = array<i64: 0>} {
  %x0 = stablehlo.slice %x [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %y0 = stablehlo.dot_general %x0, %w, contracting_dims = [1] x [0]
      {whale.moment = 0 : i64}
      : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(#y)
  %z0 = stablehlo.tanh %y0 {whale.moment = 0 : i64} : tensor<2x4xf32> loc(#z)
  %x1 = stablehlo.slice %x [2:4, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %y1 = stablehlo.dot_general %x1, %w, contracting_dims = [1] x [0]
      {whale.moment = 1 : i64}
      : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(#y)
  %z1 = stablehlo.tanh %y1 {whale.moment = 1 : i64} : tensor<2x4xf32> loc(#z)
  return %z0, %z1 : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @rank_class_1(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>)
    -> tensor<2x4xf32> attributes {whale.ranks = array<i64: 1>} {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      {whale.moment = 0 : i64}
      : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(#y)
  %z = stablehlo.tanh %y {whale.moment = 0 : i64} : tensor<2x4xf32> loc(#z)
  return %z : tensor<2x4xf32>
}

// -----

// Another attribute, another place, another pattern of operands, or another
// result that is used behind: each its own function.
// CHECK-LABEL: @rank_class_0
// CHECK: call @micro_batch_0(%arg0, %arg1)
// CHECK: call @micro_batch_1(%arg0)
// CHECK: call @micro_batch_2(%arg0, %arg1)
// CHECK: call @micro_batch_3(%arg0, %arg1)
// CHECK: call @micro_batch_4(%arg0, %arg1)
// CHECK: call @micro_batch_0(%arg1, %arg0)
#a = loc("a")
#b = loc("b")
func.func @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>,
        tensor<4xf32>, tensor<4xi1>)
    attributes {whale.ranks = array<i64: 0>} {
  %s0 = stablehlo.add %x, %y {whale.moment = 0 : i64} : tensor<4xf32> loc(#a)
  %0 = stablehlo.compare LT, %s0, %y {whale.moment = 0 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#b)
  %s1 = stablehlo.add %x, %x {whale.moment = 1 : i64} : tensor<4xf32> loc(#a)
  %1 = stablehlo.compare LT, %s1, %x {whale.moment = 1 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#b)
  %s2 = stablehlo.add %x, %y {whale.moment = 2 : i64} : tensor<4xf32> loc(#a)
  %2 = stablehlo.compare GT, %s2, %y {whale.moment = 2 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#b)
  %s3 = stablehlo.add %x, %y {whale.moment = 3 : i64} : tensor<4xf32> loc(#a)
  %3 = stablehlo.compare LT, %s3, %y {whale.moment = 3 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#a)
  %s4 = stablehlo.add %x, %y {whale.moment = 4 : i64} : tensor<4xf32> loc(#a)
  %4 = stablehlo.compare LT, %s4, %y {whale.moment = 4 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#b)
  %s5 = stablehlo.add %y, %x {whale.moment = 5 : i64} : tensor<4xf32> loc(#a)
  %5 = stablehlo.compare LT, %s5, %x {whale.moment = 5 : i64}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#b)
  return %0, %1, %2, %3, %4, %s4, %5
      : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>,
        tensor<4xf32>, tensor<4xi1>
}

// -----

// A sum that is added to has its last use there. What one micro-batch does in
// two places is two functions.
// CHECK-LABEL: @rank_class_0
// CHECK: %[[FIRST:.*]] = call @micro_batch_0(%arg0)
// CHECK: %[[SUM:.*]] = call @micro_batch_1(%[[FIRST]], %arg1)
// CHECK: %[[LAST:.*]] = call @micro_batch_2(%[[SUM]])
// CHECK: return %[[LAST]], %[[SUM]]
// CHECK: func.func private @micro_batch_1(%arg0: tensor<4xf32> {whale.last_use}, %arg1: tensor<4xf32>)
// CHECK: func.func private @micro_batch_2(%arg0: tensor<4xf32>)
func.func @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>)
    attributes {whale.ranks = array<i64: 0>} {
  %0 = stablehlo.exponential %x {whale.moment = 0 : i64} : tensor<4xf32>
  %1 = stablehlo.add %0, %y {whale.moment = 1 : i64} : tensor<4xf32>
  %2 = stablehlo.exponential %1 {whale.moment = 0 : i64} : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What is cheap to compute again for a loop is not kept for it: the mask and
// the wide mean, but not the exponential, nor what a product needs whole.
// CHECK-LABEL: @rank_class_0
// CHECK: %[[KEPT:.*]]:3 = call @micro_batch_0(%arg0)
// CHECK: call @micro_batch_1(%arg0, %[[KEPT]]#0, %[[KEPT]]#1, %[[KEPT]]#2)
// CHECK: func.func private @micro_batch_1(%arg0: tensor<4x64xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x64xf32>, %arg3: tensor<4x64xf32>)
// CHECK: stablehlo.constant
// CHECK: stablehlo.compare GT, %arg0
// CHECK: stablehlo.broadcast_in_dim %arg1
// CHECK: stablehlo.dot_general %arg3
func.func @rank_class_0(%x: tensor<4x64xf32>)
    -> (tensor<4x64xf32>, tensor<4x4xf32>) attributes {whale.ranks = array<i64: 0>} {
  %zero = stablehlo.constant {whale.moment = 0 : i64} dense<0.0> : tensor<4x64xf32>
  %none = stablehlo.constant {whale.moment = 0 : i64} dense<0.0> : tensor<f32>
  %mask = stablehlo.compare GT, %x, %zero {whale.moment = 0 : i64}
      : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xi1>
  %sum = stablehlo.reduce(%x init: %none) applies stablehlo.add
      across dimensions = [1] {whale.moment = 0 : i64}
      : (tensor<4x64xf32>, tensor<f32>) -> tensor<4xf32>
  %wide = stablehlo.broadcast_in_dim %sum, dims = [0] {whale.moment = 0 : i64}
      : (tensor<4xf32>) -> tensor<4x64xf32>
  %e = stablehlo.exponential %x {whale.moment = 0 : i64} : tensor<4x64xf32>
  %n = stablehlo.negate %x {whale.moment = 0 : i64} : tensor<4x64xf32>
  %0 = stablehlo.select %mask, %wide, %e {whale.moment = 1 : i64}
      : tensor<4x64xi1>, tensor<4x64xf32>
  %1 = stablehlo.dot_general %n, %n, contracting_dims = [1] x [1]
      {whale.moment = 1 : i64}
      : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x64xf32>, tensor<4x4xf32>
}

// -----

// Numbers of a mask that take more arithmetic than a loop computes again.
// CHECK-LABEL: @rank_class_0
// CHECK: %[[MASK:.*]] = call @micro_batch_0()
// CHECK: call @micro_batch_1(%[[MASK]], %arg0)
func.func @rank_class_0(%x: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {whale.ranks = array<i64: 0>} {
  %rows = stablehlo.iota dim = 0 {whale.moment = 0 : i64} : tensor<64x64xi32>
  %columns = stablehlo.iota dim = 1 {whale.moment = 0 : i64} : tensor<64x64xi32>
  %mask = stablehlo.compare GE, %rows, %columns {whale.moment = 0 : i64}
      : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %0 = stablehlo.select %mask, %x, %x {whale.moment = 1 : i64}
      : tensor<64x64xi1>, tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
