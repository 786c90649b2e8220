// RUN: whale-opt %s -whale-normalize | FileCheck %s

// The weights that a scan carries around become values from outside.

// CHECK-LABEL: func.func @loop
// CHECK-SAME:    (%[[W:.*]]: tensor<4x4xf32>, %[[X:.*]]: tensor<4x4xf32>, %[[N:.*]]: tensor<i32>)
// CHECK:         %[[R:.*]]:2 = stablehlo.while(%[[A:.*]] = %[[X]], %[[I:.*]] = %{{.*}}) : tensor<4x4xf32>, tensor<i32> attributes {whale.strategy = #whale.split<name = "a">}
// CHECK:           stablehlo.compare LT, %[[I]], %[[N]], SIGNED
// CHECK:           stablehlo.dot_general %[[A]], %[[W]]
// CHECK:         return %[[R]]#0, %[[W]]
func.func @loop(%w: tensor<4x4xf32>, %x: tensor<4x4xf32>, %n: tensor<i32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%a = %x, %v = %w, %i = %zero, %m = %n) : tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32> attributes {whale.strategy = #whale.split<name = "a">}
  cond {
    %1 = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1, %v, %2, %m : tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Two carried values that change places are no invariants.
// CHECK-LABEL: func.func @swap
// CHECK:         stablehlo.while(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<4xf32>, tensor<4xf32>, tensor<i32>
func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0:3 = stablehlo.while(%a = %x, %b = %y, %i = %n) : tensor<4xf32>, tensor<4xf32>, tensor<i32>
  cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare GT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.subtract %i, %one : tensor<i32>
    stablehlo.return %b, %a, %1 : tensor<4xf32>, tensor<4xf32>, tensor<i32>
  }
  return %0#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @branches
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.cosine %[[X]]
// CHECK-NEXT:    %[[B:.*]] = stablehlo.sine %[[A]]
// CHECK-NEXT:    return %[[B]]
func.func @branches(%x: tensor<4xf32>) -> tensor<4xf32> {
  // Out of bounds means the last branch.
  %c = stablehlo.constant dense<7> : tensor<i32>
  %0 = "stablehlo.case"(%c) ({
    %2 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %2 = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %1 = "stablehlo.if"(%true) ({
    %2 = stablehlo.sine %0 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @barrier
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2xf32>)
// CHECK-NEXT:    return %[[Y]], %[[X]]
func.func @barrier(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<2xf32>
  return %0#1, %0#0 : tensor<2xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @branch
// CHECK:         %[[I:.*]] = stablehlo.convert %arg0 : (tensor<i1>) -> tensor<i32>
// CHECK:         "stablehlo.case"(%[[I]]) ({
// CHECK-NEXT:      stablehlo.return %arg1
// CHECK:           stablehlo.negate
func.func @branch(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// What a loop carries for nobody, such as a stack for a backward pass that does
// not read it, goes with what computes it. %b is read by another carried value.

// CHECK-LABEL: func.func @unread_carries
// CHECK:         stablehlo.while(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<4xf32>, tensor<4xf32>, tensor<i32>
// CHECK-NOT:     stablehlo.sine
// CHECK:         return
func.func @unread_carries(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:5 = stablehlo.while(%a = %x, %b = %y, %c = %x, %d = %y, %i = %n) : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %a, %b : tensor<4xf32>
    %2 = stablehlo.negate %b : tensor<4xf32>
    %3 = stablehlo.sine %d : tensor<4xf32>
    %4 = stablehlo.sine %c : tensor<4xf32>
    %5 = stablehlo.subtract %i, %one : tensor<i32>
    stablehlo.return %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
  }
  return %0#0 : tensor<4xf32>
}
