// An error in an installed package says where the user's code calls it, and
// notes say where they belong.
// RUN: rm -rf %t && split-file %s %t

// RUN: not whale-compile %t/callback.mlir --cluster=1 -o %t/o.whale 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CALLBACK --implicit-check-not=error:
// CALLBACK: /p/site-packages/equinox/_errors.py:111:18: error: a call of a Python function (jax.debug.print, jax.pure_callback, ...) is not supported: a program of whale-compile can't call back into Python; start Python with EQX_ON_ERROR=nan in its environment, and equinox's error_if gives NaN where it would raise; called from train.py:7:3{{$}}

// RUN: not whale-compile %t/loop.mlir --cluster=1 -o %t/o.whale 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LOOP --implicit-check-not=error:
// LOOP: model.py:2:1: error: micro-batches: {{.*}}; sum.py:1:1: the operand comes from here; search.py:9:1: this is the loop{{$}}

//--- callback.mlir
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
      : (tensor<4xf32>) -> tensor<4xf32> loc(#error)
  return %0 : tensor<4xf32>
}
#raise = loc("/p/site-packages/equinox/_errors.py":111:18)
#jit = loc("/p/site-packages/equinox/_jit.py":3:1)
#user = loc("train.py":7:3)
#error = loc(callsite(#raise at callsite(#jit at #user)))

//--- loop.mlir
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<4x4xf32>, %n: tensor<f32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%h = %x, %i = %n) : tensor<8x4xf32>, tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %zero
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %sum = stablehlo.reduce(%h init: %zero) applies stablehlo.add
        across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
        loc("sum.py":1:1)
    %tanh = stablehlo.tanh %sum : tensor<4xf32> loc("model.py":2:1)
    %all = stablehlo.broadcast_in_dim %tanh, dims = [1]
        : (tensor<4xf32>) -> tensor<8x4xf32>
    %left = stablehlo.subtract %h, %all : tensor<8x4xf32>
    %next = stablehlo.dot_general %left, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %j = stablehlo.tanh %i : tensor<f32>
    stablehlo.return %next, %j : tensor<8x4xf32>, tensor<f32>
  } loc("search.py":9:1)
  return %0#0 : tensor<8x4xf32>
}
}
