// RUN: whale-opt %s -whale-import-scopes=strategy=replicate | FileCheck %s

// Scopes in the body of a loop that is in none: what is in no scope has the
// default, but for the rows of stacks, which belong to the scope that reads
// them. Here the forward stores what "experts" reads and what the default
// reads.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.tanh {{.*}} whale.strategy = #whale.replicate}
// CHECK: stablehlo.sine {{.*}}name = "experts"
// CHECK: stablehlo.broadcast_in_dim {{.*}}name = "experts"
// CHECK: stablehlo.dynamic_update_slice {{.*}}name = "experts"
// CHECK: stablehlo.broadcast_in_dim {{.*}} whale.strategy = #whale.replicate}
// CHECK: stablehlo.dynamic_update_slice {{.*}} whale.strategy = #whale.replicate}
// CHECK: stablehlo.add {{.*}} whale.strategy = #whale.replicate}
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice {{.*}}name = "experts"
// CHECK: stablehlo.reshape {{.*}}name = "experts"
// CHECK: stablehlo.dynamic_slice {{.*}} whale.strategy = #whale.replicate}
// CHECK: stablehlo.reshape {{.*}} whale.strategy = #whale.replicate}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %0:4 = stablehlo.while(%i = %zero, %a = %x, %s = %empty, %t = %empty)
      : tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  cond {
    %c = stablehlo.compare LT, %i, %four, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %1 = stablehlo.tanh %a : tensor<8xf32>
    %2 = stablehlo.sine %1 : tensor<8xf32>
        loc("jvp(while/body/whale:split:*:0:experts)/sin")
    %3 = stablehlo.broadcast_in_dim %1, dims = [1]
        : (tensor<8xf32>) -> tensor<1x8xf32>
    %4 = stablehlo.dynamic_update_slice %s, %3, %i, %zero
        : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
        -> tensor<4x8xf32>
    %5 = stablehlo.broadcast_in_dim %2, dims = [1]
        : (tensor<8xf32>) -> tensor<1x8xf32>
    %6 = stablehlo.dynamic_update_slice %t, %5, %i, %zero
        : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
        -> tensor<4x8xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %2, %4, %6
        : tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
  %8:2 = stablehlo.while(%i = %zero, %d = %0#1) : tensor<i32>, tensor<8xf32>
  cond {
    %c = stablehlo.compare LT, %i, %four, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %0#2, %i, %zero, sizes = [1, 8]
        : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8xf32>) -> tensor<8xf32>
    %3 = stablehlo.multiply %2, %d : tensor<8xf32>
        loc("transpose(jvp(while/body/whale:split:*:0:experts))/mul")
    %4 = stablehlo.dynamic_slice %0#3, %i, %zero, sizes = [1, 8]
        : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x8xf32>) -> tensor<8xf32>
    %6 = stablehlo.multiply %5, %3 : tensor<8xf32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<8xf32>
  }
  return %8#1 : tensor<8xf32>
}
