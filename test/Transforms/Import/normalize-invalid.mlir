// RUN: whale-opt %s -split-input-file -verify-diagnostics -whale-normalize

func.func @custom_call(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{custom_call @my_target is not supported}}
  %0 = stablehlo.custom_call @my_target(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @partition_id() -> tensor<ui32> {
    // expected-error@+1 {{'stablehlo.partition_id' op is not supported: Whale partitions the program itself}}
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}

// -----

func.func @two_processes(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.collective_permute' op is not supported: Whale partitions the program itself}}
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @rng(%a: tensor<f32>, %shape: tensor<1xi64>) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.rng' op is not supported: it draws from a hardware generator}}
  %0 = stablehlo.rng %a, %a, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{'stablehlo.tanh' op has a result of dynamic shape 'tensor<?x8xf32>'; only static shapes are supported}}
  %0 = stablehlo.tanh %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @two_halves(%x: tensor<8xf16>, %s: tensor<4xf16>, %i: tensor<f16>) -> tensor<8xbf16> {
  // expected-error@+1 {{'stablehlo.select_and_scatter' op adds in 'bf16' what it compares in 'f16', which is not supported; convert the operands}}
  %0 = "stablehlo.select_and_scatter"(%x, %s, %i) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f16>, tensor<f16>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %1 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %1 : tensor<bf16>
  }) : (tensor<8xf16>, tensor<4xf16>, tensor<f16>) -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// -----

func.func @main(%x: tensor<4x8xf32>, %k: tensor<f32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.reduce' op uses in its region a value from outside of it that is no constant; make it an operand}}
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.multiply %b, %k : tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %k: tensor<f32>) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.sort' op uses in its region a value from outside of it that is no constant; make it an operand}}
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{a call of a Python function (jax.debug.print, jax.pure_callback, ...) is not supported where nothing depends on its result in the end}}
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
      {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}}
      : (tensor<f32>) -> tensor<f32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.select %no, %0, %y : tensor<i1>, tensor<f32>
  return %1 : tensor<f32>
}
