// Sharding rules of operations that only move elements. Each remark says which
// dimensions of operands and results are the same, or consist of each other
// (ab: a blocks of b), and which have to be whole. By a wrong rule, devices
// would hold the wrong elements.

// RUN: whale-opt %s -whale-print-rules -split-input-file -verify-diagnostics -o /dev/null

// Operations that move elements: which dimensions are which.

func.func @f(%a: tensor<8x4xf32>) {
  // expected-remark@+1 {{[b, a] -> [a, b] where a=4, b=8; linear in 0}}
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x6xf32>) {
  // Two dimensions become one, and one two.
  // expected-remark@+1 {{[a, b] -> [ab] where a=8, b=6; linear in 0}}
  %0 = stablehlo.reshape %a : (tensor<8x6xf32>) -> tensor<48xf32>
  return
}

// -----

func.func @f(%a: tensor<12xf32>) {
  // expected-remark@+1 {{[ab] -> [a, b] where a=3, b=4; linear in 0}}
  %0 = stablehlo.reshape %a : (tensor<12xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<6x4xf32>) {
  // Nothing is kept between dimensions that interleave.
  // expected-remark@+1 {{[c, a] -> [b, d] where a=4 whole, b=4 whole, c=6 whole, d=6 whole; linear in 0}}
  %0 = stablehlo.reshape %a : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x6x4x5xf32>) {
  // What is kept at either end stays.
  // expected-remark@+1 {{[a, e, b, c] -> [a, d, f, c] where a=2, b=4 whole, c=5, d=4 whole, e=6 whole, f=6 whole; linear in 0}}
  %0 = stablehlo.reshape %a : (tensor<2x6x4x5xf32>) -> tensor<2x4x6x5xf32>
  return
}

// -----

func.func @f(%a: tensor<1x8x1xf32>) {
  // expected-remark@+1 {{[1, a, 1] -> [a] where a=8; linear in 0}}
  %0 = stablehlo.reshape %a : (tensor<1x8x1xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-remark@+1 {{[b] -> [a, b] where a=8, b=4; linear in 0}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x1xf32>) {
  // expected-remark@+1 {{[a, 1] -> [a, b] where a=8, b=4; linear in 0}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<12xf32>) {
  // A block of a dimension that consists of such blocks keeps what is in it.
  // expected-remark@+1 {{[ba] -> [a] where a=4, b=3 whole; linear in 0}}
  %0 = stablehlo.slice %a [4:8] : (tensor<12xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<6x4xf32>) {
  // Nothing of the dimension is left to share.
  // expected-remark@+1 {{[b, a] -> [c, a] where a=4, b=6 whole, c=0 whole; linear in 0}}
  %0 = stablehlo.slice %a [6:6, 0:4] : (tensor<6x4xf32>) -> tensor<0x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>) {
  // Any other slice needs the dimension whole.
  // expected-remark@+1 {{[a, b] -> [a, c] where a=8, b=4 whole, c=2 whole; linear in 0}}
  %0 = stablehlo.slice %a [0:8, 1:3] : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>) {
  // expected-remark@+1 {{[a] -> [b] where a=8 whole, b=4 whole; linear in 0}}
  %0 = stablehlo.slice %a [0:8:2] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  // So with equal parts that are joined.
  // expected-remark@+1 {{[a, b], [a, b] -> [a, cb] where a=8, b=4, c=2 whole; linear in 0 and 1}}
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: tensor<3x4xf32>, %b: tensor<5x4xf32>) {
  // expected-remark@+1 {{[b, d], [c, d] -> [a, d] where a=8 whole, b=3 whole, c=5 whole, d=4; linear in 0 and 1}}
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %p: tensor<f32>) {
  // expected-remark@+1 {{[a, b], [] -> [a, cb] where a=8, b=4, c=3 whole; linear in 0 and 1}}
  %0 = stablehlo.pad %a, %p, low = [0, 4], high = [0, 4], interior = [0, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x12xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %p: tensor<f32>) {
  // expected-remark@+1 {{[a, b], [] -> [a, c] where a=8, b=4 whole, c=5 whole; linear in 0 and 1}}
  %0 = stablehlo.pad %a, %p, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x5xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>) {
  // expected-remark@+1 {{[b, a] -> [c, a] where a=4, b=8 whole, c=8 whole; linear in 0}}
  %0 = stablehlo.reverse %a, dims = [0] : tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %i: tensor<i32>) {
  // A whole dimension can be split, a part at a place that isn't known can't.
  // expected-remark@+1 {{[a, b], [], [] -> [a, c] where a=8, b=4 whole, c=2 whole; linear in 0}}
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [8, 2] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %u: tensor<8x2xf32>, %i: tensor<i32>) {
  // expected-remark@+1 {{[a, b], [a, c], [], [] -> [a, d] where a=8, b=4 whole, c=2 whole, d=4 whole; linear in 0 and 1}}
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<8x4xf32>, tensor<8x2xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f() {
  // expected-remark@+1 {{ -> [a, b] where a=8, b=4}}
  %0 = stablehlo.iota dim = 0 : tensor<8x4xi32>
  return
}

// -----

func.func @f() {
  // expected-remark@+1 {{ -> [a, b] where a=8, b=4}}
  %0 = stablehlo.constant dense<1.0> : tensor<8x4xf32>
  return
}
