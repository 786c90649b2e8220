// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @rng_c1(%a: tensor<f32>, %b: tensor<f64>) {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  // expected-error @+2 {{expects operands of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f64>, tensor<1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @rng_c2(%a: tensor<i32>, %b: tensor<i32>) {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  // expected-error @+2 {{expects floats for distribution NORMAL (got 'i32')}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.rng %a, %b, %s, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>
  return
}

// -----

func.func @rng_c3(%a: tensor<f32>, %b: tensor<f32>) {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  // expected-error @+2 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5xf32>
  return
}

// -----

func.func @rng_bit_generator_c1(%s: tensor<2xui64>) {
  // expected-error @+1 {{expects output_state of the type of initial_state}}
  stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return
}

// -----

func.func @rng_bit_generator_c2(%s: tensor<2xf32>) {
  // expected-error @+1 {{expects a 1-dimensional state of integers}}
  stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xf32>) -> (tensor<2xf32>, tensor<4xui32>)
  return
}

// -----

func.func @rng_bit_generator_c2_philox(%s: tensor<4xui64>) {
  // expected-error @+1 {{expects a state of 2 or 3 elements (got 4)}}
  stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<4xui64>) -> (tensor<4xui64>, tensor<4xui32>)
  return
}

// -----

func.func @rng_bit_generator_c2_threefry(%s: tensor<3xui64>) {
  // expected-error @+1 {{expects a state of 2 elements (got 3)}}
  stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return
}
