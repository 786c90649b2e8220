// RUN: whale-opt %s -whale-print-rules -split-input-file -verify-diagnostics -o /dev/null

// Elementwise operations: all tensors share every dimension; sums pass through
// what is linear in them.

func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  // expected-remark@+1 {{[a, b], [a, b] -> [a, b] where a=8, b=4; linear in 0 and 1}}
  %0 = stablehlo.add %a, %b : tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  // expected-remark@+1 {{[a, b], [a, b] -> [a, b] where a=8, b=4; linear in 0 and 1}}
  %0 = stablehlo.subtract %a, %b : tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  // A product is linear in each factor alone.
  // expected-remark@+1 {{[a, b], [a, b] -> [a, b] where a=8, b=4; linear in 0; linear in 1}}
  %0 = stablehlo.multiply %a, %b : tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  // A quotient only above.
  // expected-remark@+1 {{[a, b], [a, b] -> [a, b] where a=8, b=4; linear in 0}}
  %0 = stablehlo.divide %a, %b : tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8xi32>, %b: tensor<8xi32>) {
  // Integers divide with a remainder.
  // expected-remark@+1 {{[a], [a] -> [a] where a=8}}
  %0 = stablehlo.divide %a, %b : tensor<8xi32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8; linear in 0}}
  %0 = stablehlo.negate %a : tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8}}
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xbf16>) {
  // Sums of half precision are kept in f32, and rounded before they become
  // wider as before they become narrower.
  // expected-remark@+1 {{[a] -> [a] where a=8}}
  %0 = stablehlo.convert %a : (tensor<8xbf16>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%on: tensor<i1>, %a: tensor<8xbf16>, %b: tensor<8xf16>) {
  // In a loop, too, unless they have the range of f32.
  %0 = stablehlo.while(%go = %on) : tensor<i1>
  cond {
    stablehlo.return %go : tensor<i1>
  } do {
    // expected-remark@+1 {{[a] -> [a] where a=8; linear in 0}}
    %1 = stablehlo.convert %a : (tensor<8xbf16>) -> tensor<8xf32>
    // expected-remark@+1 {{[a] -> [a] where a=8}}
    %2 = stablehlo.convert %b : (tensor<8xf16>) -> tensor<8xf32>
    stablehlo.return %go : tensor<i1>
  }
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8; linear in 0}}
  %0 = stablehlo.convert %a : (tensor<8xf32>) -> tensor<8xf64>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8}}
  %0 = stablehlo.convert %a : (tensor<8xf32>) -> tensor<8xbf16>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8}}
  %0 = stablehlo.convert %a : (tensor<8xf32>) -> tensor<8xi32>
  return
}

// -----

func.func @f(%a: tensor<8x1x4xf32>) {
  // Dimensions of extent 1 have no factor.
  // expected-remark@+1 {{[a, 1, b] -> [a, 1, b] where a=8, b=4}}
  %0 = stablehlo.exponential %a : tensor<8x1x4xf32>
  return
}

// -----

func.func @f(%p: tensor<i1>, %a: tensor<8xf32>, %b: tensor<8xf32>) {
  // A scalar predicate goes with every part.
  // expected-remark@+1 {{[], [a], [a] -> [a] where a=8; linear in 1 and 2}}
  %0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<8xf32>
  return
}

// -----

func.func @f(%p: tensor<8xi1>, %a: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-remark@+1 {{[a], [a], [a] -> [a] where a=8; linear in 1 and 2}}
  %0 = stablehlo.select %p, %a, %b : tensor<8xi1>, tensor<8xf32>
  return
}

// -----

func.func @f(%l: tensor<f32>, %a: tensor<8xf32>, %h: tensor<f32>) {
  // expected-remark@+1 {{[], [a], [] -> [a] where a=8}}
  %0 = stablehlo.clamp %l, %a, %h : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-remark@+1 {{[a], [a] -> [a] where a=8}}
  %0 = stablehlo.compare LT, %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [a] where a=8}}
  %0 = stablehlo.bitcast_convert %a : (tensor<8xf32>) -> tensor<8xi32>
  return
}
