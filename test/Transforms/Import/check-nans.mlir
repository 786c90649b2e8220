// Which operations whale-check-nans looks at: what computes floating-point
// numbers, inside of branches and of loops of known length, and what @main
// returns. On the wrong side a NaN would have another maker, or none.

// RUN: whale-opt %s -whale-check-nans -split-input-file | FileCheck %s
// RUN: not whale-opt %s -split-input-file -whale-check-nans \
// RUN:   -whale-lift-callbacks 2>&1 | FileCheck %s --check-prefix=TOOL

// TOOL: error: debug_nans: only wh.jit says which operation made a NaN; leave the key out of whale.config

module attributes {whale.config = {debug_nans = true}} {
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[Y:.*]] = stablehlo.sqrt
// CHECK-NEXT: stablehlo.compare NE, %[[Y]], %[[Y]]
// CHECK: stablehlo.custom_call {{.*}}index = -1
// CHECK: stablehlo.return
// Nothing of the loop as a whole.
// CHECK-NOT: custom_call
// CHECK: %[[Z:.*]]:2 = stablehlo.while
// CHECK-NOT: custom_call
// CHECK: stablehlo.compare NE, %[[Z]]#1, %[[Z]]#1
// CHECK: stablehlo.custom_call {{.*}}index = -1
// Moving data makes none.
// CHECK: stablehlo.is_finite
// CHECK-NEXT: stablehlo.reshape
// CHECK-NEXT: return
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<2x2xi1> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %three
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.sqrt %a : tensor<4xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<4xf32>
  }
  %1:2 = stablehlo.while(%i = %zero, %a = %0#1) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.sqrt %a : tensor<4xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<4xf32>
  }
  %2 = stablehlo.is_finite %1#1 : (tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.reshape %2 : (tensor<4xi1>) -> tensor<2x2xi1>
  return %3 : tensor<2x2xi1>
}
}

// -----

module attributes {whale.config = {debug_nans = true}} {
// Under its name: whether it has one.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.compare NE
// CHECK: stablehlo.custom_call {{.*}}index = -2
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "w"}) {
  return %x : tensor<4xf32>
}
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.sqrt
// CHECK-NEXT: return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sqrt %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
