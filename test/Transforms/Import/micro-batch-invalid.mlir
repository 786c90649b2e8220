// Steps that are refused with micro-batches: one part of the mini-batch needs
// something of the others in the middle of the model, or the numbers of samples
// and micro-batches do not fit. Each has to give its error, and the notes that
// lead to the cause. A step of the first kind that passes would compute another
// result, or the model of all samples at once.

// RUN: whale-opt %s --whale-micro-batch --split-input-file --verify-diagnostics

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// Batch norm between layers: its gradient has a sum over all samples, too.
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note@+1 {{the operand comes from here}}
  %2 = stablehlo.broadcast_in_dim %1, dims = [1]
      : (tensor<4xf32>) -> tensor<8x4xf32>
  // expected-error@+1 {{micro-batches: 'stablehlo.subtract' needs operand #1 of the whole mini-batch, for a statistic of all samples, as a mean over the mini-batch: with 2 micro-batches that would be another result; use one micro-batch, or statistics of each sample, or without a gradient (jax.lax.stop_gradient), or those of each micro-batch for a batch norm (wh.Config({"batch_norm": "micro"}))}}
  %3 = stablehlo.subtract %0, %2 : tensor<8x4xf32>
  %4 = stablehlo.tanh %3 : tensor<8x4xf32>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %gradient = stablehlo.dot_general %5, %w, contracting_dims = [1] x [1]
      {whale.phase = #whale.phase<backward>}
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.reduce(%gradient init: %zero) applies stablehlo.add
      across dimensions = [0] {whale.phase = #whale.phase<backward>}
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [1]
      {whale.phase = #whale.phase<backward>}
      : (tensor<4xf32>) -> tensor<8x4xf32>
  %8 = stablehlo.subtract %gradient, %7 {whale.phase = #whale.phase<backward>}
      : tensor<8x4xf32>
  return %5, %8 : tensor<8x4xf32>, tensor<8x4xf32>
}
}

// -----

module attributes {whale.config = {batch_norm = "micro", num_micro_batch = 3 : i64}} {
// The same with statistics of each micro-batch, which differ in size.
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error@+1 {{batch_norm: 'micro' takes micro-batches of one size, and 3 of them don't divide 8 samples; use a number of micro-batches that does}}
  %2 = stablehlo.broadcast_in_dim %1, dims = [1]
      : (tensor<4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x4xf32>
  %4 = stablehlo.tanh %3 : tensor<8x4xf32>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}
}

// -----

module attributes {whale.config = {batch_norm = "micro", num_micro_batch = 4 : i64}} {
// Samples that are divided into parts: there are 6 of them, not 12.
func.func @main(%x: tensor<6x2x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<12x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<6x2x4xf32>) -> tensor<12x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<12x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<12x4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error@+1 {{4 of them don't divide 6 samples}}
  %3 = stablehlo.broadcast_in_dim %2, dims = [1]
      : (tensor<4xf32>) -> tensor<12x4xf32>
  %4 = stablehlo.subtract %1, %3 : tensor<12x4xf32>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0]
      : (tensor<12x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32>
  return %5 : tensor<12x4xf32>
}
}

// -----

module attributes {whale.config = {batch_norm = "micro", num_micro_batch = 2 : i64}} {
// Booleans of statistics of each micro-batch, as results.
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4xi1>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1]
      : (tensor<4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x4xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // expected-error@+1 {{batch_norm: 'micro' can't return this of the statistics of each micro-batch, since their mean is no integer or boolean; use one micro-batch, or return it as a floating-point number}}
  %5 = stablehlo.compare GT, %1, %1
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %4, %5 : tensor<8x4xf32>, tensor<4xi1>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// A loop over samples, as lax.map is, of the model.
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<8> : tensor<i32>
  // expected-note@+1 {{the operand comes from here}}
  %0:2 = stablehlo.while(%i = %i0, %out = %zero) : tensor<i32>, tensor<8x4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %col = stablehlo.constant dense<0> : tensor<i32>
    %row = stablehlo.dynamic_slice %h, %i, %col, sizes = [1, 4]
        : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %s = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0]
        : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %next = stablehlo.dynamic_update_slice %out, %s, %i, %col
        : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>)
        -> tensor<8x4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next : tensor<i32>, tensor<8x4xf32>
  }
  // expected-error@+1 {{micro-batches: 'stablehlo.add' needs operand #1 of the whole mini-batch, for a loop that reads all samples, as lax.map or lax.scan over them: with 2 micro-batches that would be another result; use one micro-batch, or jax.vmap in the place of the loop}}
  %1 = stablehlo.add %h, %0#1 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 9 : i64}} {
// expected-error@+1 {{micro-batches: 9 of them are more than 8 samples of argument 0}}
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// expected-error@+1 {{micro-batches: 2 of them are more than 1 sample of argument 0; use at most as many}}
func.func @main(%x: tensor<1xf32> {whale.batch_dim = 0 : i64})
    -> tensor<1xf32> {
  %0 = stablehlo.tanh %x : tensor<1xf32>
  return %0 : tensor<1xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 4 : i64}} {
// expected-error@+1 {{4 of them are more than 3 parts that the step divides the samples into of argument 0}}
func.func @main(%x: tensor<12xf32> {whale.batch_dim = 0 : i64})
    -> tensor<3xf32> {
  // expected-note@+1 {{they are divided here}}
  %0 = stablehlo.reshape %x : (tensor<12xf32>) -> tensor<3x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
      across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
}

// -----

module attributes {whale.config = {num_micro_batch = 2 : i64}} {
// expected-error@+1 {{micro-batches: no argument carries a mini-batch of samples}}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// A schedule has nothing to order.
module attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8xf32> {
  // expected-error@+1 {{pipeline.strategy: '1f1b' orders micro-batches, and there is only one; set num_micro_batch, or leave pipeline.strategy out}}
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// Samples of the model are looked up among all: no micro-batch has them.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %i: tensor<8x1xi32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  // expected-note@+1 {{the operand comes from here}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // expected-error@+1 {{needs operand #0 of the whole mini-batch, for what is looked up among all samples: with 2 micro-batches that would be another result; use one micro-batch, or samples in the order in which they come}}
  %1 = "stablehlo.gather"(%0, %i) {dimension_numbers =
      #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}
      : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %2 = stablehlo.add %1, %0 : tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
}

// -----

// A line search: the mean of the samples, computed in a loop.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4xf32>, %start: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-note@+1 {{this is the loop}}
  %0 = stablehlo.while(%i = %start) : tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %zero
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
    // expected-note@+1 {{the operand comes from here}}
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    // expected-error@+1 {{for a statistic of all samples in a loop, as the loss in a line search: with 2 micro-batches that would be another result; use one micro-batch, or an optimizer that evaluates the loss once, or the statistic behind the loop, of what each of its rounds returns}}
    %next = stablehlo.tanh %sum : tensor<f32>
    stablehlo.return %next : tensor<f32>
  }
  return %0 : tensor<f32>
}
}

// -----

// All samples go on until the last of them stops.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>)
    -> tensor<8x4xf32> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<9.0> : tensor<8xf32>
  %count = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // expected-note@+1 {{this is the loop}}
  %0:2 = stablehlo.while(%h = %x, %n = %count) : tensor<8x4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    // expected-note@+1 {{the operand comes from here}}
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    // expected-error@+1 {{micro-batches: 'stablehlo.return' needs operand #0 of the whole mini-batch, for the condition of a loop, which all samples decide together: with 2 micro-batches that would be another result; use one micro-batch, or a loop of a fixed number of rounds, as lax.fori_loop, that leaves a sample as it is once its own condition is false; jax.vmap of a plain lax.while_loop over one sample does that, a library's own loop may not}}
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0]
        : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %h : tensor<8x4xi1>, tensor<8x4xf32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %4, %6 : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0 : tensor<8x4xf32>
}
}

// -----

// How many rounds there are depends on all samples.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>)
    -> (tensor<8x4xf32>, tensor<i32>) {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<9.0> : tensor<8xf32>
  %count = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // expected-note@+1 {{this is the loop}}
  %0:2 = stablehlo.while(%h = %x, %n = %count) : tensor<8x4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    // expected-note@+1 {{the operand comes from here}}
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    // expected-error@+1 {{micro-batches: 'stablehlo.return' needs operand #0 of the whole mini-batch, for the condition of a loop, which all samples decide together: with 2 micro-batches that would be another result; use one micro-batch, or a loop of a fixed number of rounds, as lax.fori_loop, that leaves a sample as it is once its own condition is false; jax.vmap of a plain lax.while_loop over one sample does that, a library's own loop may not}}
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0]
        : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %h : tensor<8x4xi1>, tensor<8x4xf32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %5, %6 : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<i32>
}
}

// -----

// The body holds samples by another condition than the loop's.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>)
    -> tensor<8x4xf32> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<9.0> : tensor<8xf32>
  %count = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // expected-note@+1 {{this is the loop}}
  %0:2 = stablehlo.while(%h = %x, %n = %count) : tensor<8x4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    // expected-note@+1 {{the operand comes from here}}
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    // expected-error@+1 {{micro-batches: 'stablehlo.return' needs operand #0 of the whole mini-batch, for the condition of a loop, which all samples decide together: with 2 micro-batches that would be another result; use one micro-batch, or a loop of a fixed number of rounds, as lax.fori_loop, that leaves a sample as it is once its own condition is false; jax.vmap of a plain lax.while_loop over one sample does that, a library's own loop may not}}
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LE, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0]
        : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %h : tensor<8x4xi1>, tensor<8x4xf32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %5, %6 : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0 : tensor<8x4xf32>
}
}

// -----

// Samples are held for now, and may go on with a later count.
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>)
    -> tensor<8x4xf32> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<9.0> : tensor<8xf32>
  %count = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // expected-note@+1 {{this is the loop}}
  %0:2 = stablehlo.while(%h = %x, %n = %count) : tensor<8x4xf32>, tensor<i32>
  cond {
    %7 = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.reduce(%h init: %7) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    // expected-note@+1 {{the operand comes from here}}
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    // expected-error@+1 {{micro-batches: 'stablehlo.return' needs operand #0 of the whole mini-batch, for the condition of a loop, which all samples decide together: with 2 micro-batches that would be another result; use one micro-batch, or a loop of a fixed number of rounds, as lax.fori_loop, that leaves a sample as it is once its own condition is false; jax.vmap of a plain lax.while_loop over one sample does that, a library's own loop may not}}
    stablehlo.return %3 : tensor<i1>
  } do {
    %7 = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.reduce(%h init: %7) applies stablehlo.add
        across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %limit
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0]
        : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %h : tensor<8x4xi1>, tensor<8x4xf32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %5, %6 : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0 : tensor<8x4xf32>
}
}
