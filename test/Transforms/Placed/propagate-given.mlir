// Arguments that lie where another program has them: replicas gather what they
// share out where they use it, a split TaskGraph uses what it has of it, and
// what a loop takes layers of is gathered in the loop.

// RUN: whale-compile %s --cluster=2 --target=none --explain=all --dump-phases-to=%t 2>&1 | FileCheck %s --check-prefix=WHY
// RUN: FileCheck %s < %t/03-placed.mlir

// WHY: remark: given: 3 arguments of 1088 bytes lie where another program has them

// CHECK-DAG: #[[ROWS:placement[0-9]*]] = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
// CHECK-DAG: #[[LAYER:placement[0-9]*]] = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
// CHECK: @main(%arg0: {{[^,]*}}whale.placement = #[[ROWS]]}, %arg1: {{.*}}whale.placement = #whale.placement<[8, 8] split 1 (4, 4) on [0, 1]>}, %arg2
// CHECK-NOT: whale.given_placement
// CHECK: whale.task_graph "default"
// CHECK: whale.reshard %arg0 from #[[ROWS]]
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice %arg2
// CHECK: whale.reshard {{.*}} from #[[LAYER]]
// CHECK: whale.task_graph "head"
// CHECK-NOT: whale.reshard
// CHECK: stablehlo.dot_general {{.*}}, %arg1
module attributes {whale.default_strategy = #whale.replicate<>} {
  func.func @main(
      %w: tensor<8x8xf32> {whale.given_placement = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>},
      %h: tensor<8x8xf32> {whale.given_placement = #whale.placement<[8, 8] split 1 (4, 4) on [0, 1]>},
      %b: tensor<18x8xf32> {whale.given_placement = #whale.placement<[18, 8] split 1 (4, 4) on [0, 1]>},
      %x: tensor<4x8xf32> {whale.batch_dim = 0 : i64}) -> tensor<4x8xf32> {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<4x8xf32>
    cond {
      %n = stablehlo.constant dense<18> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %s = stablehlo.dynamic_slice %b, %i, %zero, sizes = [1, 8] : (tensor<18x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
      %u = stablehlo.reshape %s : (tensor<1x8xf32>) -> tensor<8xf32>
      %v = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %c = stablehlo.add %a, %v : tensor<4x8xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %c : tensor<i32>, tensor<4x8xf32>
    }
    %z = stablehlo.dot_general %r#1, %h, contracting_dims = [1] x [0] {whale.strategy = #whale.split<name = "head">} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return %z : tensor<4x8xf32>
  }
}
