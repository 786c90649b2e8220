// Loops whose turns are not worth a kernel each: a loop of scalars is a kernel,
// alone where it has no more turns than a kernel runs, else before the loop,
// which goes on from there. A result of the kernel that the loop doesn't take
// would start it anew. A loop of tensors is unrolled elsewhere.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg))' | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-unroll-loops))' | FileCheck %s --check-prefix=UNROLL

// CHECK-LABEL: func.func @series
// CHECK-SAME: (%[[X:.*]]: tensor<f32>, %[[LIMIT:.*]]: tensor<f32>)
// CHECK: %[[FIRST:.*]]:2 = whale.kernel
// CHECK: scf.while
// CHECK: arith.cmpi ult, %{{.*}}, %[[TURNS:.*]] : index
// CHECK: stablehlo.while(%{{.*}} = %[[FIRST]]#0, %{{.*}} = %[[FIRST]]#1)
// UNROLL-LABEL: func.func @series
// UNROLL: stablehlo.while
func.func @series(%x: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = stablehlo.while(%sum = %one, %term = %x)
      : tensor<f32>, tensor<f32>
  cond {
    %1 = stablehlo.compare GT, %term, %limit, FLOAT
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %sum, %term : tensor<f32>
    %2 = stablehlo.multiply %term, %x : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }
  return %0#0 : tensor<f32>
}

// CHECK-LABEL: func.func @counted
// CHECK: whale.kernel
// CHECK-NOT: stablehlo.while
// UNROLL-LABEL: func.func @counted
// UNROLL: stablehlo.while
func.func @counted(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<f32>
  cond {
    %many = stablehlo.constant dense<100> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %many, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.sine %y : tensor<f32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}

// What depends on the counter is a constant of each turn, as are elements of a
// table; what is carried to another place is.
// CHECK-LABEL: func.func @rounds
// UNROLL-LABEL: func.func @rounds
// UNROLL-SAME: (%[[X:.*]]: tensor<8xui32>, %[[Y:.*]]: tensor<8xui32>)
// UNROLL-NOT: stablehlo.while
// UNROLL: %[[SEVEN:.*]] = stablehlo.constant dense<7> : tensor<ui32>
// UNROLL: %[[A:.*]] = stablehlo.broadcast_in_dim %[[SEVEN]]
// UNROLL: %[[FIRST:.*]] = stablehlo.shift_left %[[X]], %[[A]]
// UNROLL: %[[NINE:.*]] = stablehlo.constant dense<9> : tensor<ui32>
// UNROLL: %[[B:.*]] = stablehlo.broadcast_in_dim %[[NINE]]
// UNROLL: %[[SECOND:.*]] = stablehlo.shift_left %[[Y]], %[[B]]
// UNROLL: return %[[FIRST]], %[[SECOND]]
func.func @rounds(%x: tensor<8xui32>, %y: tensor<8xui32>)
    -> (tensor<8xui32>, tensor<8xui32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %first = stablehlo.constant dense<[5, 7]> : tensor<2xui32>
  %second = stablehlo.constant dense<[3, 9]> : tensor<2xui32>
  %0:5 = stablehlo.while(%i = %zero, %a = %x, %b = %y, %s = %first,
                         %t = %second)
      : tensor<i32>, tensor<8xui32>, tensor<8xui32>, tensor<2xui32>,
        tensor<2xui32>
  cond {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %two, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.slice %s [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %3 = stablehlo.reshape %2 : (tensor<1xui32>) -> tensor<ui32>
    %4 = stablehlo.broadcast_in_dim %3, dims = []
        : (tensor<ui32>) -> tensor<8xui32>
    %5 = stablehlo.shift_left %a, %4 : tensor<8xui32>
    stablehlo.return %1, %b, %5, %t, %s
        : tensor<i32>, tensor<8xui32>, tensor<8xui32>, tensor<2xui32>,
          tensor<2xui32>
  }
  return %0#1, %0#2 : tensor<8xui32>, tensor<8xui32>
}
