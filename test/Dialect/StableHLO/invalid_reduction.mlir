// Reductions, windows, select_and_scatter, map and batch norms, each with one
// mistake in its shapes, windows, regions or text. It has to give exactly the
// errors noted above it. A failure means that a mistake passes, or that its
// message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @reduce_c1(%x: tensor<4x8xf32>, %z: tensor<f32>, %y: tensor<8xf32>) {
  // expected-error @+2 {{expects each input of shape [4, 8] (got [8])}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %y, %z, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @reduce_c2(%x: tensor<4x8xf32>, %z: tensor<i32>) {
  // expected-error @+2 {{expects input and initial value of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<i32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_init(%x: tensor<4x8xf32>, %z: tensor<1xf32>) {
  // expected-error @+2 {{expects each initial value of shape [] (got [1])}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<1xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c3() {
  // expected-error @+2 {{expects at least one input}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"() <{dimensions = array<i64: 0>}> ({
    stablehlo.return
  }) : () -> ()
  return
}

// -----

func.func @reduce_c4(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects dimensions in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_c5(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects dimensions to be unique (got 0 twice)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0, 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c6_arguments(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects 2 region arguments (got 1)}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c6_values(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects 1 values returned by the region (got 0)}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c6_types(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects region arguments and returned value 0 to be one 0-dimensional tensor type}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f64>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_c7(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<8xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_applies(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expected a commutative operation of two operands, got 'stablehlo.subtract'}}
  stablehlo.reduce(%x init: %z) applies stablehlo.subtract across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_terminator(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects a region that ends with stablehlo.return}}
  "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    llvm.unreachable
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @reduce_window_c4(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects 2 window_dimensions (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c5(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects window sizes of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c6(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects 2 window strides (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c7(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects window strides of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c8(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects 2 base dilations (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, base_dilations = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c9(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects base dilations of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, base_dilations = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c10(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects 2 window dilations (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, window_dilations = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c11(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects window dilations of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, window_dilations = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c12(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects padding of shape [2, 2]}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, padding = dense<0> : tensor<2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_c13(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects a region on elements to which 'f32' can be promoted}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x7xi32>
  return
}

// -----

func.func @reduce_window_c15(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x7xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_window_overflow(%x: tensor<4x8xf32>, %z: tensor<f32>) {
  // expected-error @+2 {{expects padding that leaves dimension 1 a size that can be represented}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [9223372036854775807, 9223372036854775807]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c1(%x: tensor<4x8xf32>, %y: tensor<4x4xi32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects operand and source of one element type}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xi32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c2(%x: tensor<4x8xf32>, %y: tensor<4x5xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects the source of shape [4, 4] (got [4, 5])}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x5xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c4(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects 2 window_dimensions (got 1)}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c6(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects 2 window strides (got 1)}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c9(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects a comparator that returns tensor<i1>}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c10(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects region arguments and returned value 0 to be one 0-dimensional tensor type}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_and_scatter_c11(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expects the result of shape [4, 8] (got [4, 7])}}
  "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @map_c2() {
  // expected-error @+1 {{expected 1 or more operands, but found 0}}
  "stablehlo.map"() <{dimensions = array<i64>}> ({
    stablehlo.return
  }) : () -> tensor<f32>
  return
}

// -----

func.func @map_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimensions 0 to 2 in order}}
  "stablehlo.map"(%x) <{dimensions = array<i64: 1, 0>}> ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @map_c4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a region that returns one element of the result}}
  "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @map_c4_arguments(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 1 region arguments (got 2)}}
  "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @map_c4_types(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects region arguments that are elements of the inputs}}
  "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f64>):
    %s = stablehlo.convert %a : (tensor<f64>) -> tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @batch_norm_inference_c1(%x: tensor<4x8xf32>, %f: tensor<8xf32>) {
  // expected-error @+2 {{expects feature_index in range [0, 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.batch_norm_inference"(%x, %f, %f, %f, %f) <{epsilon = 0.0 : f32, feature_index = 2 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @batch_norm_training_c3(%x: tensor<4x8xf32>, %f: tensor<4xf32>) {
  // expected-error @+2 {{expects per-feature values of shape [8] (got [4])}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.batch_norm_training"(%x, %f, %f) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_grad_c3(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>, %f: tensor<8xf32>) {
  // expected-error @+2 {{expects grad_output of shape [4, 8] (got [8, 4])}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.batch_norm_grad"(%x, %f, %f, %f, %y) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @reducer_attributes(%x: tensor<4xf32>, %i: tensor<f32>) {
  %0 = stablehlo.reduce(%x init: %i) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    // expected-error@+1 {{expected ','}}
    reducer(%a: tensor<f32> {whale.fed_by = 0}, %b: tensor<f32>) {
      stablehlo.return %a : tensor<f32>
    }
  return
}
