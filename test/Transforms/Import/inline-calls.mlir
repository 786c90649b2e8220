// RUN: whale-opt %s -split-input-file -whale-inline-calls \
// RUN:   -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Call path and inner path make one path; unused functions go.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32> loc
// CHECK-NEXT:    %[[R:.*]] = stablehlo.negate %[[X]] : tensor<8xf32> loc("jit(s)/jit(f)/whale:split:2:0:/neg"("model.py":3:5))
// CHECK-NEXT:    return %[[R]]
// CHECK-NOT:   func.func
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(s)/jit(f)"("model.py":9:1))
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32> loc("whale:split:2:0:/neg"("model.py":3:5))
  return %0 : tensor<8xf32>
}
func.func private @unused(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// Called twice, the scope inside is two scopes; an operation without a source
// line has that of the call.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.negate {{.*}} loc("a/whale:split:2:0.0:/neg"("model.py":1:1))
// CHECK:         stablehlo.negate {{.*}} loc("b/whale:split:2:0.1:/neg"("model.py":2:1))
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("a"("model.py":1:1))
  %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32> loc("b"("model.py":2:1))
  return %1 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32> loc("whale:split:2:0:/neg")
  return %0 : tensor<8xf32>
}

// -----

// Calls inside of calls and inside of regions.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while
// CHECK:         do {
// CHECK-NOT:       call
// CHECK:           stablehlo.tanh {{.*}} loc("jit(s)/while/body/closed_call/jit(g)/tanh")
// CHECK:           stablehlo.return
// CHECK-NOT:   func.func
func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%a = %x, %i = %n) : tensor<8xf32>, tensor<i32>
  cond {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare GT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1:2 = func.call @body(%a, %i) : (tensor<8xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<i32>) loc("jit(s)/while/body/closed_call")
    stablehlo.return %1#0, %1#1 : tensor<8xf32>, tensor<i32>
  }
  return %0#0 : tensor<8xf32>
}
func.func private @body(%x: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<i32>) {
  %0 = call @g(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(g)")
  %c = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.subtract %i, %c : tensor<i32>
  return %0, %1 : tensor<8xf32>, tensor<i32>
}
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("tanh")
  return %0 : tensor<8xf32>
}

// -----

// A composite is its decomposition; a function may return an argument.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> loc
// CHECK-NEXT:    %[[R:.*]] = stablehlo.sine %[[X]]
// CHECK-NEXT:    return %[[R]], %[[X]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.composite "my.op" %x {decomposition = @impl} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @identity(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @impl(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @identity(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
