// What whale-micro-batch puts into the loop over micro-batches, before it,
// behind it or into a second one, and how it cuts, sums and joins values.
// Judged by the order of operations and by the shapes in the loop. On the wrong
// side, a value would be that of a part of the samples, or be computed once a
// micro-batch.

// RUN: whale-opt %s --whale-micro-batch --split-input-file | FileCheck %s

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A sum over samples is accumulated, a value of each sample joined, and what no
// sample enters computed once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32> {whale.batch_dim = 0 : i64}, %[[W:.*]]: tensor<4x3xf32>)
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x3xf32>) -> (tensor<f32>, tensor<8x3xf32>) {
  // CHECK: %[[V:.*]] = stablehlo.tanh %[[W]]
  // CHECK: %[[X0:.*]] = stablehlo.slice %[[X]] [0:4, 0:4]
  // CHECK: %[[X1:.*]] = stablehlo.slice %[[X]] [4:8, 0:4]
  // CHECK: %[[LOOP:.*]]:3 = whale.micro_batches [0, 0](%[[X0]], %[[X1]])
  // CHECK-SAME: reduce [#whale.reduction<sum>] batch_dims [0]
  // CHECK: ^bb0(%[[M:.*]]: tensor<4x4xf32>):
  // CHECK:   %[[Y:.*]] = stablehlo.dot_general %[[M]], %[[V]]
  // CHECK-SAME: (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK:   %[[S:.*]] = stablehlo.reduce(%[[Y]] init:
  // CHECK:   whale.yield %[[S]], %[[Y]] : tensor<f32>, tensor<4x3xf32>
  // CHECK: %[[JOINED:.*]] = stablehlo.concatenate %[[LOOP]]#1, %[[LOOP]]#2, dim = 0
  // CHECK: return %[[LOOP]]#0, %[[JOINED]]
  %v = stablehlo.tanh %w : tensor<4x3xf32>
  %y = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add
      across dimensions = [0, 1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<f32>
  return %s, %y : tensor<f32>, tensor<8x3xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 3 : i64}} {
// Moments of other sizes have regions of their own; positions in the batch
// count from the start of the moment.
// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[O0:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[O1:.*]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-DAG: %[[O2:.*]] = stablehlo.constant dense<6> : tensor<i32>
// CHECK: whale.micro_batches [0, 0, 1](%{{.*}}, %{{.*}}, %{{.*}}, %[[O0]], %[[O1]], %[[O2]]) batch_dims [0, -1]
// CHECK: ^bb0(%{{.*}}: tensor<3xi32>, %[[OFFSET:.*]]: tensor<i32>):
// CHECK:   stablehlo.broadcast_in_dim %[[OFFSET]]
// CHECK: ^bb0(%{{.*}}: tensor<2xi32>, %{{.*}}: tensor<i32>):
func.func @main(%x: tensor<8xi32> {whale.batch_dim = 0 : i64})
    -> tensor<8xi32> {
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.add %x, %0 : tensor<8xi32>
  return %1 : tensor<8xi32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// The count of a masked mean is computed first, of the whole mini-batch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32> {{.*}}, %[[MASK:.*]]: tensor<8xf32>
// CHECK: %[[COUNT:.*]] = stablehlo.reduce(%[[MASK]]
// CHECK: whale.micro_batches
// CHECK:   %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[COUNT]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK:   stablehlo.divide %{{.*}}, %[[ALL]] : tensor<4xf32>
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %mask: tensor<8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.reduce(%mask init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %all = stablehlo.broadcast_in_dim %count, dims = []
      : (tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.divide %x, %all : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A backward pass that needs a sum over the forward pass of all samples is a
// second loop, which gets what the first one kept of each moment.
// CHECK-LABEL: func.func @main(
// CHECK: %[[FIRST:.*]]:3 = whale.micro_batches
// CHECK:   whale.yield %{{.*}}, %{{.*}} : tensor<f32>, tensor<4xf32>
// CHECK: %[[SQUARE:.*]] = stablehlo.multiply %[[FIRST]]#0, %[[FIRST]]#0
// CHECK: whale.micro_batches [0, 0](%[[FIRST]]#1, %[[FIRST]]#2)
// CHECK:   stablehlo.broadcast_in_dim %[[SQUARE]]
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<8xf32>) -> tensor<f32> {
  %0 = stablehlo.multiply %x, %w : tensor<8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.multiply %1, %1 : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = []
      {whale.phase = #whale.phase<backward>} : (tensor<f32>) -> tensor<8xf32>
  %4 = stablehlo.multiply %3, %0
      {whale.phase = #whale.phase<backward>} : tensor<8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add
      across dimensions = [0] {whale.phase = #whale.phase<backward>}
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %5 : tensor<f32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// The gradient of a parameter that one branch uses is summed behind them.
// CHECK-LABEL: func.func @main(
// CHECK: whale.micro_batches
// CHECK-SAME: reduce [#whale.reduction<sum>]
// CHECK: %[[SUM:.*]] = "stablehlo.case"
// CHECK: stablehlo.dot_general {{.*}} : (tensor<4x2xf32>, tensor<4x2xf32>)
// CHECK: }) : (tensor<i32>) -> tensor<2x2xf32>
// CHECK: whale.yield %[[SUM]]
func.func @main(%x: tensor<8x2xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.case"(%n) ({
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
    stablehlo.return %1 : tensor<2x2xf32>
  }, {
    %zeros = stablehlo.constant dense<0.0> : tensor<2x2xf32>
    stablehlo.return %zeros : tensor<2x2xf32>
  }) : (tensor<i32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// What a branch or loop computes whole is cut where its part is wanted, at the
// sample where the moment starts.
// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[O0:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[O1:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK: whale.micro_batches [0, 0](%{{.*}}, %{{.*}}, %[[O0]], %[[O1]]) batch_dims
// CHECK: ^bb0(%{{.*}}: tensor<4xf32>, %[[START:.*]]: tensor<i32>):
// CHECK: %[[BOTH:.*]]:2 = "stablehlo.case"
// CHECK: }) : (tensor<i32>) -> (tensor<4xf32>, tensor<8xf32>)
// CHECK: %[[OWN:.*]] = stablehlo.dynamic_slice %[[BOTH]]#1, %[[START]], sizes = [4]
// CHECK: stablehlo.multiply %[[BOTH]]#0, %[[OWN]] : tensor<4xf32>
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %v: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%v init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.convert %sum : (tensor<f32>) -> tensor<i32>
  %0:2 = "stablehlo.case"(%n) ({
    %1 = stablehlo.tanh %x : tensor<8xf32>
    stablehlo.return %1, %v : tensor<8xf32>, tensor<8xf32>
  }, {
    stablehlo.return %x, %v : tensor<8xf32>, tensor<8xf32>
  }) : (tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
  %2 = stablehlo.multiply %0#0, %0#1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A forward behind an update waits for it in a loop of its own.
// CHECK-LABEL: func.func @main(
// CHECK: %[[GRADIENT:.*]] = whale.micro_batches
// CHECK: stablehlo.tanh
// CHECK: %[[MOVED:.*]] = stablehlo.subtract %arg1, %[[GRADIENT]]
// CHECK: whale.micro_batches
// CHECK: stablehlo.dot_general %{{.*}}, %[[MOVED]]
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>}
      : tensor<8x4xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0]
      {whale.phase = #whale.phase<backward>}
      : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.subtract %w, %1 {whale.phase = #whale.phase<forward>}
      : tensor<4x4xf32>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0]
      {whale.phase = #whale.phase<forward>}
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
}

// -----

// A sample that needs no more rounds stays as it is, so each moment has as many
// rounds as its own samples need.
// CHECK-LABEL: func.func @main(
// CHECK: whale.micro_batches
// CHECK: stablehlo.while
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.or
// CHECK-SAME: tensor<4xi1>
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x4xf32> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<9.0> : tensor<8xf32>
  %count = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%h = %x, %n = %count) : tensor<8x4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0]
        : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.exponential %h : tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %h : tensor<8x4xi1>, tensor<8x4xf32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %5, %6 : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0 : tensor<8x4xf32>
}
}

// -----

// What counts a random mask of the samples comes before the loop, with the loop
// that draws it.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.while
// CHECK: %[[COUNT:.*]] = stablehlo.reduce({{.*}} applies stablehlo.add
// CHECK: whale.micro_batches
// CHECK: stablehlo.divide
// CHECK: whale.yield
// CHECK-NOT: whale.micro_batches
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %key: tensor<i32>) -> tensor<8xf32> {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %counts = stablehlo.iota dim = 0 : tensor<8xi32>
  %0:2 = stablehlo.while(%i = %none, %bits = %counts)
      : tensor<i32>, tensor<8xi32>
  cond {
    %5 = stablehlo.compare LT, %i, %limit
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  } do {
    %5 = stablehlo.add %i, %one : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %key, dims = []
        : (tensor<i32>) -> tensor<8xi32>
    %7 = stablehlo.xor %bits, %6 : tensor<8xi32>
    stablehlo.return %5, %7 : tensor<i32>, tensor<8xi32>
  }
  %mask = stablehlo.convert %0#1 : (tensor<8xi32>) -> tensor<8xf32>
  %1 = stablehlo.multiply %x, %mask : tensor<8xf32>
  %2 = stablehlo.reduce(%mask init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = []
      : (tensor<f32>) -> tensor<8xf32>
  %4 = stablehlo.divide %1, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}
}

// -----

// A loop and a branch that need sums over the samples whole, and no samples, come
// once, after the moments.
// CHECK-LABEL: func.func @main(
// CHECK: %[[SUM:.*]] = whale.micro_batches
// CHECK-NOT: stablehlo.while
// CHECK-NOT: stablehlo.case
// CHECK: whale.yield
// CHECK: "stablehlo.case"
// CHECK-NEXT: stablehlo.sine %[[SUM]]
// CHECK: stablehlo.while(%{{.*}} = %[[SUM]])
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64}, %n: tensor<i32>)
    -> (tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = "stablehlo.case"(%n) ({
    %3 = stablehlo.sine %0 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }, {
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  %2 = stablehlo.while(%h = %0) : tensor<f32>
  cond {
    %3 = stablehlo.compare LT, %h, %zero
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.exponential %h : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }
  return %1, %2 : tensor<f32>, tensor<f32>
}
}

// -----

// One micro-batch is the step itself.
// CHECK-LABEL: func.func @main
// CHECK-NOT: whale.micro_batches
// CHECK: %[[Y:.*]] = stablehlo.tanh %arg0
// CHECK-NEXT: return %[[Y]]
module attributes {whale.config = {num_micro_batch = 1 : i64}} {
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// A shuffled mini-batch is shuffled once, before it is cut, and so are the
// places that its samples take, which a loop may find.
// CHECK-LABEL: func.func @main
// CHECK: %[[PLACES:.*]]:2 = stablehlo.while
// CHECK: %[[SHUFFLED:.*]] = "stablehlo.gather"(%arg0, %[[PLACES]]#1)
// CHECK-SAME: -> tensor<8x4xf32>
// CHECK: whale.micro_batches
// CHECK-NOT: gather
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %y: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %key: tensor<2xi32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %places = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %0:2 = stablehlo.while(%i = %zero, %p = %places)
      : tensor<i32>, tensor<8x1xi32>
  cond {
    %4 = stablehlo.compare LT, %i, %limit
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.add %i, %one : tensor<i32>
    %5 = stablehlo.slice %key [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [1]
        : (tensor<1xi32>) -> tensor<8x1xi32>
    %7 = stablehlo.xor %p, %6 : tensor<8x1xi32>
    stablehlo.return %4, %7 : tensor<i32>, tensor<8x1xi32>
  }
  %1 = "stablehlo.gather"(%x, %0#1) {dimension_numbers =
      #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}
      : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %2 = stablehlo.add %1, %y : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
}

// -----

// Samples in another order are looked up once, among all of them, also where
// they are a product with a parameter before they are needed whole.

// CHECK-LABEL: func.func @main
// CHECK: %[[G:.*]] = "stablehlo.gather"
// CHECK: stablehlo.slice %[[G]] [0:4, 0:4]
// CHECK: stablehlo.slice %[[G]] [4:8, 0:4]
// CHECK: whale.micro_batches
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.tanh
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
  func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64}) -> tensor<8x4xf32> {
    %i = stablehlo.constant {whale.phase = #whale.phase<forward>} dense<[[3], [7], [1], [0], [6], [2], [5], [4]]> : tensor<8x1xi32>
    %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> {whale.phase = #whale.phase<forward>} : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
    %d = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %t = stablehlo.tanh %d {whale.phase = #whale.phase<forward>} : tensor<8x4xf32>
    %m = stablehlo.multiply %t, %x {whale.phase = #whale.phase<forward>} : tensor<8x4xf32>
    return %m : tensor<8x4xf32>
  }
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// What needs a sum over all samples in each round of a loop, here to round it
// to f16, comes behind the moments in a loop of its own: the first one keeps
// the sums of its rounds.
// CHECK-LABEL: func.func @main(
// CHECK: %[[LOOP:.*]]:2 = whale.micro_batches [0, 0]
// CHECK-SAME: reduce [#whale.reduction<sum>
// CHECK:   stablehlo.while
// CHECK-SAME: tensor<3xf32>
// CHECK: whale.yield
// CHECK: %[[STACK:.*]] = stablehlo.convert %[[LOOP]]#{{[01]}} : (tensor<3xf32>) -> tensor<3xf16>
// CHECK: stablehlo.while(%{{.*}}) : tensor<i32>, tensor<f32>
// CHECK:   %[[ROW:.*]] = stablehlo.dynamic_slice %[[STACK]]
// CHECK:   %[[ONE:.*]] = stablehlo.reshape %[[ROW]]
// CHECK:   %[[WIDE:.*]] = stablehlo.convert %[[ONE]] : (tensor<f16>) -> tensor<f32>
// CHECK:   stablehlo.add %{{.*}}, %[[WIDE]]
func.func @main(%x: tensor<8xf16> {whale.batch_dim = 0 : i64})
    -> (tensor<f32>, tensor<f16>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.0> : tensor<f16>
  %r:3 = stablehlo.while(%i = %zero, %total = %none, %rest = %half)
      : tensor<i32>, tensor<f32>, tensor<f16>
  cond {
    %more = stablehlo.compare LT, %i, %three
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %sum = stablehlo.reduce(%x init: %half) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf16>, tensor<f16>) -> tensor<f16>
    %wide = stablehlo.convert %sum : (tensor<f16>) -> tensor<f32>
    %next = stablehlo.add %total, %wide : tensor<f32>
    %more = stablehlo.add %rest, %sum : tensor<f16>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %more : tensor<i32>, tensor<f32>, tensor<f16>
  }
  return %r#1, %r#2 : tensor<f32>, tensor<f16>
}
}

// -----

// A maximum of each round of a loop is one of each moment, and is reduced once
// behind them, as is the running one from a value that is not the least.
// CHECK-LABEL: func.func @main(
// CHECK: whale.micro_batches
// CHECK-SAME: max
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.while
// CHECK: return
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %least: tensor<f32>) -> (tensor<8xf32>, tensor<3xf32>, tensor<f32>) {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %stack = stablehlo.constant dense<0.0> : tensor<3xf32>
  %0:4 = stablehlo.while(%i = %none, %h = %x, %all = %stack, %most = %least)
      : tensor<i32>, tensor<8xf32>, tensor<3xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %three
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.sine %h : tensor<8xf32>
    %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.reshape %2 : (tensor<f32>) -> tensor<1xf32>
    %4 = stablehlo.dynamic_update_slice %all, %3, %i
        : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
    %5 = stablehlo.maximum %most, %2 : tensor<f32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %1, %4, %5
        : tensor<i32>, tensor<8xf32>, tensor<3xf32>, tensor<f32>
  }
  return %0#1, %0#2, %0#3 : tensor<8xf32>, tensor<3xf32>, tensor<f32>
}
}
