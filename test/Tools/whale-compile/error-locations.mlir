// An error in an installed package says where the user's code calls it, and
// notes say where they belong.
// RUN: rm -rf %t && split-file %s %t

// RUN: not whale-compile %t/callback.mlir --cluster=1 -o %t/o.whale 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CALLBACK --implicit-check-not=error:
// CALLBACK: /p/site-packages/equinox/_errors.py:111:18: error: custom_call @xla_ffi_python_cpu_callback is not supported: a program of whale-compile can't call back into Python; start Python with EQX_ON_ERROR=nan in its environment, and equinox's error_if gives NaN where it would raise; called from train.py:7:3{{$}}

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
func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64},
                %w: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.while(%i = %w) : tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %zero
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
        loc("sum.py":1:1)
    %next = stablehlo.tanh %sum : tensor<f32> loc("model.py":2:1)
    stablehlo.return %next : tensor<f32>
  } loc("search.py":9:1)
  return %0 : tensor<f32>
}
}
