// Costs too large for a number of 64 bits are compared all the same, and none is
// printed as inf: loops of 2^62 rounds inside one another, and a product of 1e22
// FLOPs.
//
// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1}, "memory_bytes": 1e18, "memory_bandwidth": 1}}, "nodes": [{"devices": [{"kind": "k", "slowdown": 1e6}, {"kind": "k"}]}]}' > %t.json
// RUN: whale-compile %s --cluster=%t.json --strategy=replicate --target=none --explain -o %t.whale | FileCheck %s --implicit-check-not='{{[^a-z](inf|nan)[^a-z]}}'
// RUN: whale-compile %s --cluster=%t.json --strategy=split --target=none --explain -o %t.whale | FileCheck %s --implicit-check-not='{{[^a-z](inf|nan)[^a-z]}}'
// CHECK: collectives of a step:

func.func @main(%w: tensor<16x16xf32>, %x: tensor<16x16xf32> {whale.batch_dim = 0}, %a: tensor<30000000x10000000xf32>, %b: tensor<10000000x30000000xf32>) -> (tensor<16x16xf32>, tensor<30000000x30000000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %many = stablehlo.constant dense<4611686018427387904> : tensor<i64>
  %r0:2 = stablehlo.while(%i0 = %zero, %v0 = %x) : tensor<i64>, tensor<16x16xf32>
  cond {
    %c0 = stablehlo.compare LT, %i0, %many : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c0 : tensor<i1>
  } do {
  %r1:2 = stablehlo.while(%i1 = %zero, %v1 = %v0) : tensor<i64>, tensor<16x16xf32>
  cond {
    %c1 = stablehlo.compare LT, %i1, %many : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c1 : tensor<i1>
  } do {
  %r2:2 = stablehlo.while(%i2 = %zero, %v2 = %v1) : tensor<i64>, tensor<16x16xf32>
  cond {
    %c2 = stablehlo.compare LT, %i2, %many : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c2 : tensor<i1>
  } do {
  %r3:2 = stablehlo.while(%i3 = %zero, %v3 = %v2) : tensor<i64>, tensor<16x16xf32>
  cond {
    %c3 = stablehlo.compare LT, %i3, %many : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c3 : tensor<i1>
  } do {
    %y = stablehlo.dot_general %v3, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %n3 = stablehlo.add %i3, %one : tensor<i64>
    stablehlo.return %n3, %y : tensor<i64>, tensor<16x16xf32>
  }
    %n2 = stablehlo.add %i2, %one : tensor<i64>
    stablehlo.return %n2, %r3#1 : tensor<i64>, tensor<16x16xf32>
  }
    %n1 = stablehlo.add %i1, %one : tensor<i64>
    stablehlo.return %n1, %r2#1 : tensor<i64>, tensor<16x16xf32>
  }
    %n0 = stablehlo.add %i0, %one : tensor<i64>
    stablehlo.return %n0, %r1#1 : tensor<i64>, tensor<16x16xf32>
  }
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<30000000x10000000xf32>, tensor<10000000x30000000xf32>) -> tensor<30000000x30000000xf32>
  return %r0#1, %p : tensor<16x16xf32>, tensor<30000000x30000000xf32>
}
