// What whale-lift-callbacks makes of calls in branches and loops, of tokens and
// of equinox's error_if. Judged by the values that @main returns, and by what
// their attributes say of them. On the wrong side Python would make another
// call, or in another order.

// RUN: whale-opt %s -whale-lift-callbacks=python -split-input-file \
// RUN:   | FileCheck %s

// In a loop of 3 rounds that counts 2, 4, 6: row (i - 2) / 2 of a stack. The
// result that feeds %w is counted without the token.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[W:.*]]: tensor<4xf32> {whale.fed_by = 0 : i64})
// CHECK-SAME: -> (tensor<4xf32>, tensor<3x4xf32> {jax.result_info = "debug_print", whale.callback = {has_token, index = 5 : i64, loops = array<i64: 0, 3>, operand = 0 : i64, order = 1 : i64}})
// CHECK: %[[NONE:.*]] = stablehlo.constant dense<0.0{{.*}}> : tensor<3x4xf32>
// CHECK: %[[LOOP:.*]]:4 = stablehlo.while({{.*}} = %[[NONE]])
// CHECK: do {
// CHECK: stablehlo.add
// CHECK-DAG: %[[START:.*]] = stablehlo.subtract %{{.*}}, %{{.*}} : tensor<i32>
// CHECK: %[[ROUND:.*]] = stablehlo.divide %[[START]]
// CHECK: %[[ROW:.*]] = stablehlo.reshape %{{.*}} : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[ROW]], %[[ROUND]], %{{.*}}
// CHECK: return %[[LOOP]]#2, %[[LOOP]]#3
func.func @main(%t: !stablehlo.token {jax.token = true},
                %w: tensor<4xf32> {whale.fed_by = 1 : i64})
    -> (!stablehlo.token {jax.token = true}, tensor<4xf32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0:3 = stablehlo.while(%token = %t, %i = %two, %x = %w)
      : !stablehlo.token, tensor<i32>, tensor<4xf32>
  cond {
    %eight = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %eight
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%token, %x)
        {has_side_effect = true, mhlo.backend_config = {index = 5 : ui64}}
        : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
        loc("jit(f)/debug_print")
    %step = stablehlo.constant dense<2> : tensor<i32>
    %next = stablehlo.add %i, %step : tensor<i32>
    %y = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1, %next, %y
        : !stablehlo.token, tensor<i32>, tensor<4xf32>
  }
  return %0#0, %0#2 : !stablehlo.token, tensor<4xf32>
}

// -----

// The branch that is not taken gives zeros, and false. A call without operands
// is a boolean alone.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4xcomplex<f32>> {jax.result_info = "debug_print", whale.callback = {index = 0 : i64, loops = array<i64>, operand = 0 : i64, order = 0 : i64}}
// CHECK-SAME: tensor<i1> {jax.result_info = "debug_print", whale.callback = {index = 0 : i64, loops = array<i64>, order = 0 : i64}}
// CHECK-SAME: tensor<i1> {jax.result_info = "debug_print", whale.callback = {index = 1 : i64, loops = array<i64>, order = 1 : i64}}
// CHECK: %[[CASE:.*]]:2 = "stablehlo.case"
// CHECK: %[[PART:.*]] = stablehlo.constant dense<0.0{{.*}}> : tensor<4xf32>
// CHECK: %[[ZERO:.*]] = stablehlo.complex %[[PART]], %[[PART]]
// CHECK: %[[FALSE:.*]] = stablehlo.constant dense<false>
// CHECK: stablehlo.return %[[ZERO]], %[[FALSE]]
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK: stablehlo.return %{{.*}}, %[[TRUE]]
// CHECK: %[[ALWAYS:.*]] = stablehlo.constant dense<true>
// CHECK: return %[[CASE]]#0, %[[CASE]]#1, %[[ALWAYS]]
func.func @main(%i: tensor<i32>, %x: tensor<4xcomplex<f32>>) {
  "stablehlo.case"(%i) ({
    stablehlo.return
  }, {
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {mhlo.backend_config = {index = 0 : ui64}}
        : (tensor<4xcomplex<f32>>) -> () loc("jit(f)/debug_print")
    stablehlo.return
  }) : (tensor<i32>) -> ()
  stablehlo.custom_call @xla_ffi_python_cpu_callback()
      {mhlo.backend_config = {index = 1 : ui64}} : () -> ()
      loc("jit(f)/debug_print")
  return
}

// -----

// The value that error_if checks goes on without a branch.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[PRED:.*]]: tensor<i32>, %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[MESSAGE:.*]] = stablehlo.constant dense<7>
// CHECK: %[[OWN:.*]] = stablehlo.constant dense<1>
// CHECK: %[[RAISES:.*]] = stablehlo.compare EQ, %[[PRED]], %[[OWN]]
// CHECK-NOT: case
// CHECK: %[[Y:.*]] = stablehlo.negate %[[X]]
// CHECK: return %[[Y]], %[[MESSAGE]], %[[RAISES]]
#error = loc("/p/site-packages/equinox/_errors.py":111:18)
func.func @main(%pred: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%pred) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %i = stablehlo.constant dense<7> : tensor<i32>
    %flag = stablehlo.constant dense<false> : tensor<i1>
    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%i)
        {mhlo.backend_config = {index = 0 : ui64}}
        : (tensor<i32>) -> tensor<4xf32> loc(#error)
    // Of whale-check-nans.
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%flag)
        {mhlo.backend_config = {index = -1 : i64}}
        : (tensor<i1>) -> () loc(#error)
    %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%1)
        {mhlo.backend_config = {index = 1 : ui64}}
        : (tensor<4xf32>) -> tensor<4xf32> loc(#error)
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %3 = stablehlo.negate %0 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// Calls whose results the step uses stay, in loops of unknown length, too. What
// orders them is a number.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[TOKEN:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: %[[CALL:.*]]:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%[[TOKEN]], %[[X]])
// CHECK-SAME: (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while({{.*}} = %[[CALL]]#0, {{.*}} = %[[CALL]]#1) : tensor<i32>, tensor<4xf32>
// CHECK: stablehlo.custom_call @xla_ffi_python_cpu_callback
// CHECK-SAME: (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<i1>)
// CHECK: return %[[LOOP]]#1
func.func @main(%t: !stablehlo.token, %x: tensor<4xf32>)
    -> (!stablehlo.token, tensor<4xf32>) {
  %0:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x)
      {mhlo.backend_config = {index = 0 : ui64},
       operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>],
       result_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>]}
      : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  %1:2 = stablehlo.while(%token = %0#0, %y = %0#1)
      : !stablehlo.token, tensor<4xf32>
  cond {
    %2:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%token, %y)
        {mhlo.backend_config = {index = 1 : ui64}}
        : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<i1>)
    stablehlo.return %2#1 : tensor<i1>
  } do {
    stablehlo.return %token, %y : !stablehlo.token, tensor<4xf32>
  }
  return %1#0, %1#1 : !stablehlo.token, tensor<4xf32>
}

// -----

// A loop of no rounds makes no calls.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: tensor<i32>) -> tensor<i32>
// CHECK-NOT: custom_call
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.while(%i = %three) : tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %three
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%i)
        {mhlo.backend_config = {index = 0 : ui64}} : (tensor<i32>) -> ()
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %0 : tensor<i32>
}
