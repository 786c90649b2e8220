// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   -split-input-file | FileCheck %s

// Nothing says where the optimizer begins, and its first use of the gradient
// could do with terms of the sum. The second can't, so both get the sum.

// CHECK-LABEL: func.func @rank_class_0
// CHECK: %[[TERM:.*]] = stablehlo.dot_general
// CHECK-NEXT: %[[SUM:.*]] = whale.all_reduce %[[TERM]]
// CHECK: stablehlo.multiply %[[SUM]], %{{.*}}
// CHECK: stablehlo.multiply %[[SUM]], %[[SUM]]
// CHECK-NOT: whale.all_reduce
// CHECK: return
func.func @main(%m: tensor<4x4xf32> {whale.fed_by = 0 : i64},
                %v: tensor<4x4xf32> {whale.fed_by = 1 : i64},
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %n:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<4x4xf32>, tensor<4x4xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %tenth = stablehlo.constant dense<0.1> : tensor<4x4xf32>
    %1 = stablehlo.multiply %0, %tenth : tensor<4x4xf32>
    %2 = stablehlo.add %m, %1 : tensor<4x4xf32>
    %3 = stablehlo.multiply %0, %0 : tensor<4x4xf32>
    %4 = stablehlo.add %v, %3 : tensor<4x4xf32>
    whale.yield %2, %4 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %n#0, %n#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A sum over the mini-batch is smaller than what is made of it: it is reduced
// before it is broadcast.

// CHECK-LABEL: func.func @rank_class_0
// CHECK: whale.all_reduce {{.*}} (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT: whale.{{all|reduce}}
// CHECK: stablehlo.subtract {{.*}} : tensor<4x4xf32>
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x4xf32> {
  %f = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
        across dimensions = [0]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1]
        : (tensor<4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.subtract %x, %1 : tensor<8x4xf32>
    whale.yield %2 : tensor<8x4xf32>
  }
  return %f : tensor<8x4xf32>
}

// -----

// What the sum begins with is a zero that another TaskGraph holds; it is a zero
// all the same, and terms are added up on every device.

// CHECK-LABEL: func.func @rank_class_0
// CHECK: stablehlo.reduce{{.*}} (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
// CHECK: whale.all_reduce {{.*}} (tensor<f32>) -> tensor<f32>
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
    -> tensor<f32> {
  %a:2 = whale.task_graph "a" forward strategy #whale.replicate
      -> tensor<8x4xf32>, tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.tanh %x : tensor<8x4xf32>
    whale.yield %0, %zero : tensor<8x4xf32>, tensor<f32>
  }
  %b = whale.task_graph "b" forward strategy #whale.replicate
      -> tensor<f32> {
    %0 = stablehlo.reduce(%a#0 init: %a#1) applies stablehlo.add
        across dimensions = [0, 1]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    whale.yield %0 : tensor<f32>
  }
  return %b : tensor<f32>
}
