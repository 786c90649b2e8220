// Sharding rules of reductions, windows and sorts. Each remark says which
// dimensions may be split, and by which operation the partial results are then
// combined. Where parts of devices cannot be combined, the dimension has to be
// whole. By a wrong rule, devices would compute something else.

// RUN: whale-opt %s -whale-print-rules -split-input-file -verify-diagnostics -o /dev/null

// Reductions, windows, sorts.

func.func @f(%a: tensor<8x4xf32>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark@+1 {{[a, b], [] -> [a] where a=8, b=4 sum; linear in 0 and 1}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  // expected-remark-re@+1 {{[a, b], [] -> [a] where a=8, b=4 product{{$}}}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.multiply across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // expected-remark-re@+1 {{[a, b], [] -> [a] where a=8, b=4 max{{$}}}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xi32>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<2147483647> : tensor<i32>
  // expected-remark-re@+1 {{[a, b], [] -> [a] where a=8, b=4 min{{$}}}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.minimum across dimensions = [1] : (tensor<8x4xi32>, tensor<i32>) -> tensor<8xi32>
  return
}

// -----

func.func @f(%a: tensor<8x4xi1>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<true> : tensor<i1>
  // expected-remark-re@+1 {{[a, b], [] -> [a] where a=8, b=4 and{{$}}}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.and across dimensions = [1] : (tensor<8x4xi1>, tensor<i1>) -> tensor<8xi1>
  return
}

// -----

func.func @f(%a: tensor<8x4xi1>) {
  // expected-remark@+1 {{ -> []}}
  %z = stablehlo.constant dense<false> : tensor<i1>
  // expected-remark-re@+1 {{[a, b], [] -> [a] where a=8, b=4 or{{$}}}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.or across dimensions = [1] : (tensor<8x4xi1>, tensor<i1>) -> tensor<8xi1>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %z: tensor<f32>) {
  // An initial value that isn't the identity would count once a device.
  // expected-remark@+1 {{[a, b], [] -> [a] where a=8, b=4 whole; linear in 0 and 1}}
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %z: tensor<f32>, %i: tensor<8x4xi32>, %j: tensor<i32>) {
  // Of several results the terms are not known: a largest value and its place.
  // expected-remark@+1 {{[a, b], [a, c], [], [] -> [a], [a] where a=8, b=4 whole, c=4 whole}}
  %0:2 = stablehlo.reduce(%a init: %z), (%i init: %j) across dimensions = [1] : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
      reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {
    %1 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %r, %s : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %z: tensor<f32>) {
  // A dimension along which windows are single is split, one with neighbours
  // is whole.
  // expected-remark@+1 {{[a, b], [] -> [a, c] where a=8, b=4 whole, c=3 whole; linear in 0 and 1}}
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %z: tensor<f32>) {
  // Windows side by side are blocks.
  // expected-remark@+1 {{[a, bc], [] -> [a, b] where a=8, b=2, c=2 whole}}
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @f(%a: tensor<8x5xf32>, %z: tensor<f32>) {
  // A row is left over.
  // expected-remark@+1 {{[a, b], [] -> [a, c] where a=8, b=5 whole, c=2 whole}}
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x5xf32>, tensor<f32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>, %s: tensor<8x2xf32>, %z: tensor<f32>) {
  // expected-remark@+1 {{[a, bc], [a, b], [] -> [a, bd] where a=8, b=2, c=2 whole, d=2 whole}}
  %0 = "stablehlo.select_and_scatter"(%a, %s, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<8x2xf32>, tensor<f32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x4xf32>) {
  // Rows are sorted apart.
  // expected-remark@+1 {{[a, b] -> [a, c] where a=8, b=4 whole, c=4 whole}}
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
