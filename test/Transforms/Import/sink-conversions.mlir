// What a loop or branch only moves is widened behind it, where it was f16 or
// narrower. On the wrong side, a sum over samples would be rounded in each
// round of the loop, or not at all.

// RUN: whale-opt %s --whale-sink-conversions --split-input-file | FileCheck %s

// A stack in a stack: the inner loop leaves narrow rows, which the outer one
// moves. Who reads rows widens them alone.
// CHECK-LABEL: func.func @main(
// CHECK: %[[OUTER:.*]]:2 = stablehlo.while(%{{.*}}) : tensor<i32>, tensor<2x3x4xf16>
// CHECK: stablehlo.while(%{{.*}}) : tensor<i32>, tensor<3x4xf16>
// CHECK-NOT: stablehlo.convert
// CHECK: %[[ROW:.*]] = stablehlo.slice %[[OUTER]]#1 [0:1, 0:3, 0:4]
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[ROW]] : (tensor<1x3x4xf16>) -> tensor<1x3x4xf32>
// CHECK: return %[[WIDE]]
func.func @main(%g: tensor<4xf16>) -> tensor<1x3x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %all = stablehlo.constant dense<0.0> : tensor<2x3x4xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %r:2 = stablehlo.while(%k = %zero, %stacks = %all)
      : tensor<i32>, tensor<2x3x4xf32>
  cond {
    %more = stablehlo.compare LT, %k, %two
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%i = %zero, %stack = %zeros)
        : tensor<i32>, tensor<3x4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %wide = stablehlo.convert %g : (tensor<4xf16>) -> tensor<4xf32>
      %row = stablehlo.reshape %wide : (tensor<4xf32>) -> tensor<1x4xf32>
      %next = stablehlo.dynamic_update_slice %stack, %row, %i, %zero
          : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>)
          -> tensor<3x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next : tensor<i32>, tensor<3x4xf32>
    }
    %rows = stablehlo.reshape %s#1 : (tensor<3x4xf32>) -> tensor<1x3x4xf32>
    %next = stablehlo.dynamic_update_slice %stacks, %rows, %k, %zero, %zero
        : (tensor<2x3x4xf32>, tensor<1x3x4xf32>, tensor<i32>, tensor<i32>,
           tensor<i32>) -> tensor<2x3x4xf32>
    %l = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %l, %next : tensor<i32>, tensor<2x3x4xf32>
  }
  %0 = stablehlo.slice %r#1 [0:1, 0:3, 0:4]
      : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}

// -----

// Of a branch that has no gradient, the zeros become narrow.
// CHECK-LABEL: func.func @main(
// CHECK: %[[NARROW:.*]] = "stablehlo.case"
// CHECK: stablehlo.return %arg1 : tensor<4xf16>
// CHECK: dense<0.000000e+00> : tensor<4xf16>
// CHECK: -> tensor<4xf16>
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[NARROW]]
// CHECK: return %[[WIDE]]
func.func @main(%which: tensor<i32>, %g: tensor<4xf16>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%which) ({
    %wide = stablehlo.convert %g : (tensor<4xf16>) -> tensor<4xf32>
    stablehlo.return %wide : tensor<4xf32>
  }, {
    %zeros = stablehlo.constant dense<0.0> : tensor<4xf32>
    stablehlo.return %zeros : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Wide stays what has the range of f32 (bf16), what f16 has no number for
// (1e6), and what the loop itself adds to, reads or returns wide elsewhere.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.while
// CHECK-SAME: tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK: stablehlo.return
func.func @main(%g: tensor<4xf16>, %b: tensor<4xbf16>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4xf32>
  %large = stablehlo.constant dense<1.0e6> : tensor<4xf32>
  %r:5 = stablehlo.while(%i = %zero, %bf16 = %zeros, %beyond = %large,
                         %added = %zeros, %read = %zeros)
      : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %i, %three
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %wide = stablehlo.convert %g : (tensor<4xf16>) -> tensor<4xf32>
    %other = stablehlo.convert %b : (tensor<4xbf16>) -> tensor<4xf32>
    %sum = stablehlo.add %added, %wide : tensor<4xf32>
    %sine = stablehlo.sine %read : tensor<4xf32>
    %both = stablehlo.add %sum, %sine : tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %other, %wide, %both, %wide
        : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
          tensor<4xf32>
  }
  return %r#1, %r#2, %r#3, %r#4
      : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
