// RUN: whale-opt %s -split-input-file -verify-diagnostics \
// RUN:   -whale-lift-callbacks=python

// The two would be made in another order.
func.func @main(%t: !stablehlo.token, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x)
      {mhlo.backend_config = {index = 0 : ui64}}
      : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
  // expected-error@+1 {{a call of a Python function (jax.debug.print, jax.pure_callback, ...) is not supported where its result is used beside ordered calls without results, which are made when the step has ended; give one of them ordered=False}}
  %1:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%0, %x)
      {mhlo.backend_config = {index = 1 : ui64}}
      : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  return %1#1 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-note@+1 {{this is the loop}}
  %0 = stablehlo.while(%i = %x) : tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %zero
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    // expected-error@+1 {{is not supported in a loop whose number of rounds depends on what it computes; return the value and use it outside of the step, or write a loop of a fixed number of rounds, as jax.lax.scan}}
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%i)
        {mhlo.backend_config = {index = 0 : ui64}} : (tensor<f32>) -> ()
    %next = stablehlo.tanh %i : tensor<f32>
    stablehlo.return %next : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-note@+1 {{this is the loop}}
  %0 = stablehlo.while(%i = %x) : tensor<f32>
  cond {
    // expected-error@+1 {{is not supported in the condition of a loop; return the value}}
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%i)
        {mhlo.backend_config = {index = 0 : ui64}} : (tensor<f32>) -> ()
    %c = stablehlo.compare LT, %i, %i
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return %i : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%x)
      in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%y: tensor<2xf32>) {
    // expected-error@+1 {{is not supported inside of jax.shard_map; return the value and call the function outside of it}}
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%y)
        {mhlo.backend_config = {index = 0 : ui64}} : (tensor<2xf32>) -> ()
    sdy.return %y : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
