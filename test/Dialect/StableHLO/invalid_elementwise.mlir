// Elementwise operations, comparisons, bit casts, select and clamp, each with
// one mistake: shapes or element types that disagree, numbers out of range,
// text that does not parse. It has to give exactly the errors noted above it. A
// failure means that a mistake passes, or that its message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @add_c1(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  "stablehlo.add"(%x, %y) : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @add_types(%x: tensor<4xindex>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of booleans, integers, floats or complex numbers}}
  stablehlo.add %x, %x : tensor<4xindex>
  return
}

// -----

func.func @ceil_i1(%x: tensor<4xi32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of floats}}
  stablehlo.ceil %x : tensor<4xi32>
  return
}

// -----

func.func @abs_c2(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.abs %x : tensor<4xcomplex<f32>>
  return
}

// -----

func.func @imag_c2(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.imag %x : (tensor<4xcomplex<f32>>) -> tensor<4xf64>
  return
}

// -----

func.func @is_finite_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  stablehlo.is_finite %x : (tensor<4x8xf32>) -> tensor<8xi1>
  return
}

// -----

func.func @reduce_precision_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects exponent_bits of at least 1}}
  stablehlo.reduce_precision %x, format = e0m3 : tensor<4x8xf32>
  return
}

// -----

func.func @reduce_precision_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects mantissa_bits of at least 0}}
  "stablehlo.reduce_precision"(%x) <{exponent_bits = 1 : i32, mantissa_bits = -1 : i32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_precision_format(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected a format such as e8m23, got 'x8'}}
  stablehlo.reduce_precision %x, format = x8 : tensor<4x8xf32>
  return
}

// -----

func.func @bitcast_convert_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{of shape [4, 8] (got [4, 4])}}
  stablehlo.bitcast_convert %x : (tensor<4x8xf32>) -> tensor<4x4xi32>
  return
}

// -----

func.func @bitcast_convert_parts(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a last dimension of 32 / 8 parts}}
  stablehlo.bitcast_convert %x : (tensor<4x8xf32>) -> tensor<4x8xi8>
  return
}

// -----

func.func @bitcast_convert_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects no conversion between real and complex numbers}}
  stablehlo.bitcast_convert %x : (tensor<4x8xf32>) -> tensor<4x4xcomplex<f32>>
  return
}

// -----

func.func @complex_c2(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x8xcomplex<f32>>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.complex"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f64>>
  return
}

// -----

func.func @complex_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected a tensor of complex numbers}}
  stablehlo.complex %x, %x : tensor<4x8xf32>
  return
}

// -----

func.func @compare_c1(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>) {
  // expected-error @+2 {{expects operands of one element type (got 'f32' and 'i32')}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.compare EQ, %x, %y : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xi1>
  return
}

// -----

func.func @compare_c2(%x: tensor<4x8xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  return
}

// -----

func.func @compare_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a compare_type that fits 'f32' (got SIGNED)}}
  stablehlo.compare EQ, %x, %x, SIGNED : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  return
}

// -----

func.func @compare_c4(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{expects direction EQ or NE for complex numbers}}
  stablehlo.compare LT, %x, %x : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  return
}

// -----

func.func @compare_keyword(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected one of [EQ, NE, GE, GT, LE, LT]}}
  stablehlo.compare XX, %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  return
}

// -----

func.func @select_c1(%x: tensor<4x8xf32>, %p: tensor<4xi1>) {
  // expected-error @+2 {{expects pred of shape [4, 8] (got [4])}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.select %p, %x, %x : tensor<4xi1>, tensor<4x8xf32>
  return
}

// -----

func.func @select_c2(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>, %p: tensor<i1>) {
  // expected-error @+2 {{expects values of one element type (got 'f32' and 'i32')}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.select %p, %x, %y : (tensor<i1>, tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_shape(%x: tensor<4x8xf32>, %y: tensor<8xf32>, %p: tensor<i1>) {
  // expected-error @+2 {{expects on_false of shape [4, 8] (got [8])}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.select %p, %x, %y : (tensor<i1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_types(%x: tensor<4x8xf32>, %p: tensor<i1>) {
  // expected-error @+1 {{expected a functional type or two types}}
  stablehlo.select %p, %x, %x : tensor<i1>
  return
}

// -----

func.func @clamp_c1(%x: tensor<4x8xf32>, %y: tensor<8xf32>) {
  // expected-error @+2 {{expects min of shape [4, 8] (got [8])}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.clamp %y, %x, %x : (tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @clamp_c2(%x: tensor<4x8xf32>, %y: tensor<8xf32>) {
  // expected-error @+2 {{expects max of shape [4, 8] (got [8])}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.clamp %x, %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @clamp_c3(%x: tensor<4x8xf32>, %y: tensor<i32>) {
  // expected-error @+2 {{expects operands of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.clamp %y, %x, %x : (tensor<i32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @result_accuracy_mode(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects no tolerances in mode DEFAULT}}
  stablehlo.tanh %x {result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : tensor<4x8xf32>
  return
}

// -----

func.func @result_accuracy_negative(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects tolerances that are not negative}}
  stablehlo.tanh %x {result_accuracy = #stablehlo.result_accuracy<ulps = -1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4x8xf32>
  return
}

// -----

func.func @result_accuracy_field(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{unknown field 'foo'}}
  stablehlo.tanh %x {result_accuracy = #stablehlo.result_accuracy<foo = 1>} : tensor<4x8xf32>
  return
}

// -----

func.func @function_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 2 operand and 1 result types}}
  stablehlo.add %x, %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
