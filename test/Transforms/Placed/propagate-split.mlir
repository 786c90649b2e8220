// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s

// A column split followed by a row split: one all-reduce forward, one backward,
// and parameters that are never gathered.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: %arg0: tensor<4x8xf32>
// CHECK-SAME: %arg1: tensor<8x4xf32>
// CHECK-SAME: %arg2: tensor<6x4xf32>
// CHECK-NOT: whale.all_gather
// CHECK: stablehlo.dot_general {{.*}} -> tensor<6x8xf32>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT: whale.all_reduce
// CHECK-NOT: whale.all_gather
// CHECK: whale.all_reduce
// CHECK-NOT: whale.all_
func.func @main(%w1: tensor<4x16xf32> {whale.fed_by = 0 : i64},
                %w2: tensor<16x4xf32> {whale.fed_by = 1 : i64},
                %x: tensor<6x4xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x16xf32>, tensor<16x4xf32>, tensor<6x4xf32>) {
  %f:2 = whale.task_graph "default" forward strategy #whale.split
      -> tensor<6x16xf32>, tensor<6x4xf32> {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
        : (tensor<6x4xf32>, tensor<4x16xf32>) -> tensor<6x16xf32>
    %1 = stablehlo.tanh %0 : tensor<6x16xf32>
    %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0]
        : (tensor<6x16xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
    %3 = stablehlo.tanh %2 : tensor<6x4xf32>
    whale.yield %1, %3 : tensor<6x16xf32>, tensor<6x4xf32>
  }
  %g:3 = whale.task_graph "default" backward strategy #whale.split
      -> tensor<4x16xf32>, tensor<16x4xf32>, tensor<6x4xf32> {
    %0 = stablehlo.dot_general %f#0, %f#1, contracting_dims = [0] x [0]
        : (tensor<6x16xf32>, tensor<6x4xf32>) -> tensor<16x4xf32>
    %1 = stablehlo.dot_general %f#1, %w2, contracting_dims = [1] x [1]
        : (tensor<6x4xf32>, tensor<16x4xf32>) -> tensor<6x16xf32>
    %2 = stablehlo.multiply %1, %f#0 : tensor<6x16xf32>
    %3 = stablehlo.dot_general %x, %2, contracting_dims = [0] x [0]
        : (tensor<6x4xf32>, tensor<6x16xf32>) -> tensor<4x16xf32>
    %4 = stablehlo.dot_general %2, %w1, contracting_dims = [1] x [1]
        : (tensor<6x16xf32>, tensor<4x16xf32>) -> tensor<6x4xf32>
    whale.yield %3, %0, %4
        : tensor<4x16xf32>, tensor<16x4xf32>, tensor<6x4xf32>
  }
  %n:2 = whale.task_graph "default" apply strategy #whale.split
      -> tensor<4x16xf32>, tensor<16x4xf32> {
    %0 = stablehlo.subtract %w1, %g#0 : tensor<4x16xf32>
    %1 = stablehlo.subtract %w2, %g#1 : tensor<16x4xf32>
    whale.yield %0, %1 : tensor<4x16xf32>, tensor<16x4xf32>
  }
  return %n#0, %n#1, %g#2
      : tensor<4x16xf32>, tensor<16x4xf32>, tensor<6x4xf32>
}
