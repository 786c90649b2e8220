// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// A loop that was cut goes on with the sum of its first part, which stays a
// term of the sum between them; but what the body needs whole is reduced once,
// before the loop.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[FIRST:.*]]:2 = stablehlo.while
// CHECK-NOT: whale.
// CHECK: %[[SECOND:.*]]:2 = stablehlo.while({{.*}} = %[[FIRST]]#1)
// CHECK-NOT: whale.
// CHECK: stablehlo.add %{{.*}} : tensor<4x16xf32>
// CHECK-NOT: whale.
// CHECK: }
// CHECK-NEXT: %[[SUM:.*]] = whale.all_reduce %[[SECOND]]#1
// CHECK: stablehlo.while({{.*}} = %[[SUM]])
// CHECK: stablehlo.tanh
// CHECK-NOT: whale.all_
// CHECK: return
func.func @main(%w: tensor<4x16xf32> {whale.fed_by = 0 : i64},
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %g:1 = whale.task_graph "default" backward strategy #whale.replicate
      -> tensor<4x16xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4x16xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%i = %i0, %sum = %zero)
        : tensor<i32>, tensor<4x16xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      %d = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %s = stablehlo.add %sum, %d : tensor<4x16xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, tensor<4x16xf32>
    }
    %2:2 = stablehlo.while(%i = %i0, %sum = %1#1)
        : tensor<i32>, tensor<4x16xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      %d = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %s = stablehlo.add %sum, %d : tensor<4x16xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, tensor<4x16xf32>
    }
    %3:2 = stablehlo.while(%i = %i0, %sum = %2#1)
        : tensor<i32>, tensor<4x16xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %t = stablehlo.tanh %sum : tensor<4x16xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<4x16xf32>
    }
    whale.yield %3#1 : tensor<4x16xf32>
  }
  %u:1 = whale.task_graph "default" apply strategy #whale.replicate
      -> tensor<4x16xf32> {
    %0 = stablehlo.subtract %w, %g : tensor<4x16xf32>
    whale.yield %0 : tensor<4x16xf32>
  }
  return %u, %g : tensor<4x16xf32>, tensor<4x16xf32>
}
