// RUN: whale-opt %s -split-input-file -verify-diagnostics

func.func @unary(%x: tensor<4xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = "chlo.erf"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @constant_like(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a value of the result's element type 'f32' (got 'i32')}}
  %0 = "chlo.constant_like"(%x) <{value = 1 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @constant_like_shape(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects operand and result of one shape}}
  %0 = "chlo.constant_like"(%x) <{value = 1.0 : f32}> : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @top_k(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects k from 0 to the size 8 of the last dimension (got 9)}}
  // expected-error @+1 {{failed to infer returned types}}
  %values, %indices = chlo.top_k(%x, k = 9) : tensor<4x8xf32> -> (tensor<4x9xf32>, tensor<4x9xi32>)
  return
}

// -----

func.func @top_k_scalar(%x: tensor<f32>) {
  // expected-error @+2 {{expects an operand of rank 1 or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %values, %indices = chlo.top_k(%x, k = 1) : tensor<f32> -> (tensor<f32>, tensor<i32>)
  return
}

// -----

func.func @top_k_type(%x: tensor<4xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<1xf32>', 'tensor<1xi32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  %values, %indices = chlo.top_k(%x, k = 1) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return
}

// -----

func.func @ragged_dim(%a: tensor<4x8xf32>, %w: tensor<2x8x3xf32>, %s: tensor<2xi32>) {
  // expected-error @+1 {{expects lhs_contracting_dimensions inside the rank of its operand (got 2)}}
  %0 = "chlo.ragged_dot"(%a, %w, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @ragged_count(%a: tensor<4x8xf32>, %w: tensor<2x8x3xf32>, %s: tensor<2xi32>) {
  // expected-error @+1 {{expects as many lhs as rhs contracting dimensions}}
  %0 = "chlo.ragged_dot"(%a, %w, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @ragged_size(%a: tensor<4x8xf32>, %w: tensor<2x8x3xf32>, %s: tensor<2xi32>) {
  // expected-error @+1 {{expects contracting dimensions of equal sizes (got 8 and 3)}}
  %0 = "chlo.ragged_dot"(%a, %w, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @ragged_one(%a: tensor<4x8xf32>, %w: tensor<2x8x3xf32>, %s: tensor<2xi32>) {
  // expected-error @+1 {{expects one ragged dimension (got 0)}}
  %0 = "chlo.ragged_dot"(%a, %w, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  return
}
