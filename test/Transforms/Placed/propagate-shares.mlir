// RUN: whale-opt %s --whale-load-cluster=ranks=4 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   -split-input-file | FileCheck %s

// A product of whole operands could be computed whole, and its norm asks for
// no other. But it is added to a split parameter: each device computes the
// columns that it holds, and the momentum is stored like the parameter
// although it meets the gradient first.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: %arg0: tensor<8x2xf32>
// CHECK-SAME: %arg1: tensor<8x2xf32>
// CHECK-NOT: -> tensor<8x8xf32>
// CHECK: dot_general {{.*}} (tensor<6x8xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
// CHECK-NOT: -> tensor<8x8xf32>
// CHECK: whale.all_reduce {{.*}} (tensor<f32>) -> tensor<f32>
// CHECK-NOT: whale.{{all|reduce}}
// CHECK: return
func.func @main(%w: tensor<8x8xf32> {whale.fed_by = 0 : i64},
                %m: tensor<8x8xf32> {whale.fed_by = 1 : i64},
                %x: tensor<6x8xf32> {whale.batch_dim = 0 : i64},
                %dy: tensor<6x8xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<6x8xf32>) {
  %f = whale.task_graph "default" forward strategy #whale.split
      -> tensor<6x8xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
    whale.yield %0 : tensor<6x8xf32>
  }
  %g = whale.task_graph "default" backward strategy #whale.split
      -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0]
        : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
    whale.yield %0 : tensor<8x8xf32>
  }
  %n:2 = whale.task_graph "default" apply strategy #whale.split
      -> tensor<8x8xf32>, tensor<8x8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %g, %g : tensor<8x8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0, 1]
        : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = []
        : (tensor<f32>) -> tensor<8x8xf32>
    %3 = stablehlo.divide %g, %2 : tensor<8x8xf32>
    %4 = stablehlo.add %m, %3 : tensor<8x8xf32>
    %5 = stablehlo.subtract %w, %4 : tensor<8x8xf32>
    whale.yield %5, %4 : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %n#0, %n#1, %f : tensor<8x8xf32>, tensor<8x8xf32>, tensor<6x8xf32>
}

// -----

// Parameters that are joined before they are used are parameters too, and two
// heads are too few for four devices.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: %arg0: tensor<8x1xf32>
// CHECK-SAME: %arg1: tensor<8x1xf32>
func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>,
                %x: tensor<6x8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<6x2x4xf32> {
  %f = whale.task_graph "default" forward strategy #whale.split
      -> tensor<6x2x4xf32> {
    %0 = stablehlo.concatenate %a, %b, dim = 1
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0]
        : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<6x8xf32>) -> tensor<6x2x4xf32>
    whale.yield %2 : tensor<6x2x4xf32>
  }
  return %f : tensor<6x2x4xf32>
}
