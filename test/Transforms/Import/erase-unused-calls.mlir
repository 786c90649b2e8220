// Which calls into Python whale-erase-unused-calls leaves: those that a result
// of @main or an effect depends on. On the wrong side a function would be called
// that jax.jit doesn't call, or an io_callback be lost.

// RUN: whale-opt %s -whale-erase-unused-calls -split-input-file | FileCheck %s

// What only an unused value needs is used by nobody; effects stay, in a branch
// with what the branch is chosen by.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<i32>)
// CHECK-NEXT: stablehlo.custom_call {{.*}}(%[[X]]) {has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}}
// CHECK-NEXT: "stablehlo.case"(%[[I]])
// CHECK-NEXT: stablehlo.custom_call {{.*}}index = 2
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0.0
// CHECK-NEXT: stablehlo.return %[[ZERO]]
// CHECK-NOT: custom_call
// CHECK: return %[[X]]
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
      {mhlo.backend_config = {index = 0 : ui64}}
      : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
      {has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}}
      : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = "stablehlo.case"(%i) ({
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {mhlo.backend_config = {index = 2 : ui64}} : (tensor<4xf32>) -> ()
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %4 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {mhlo.backend_config = {index = 3 : ui64}}
        : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %4 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %5 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %6 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {mhlo.backend_config = {index = 4 : ui64}}
        : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %6 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// Of a loop: %b feeds %a, a result; %c is carried for itself alone.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while({{.*}} = %{{.*}}, %[[A:.*]] = %[[X:.*]], %[[B:.*]] = %[[X]], %[[C:.*]] = %{{cst.*}})
// CHECK: do {
// CHECK: stablehlo.add
// CHECK-NEXT: %[[CALL:.*]] = stablehlo.custom_call @xla_ffi_python_cpu_callback(%[[B]])
// CHECK-NEXT: stablehlo.return %{{.*}}, %[[B]], %[[CALL]], %[[C]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %a = %x, %b = %x, %c = %x)
      : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %eight = stablehlo.constant dense<8> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %eight
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%b)
        {mhlo.backend_config = {index = 0 : ui64}}
        : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%c)
        {mhlo.backend_config = {index = 1 : ui64}}
        : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %next, %b, %1, %2
        : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}

// -----

// Without calls nothing changes.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.negate
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %x : tensor<4xf32>
}
