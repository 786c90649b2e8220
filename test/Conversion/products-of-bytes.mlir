// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_90 few-products=0}))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_86 few-products=0}))' -split-input-file | FileCheck %s --check-prefix=SM86
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{few-products=0}))' -split-input-file | FileCheck %s --check-prefix=CPU

// The library needs rows of contracted elements: the right operand is copied.
// CHECK-LABEL: @integers
// CHECK: %[[RHS:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
// CHECK: whale.matmul %arg0, %[[RHS]]
// CHECK-SAME: k = array<i64: 32, 1, 1>
// CHECK-SAME: m = array<i64: 8, 32, 12>
// CHECK-SAME: n = array<i64: 12, 32, 1>
// CHECK-SAME: (tensor<8x32xi8>, tensor<12x32xi8>) -> tensor<8x12xi32>
// SM86-LABEL: @integers
// SM86: whale.matmul
// CPU-LABEL: @integers
// CPU-NOT: transpose
// CPU: stablehlo.dot_general
func.func @integers(%a: tensor<8x32xi8>, %b: tensor<32x12xi8>)
    -> tensor<8x12xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x32xi8>, tensor<32x12xi8>) -> tensor<8x12xi32>
  return %0 : tensor<8x12xi32>
}

// -----

// Elsewhere f8 is multiplied in f32.
// CHECK-LABEL: @floats
// CHECK-NOT: stablehlo.convert
// CHECK: whale.matmul {{.*}}(tensor<2x8x32xf8E4M3FN>, tensor<2x16x32xf8E5M2>) -> tensor<2x8x16xbf16>
// SM86-LABEL: @floats
// SM86-COUNT-2: stablehlo.convert
// SM86: whale.matmul {{.*}}(tensor<2x8x32xf32>, tensor<2x16x32xf32>) -> tensor<2x8x16xbf16>
// CPU-LABEL: @floats
// CPU-COUNT-2: stablehlo.convert
// CPU: whale.matmul
func.func @floats(%a: tensor<2x8x32xf8E4M3FN>, %b: tensor<2x16x32xf8E5M2>)
    -> tensor<2x8x16xbf16> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],
      contracting_dims = [2] x [2]
      : (tensor<2x8x32xf8E4M3FN>, tensor<2x16x32xf8E5M2>)
      -> tensor<2x8x16xbf16>
  return %0 : tensor<2x8x16xbf16>
}

// -----

// A remark says why the library has one not, and nothing is copied for it.
// CHECK-LABEL: @odd
// CHECK-NOT: transpose
// CHECK: stablehlo.dot_general
func.func @odd(%a: tensor<8x30xi8>, %b: tensor<30x12xi8>)
    -> tensor<8x12xi32> {
  // expected-remark@+1 {{this product is not cuBLASLt's: the contracted extent is no multiple of 4}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x30xi8>, tensor<30x12xi8>) -> tensor<8x12xi32>
  return %0 : tensor<8x12xi32>
}

// -----

// Tensor cores add products of f8 with fewer bits than f32 has.
// CHECK-LABEL: @exact
// CHECK: whale.matmul {{.*}}(tensor<8x32xf32>, tensor<32x16xf32>)
func.func @exact(%a: tensor<8x32xf8E4M3FN>, %b: tensor<32x16xf8E4M3FN>)
    -> tensor<8x16xf32> {
  // expected-remark@+1 {{this product is not cuBLASLt's: it asks for more precision}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0],
      precision = [HIGHEST, HIGHEST]
      : (tensor<8x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
