// Loops that no sample enters, such as those that draw random bits, on two
// ranks. They are computed in shards if their users want shards, and whole if
// the shards would have to communicate in each round, or if a user wants all.
// Judged by the local shapes in the loop, and by the absence of gathers and
// all-reduces.

// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition --split-input-file \
// RUN:   | FileCheck %s

// A loop over whole values waits like any other operation: random bits are
// drawn in shards, also those of a key that another loop has read before. All
// values that take turns are laid out alike.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-COUNT-2: stablehlo.xor {{.*}} : tensor<4x6xui32>
// CHECK-NOT: tensor<8x6x
// CHECK-NOT: whale.all_
// CHECK: return
func.func @main(%key: tensor<2xui32>,
                %x: tensor<8x6xui32> {whale.batch_dim = 0 : i64})
    -> tensor<8x6xui32> {
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x6xui32> {
    %a = stablehlo.slice %key [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %b = stablehlo.slice %key [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %k0 = stablehlo.reshape %a : (tensor<1xui32>) -> tensor<ui32>
    %k1 = stablehlo.reshape %b : (tensor<1xui32>) -> tensor<ui32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %row = stablehlo.iota dim = 0 : tensor<8x6xui32>
    %col = stablehlo.iota dim = 1 : tensor<8x6xui32>
    %k0s = stablehlo.broadcast_in_dim %k0, dims = []
        : (tensor<ui32>) -> tensor<8x6xui32>
    %init = stablehlo.add %row, %k0s : tensor<8x6xui32>
    %1:6 = stablehlo.while(%i = %i0, %p = %init, %q = %col, %r = %row,
                           %u = %k0, %v = %k1)
        : tensor<i32>, tensor<8x6xui32>, tensor<8x6xui32>, tensor<8x6xui32>,
          tensor<ui32>, tensor<ui32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %us = stablehlo.broadcast_in_dim %u, dims = []
          : (tensor<ui32>) -> tensor<8x6xui32>
      %s = stablehlo.xor %r, %us : tensor<8x6xui32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s, %p, %q, %v, %u
          : tensor<i32>, tensor<8x6xui32>, tensor<8x6xui32>, tensor<8x6xui32>,
            tensor<ui32>, tensor<ui32>
    }
    %2 = stablehlo.add %x, %1#1 : tensor<8x6xui32>
    %3:4 = stablehlo.while(%i = %i0, %p = %init, %u = %k0, %v = %k1)
        : tensor<i32>, tensor<8x6xui32>, tensor<ui32>, tensor<ui32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %us = stablehlo.broadcast_in_dim %u, dims = []
          : (tensor<ui32>) -> tensor<8x6xui32>
      %s = stablehlo.xor %p, %us : tensor<8x6xui32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s, %v, %u
          : tensor<i32>, tensor<8x6xui32>, tensor<ui32>, tensor<ui32>
    }
    %4 = stablehlo.add %2, %3#1 : tensor<8x6xui32>
    whale.yield %4 : tensor<8x6xui32>
  }
  return %y : tensor<8x6xui32>
}

// -----

// Where the parts of a loop would have to exchange something in every
// iteration, as products of all rows do, everybody computes it whole and takes
// a part of the result.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.all_
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while
// CHECK: stablehlo.dot_general {{.*}} -> tensor<8x8xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<8x8xf32>
// CHECK: whale.local_slice %[[LOOP]]#1
// CHECK-NOT: whale.all_
// CHECK: return
func.func @main(%w: tensor<8x8xf32>,
                %x: tensor<8x8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x8xi1> {
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x8xi1> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %1:2 = stablehlo.while(%i = %i0, %p = %w) : tensor<i32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.dot_general %p, %p, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %t = stablehlo.dot_general %s, %p, contracting_dims = [0] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<8x8xf32>
    }
    %2 = stablehlo.compare LT, %0, %1#1
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>
    whale.yield %2 : tensor<8x8xi1>
  }
  return %y : tensor<8x8xi1>
}

// -----

// One that was drawn in shards is drawn whole after all where somebody needs
// all of it: that takes no exchange.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.all_
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while
// CHECK: stablehlo.multiply {{.*}} : tensor<8x8xf32>
// CHECK: whale.local_slice %[[LOOP]]#1
// CHECK: stablehlo.dot_general {{.*}} (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: whale.all_
// CHECK: return
func.func @main(%x: tensor<8x8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x8xf32> {
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x8xf32> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %row = stablehlo.iota dim = 0 : tensor<8x8xf32>
    %col = stablehlo.iota dim = 1 : tensor<8x8xf32>
    %1:2 = stablehlo.while(%i = %i0, %p = %col) : tensor<i32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %t = stablehlo.multiply %p, %row : tensor<8x8xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<8x8xf32>
    }
    %2 = stablehlo.add %x, %1#1 : tensor<8x8xf32>
    %3 = stablehlo.dot_general %2, %1#1, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    whale.yield %3 : tensor<8x8xf32>
  }
  return %y : tensor<8x8xf32>
}
