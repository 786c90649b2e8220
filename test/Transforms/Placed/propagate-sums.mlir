// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   -split-input-file | FileCheck %s

// Nothing says where the optimizer begins, and its first use of the gradient
// could do with terms of the sum. The second can't, so both get the sum.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
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

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
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

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
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

// -----

// The norm of several gradients: what each device has of all of them is added
// up first, and reduced once.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.all_reduce
// CHECK: stablehlo.add {{.*}} : tensor<f32>
// CHECK-NEXT: whale.all_reduce {{.*}} (tensor<f32>) -> tensor<f32>
// CHECK-NOT: whale.all_reduce
// CHECK: return
func.func @main(%w1: tensor<4x8xf32> {whale.fed_by = 0 : i64},
                %w2: tensor<4x8xf32> {whale.fed_by = 1 : i64},
                %x: tensor<6x4xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %g:2 = whale.task_graph "default" backward strategy #whale.split
      -> tensor<4x8xf32>, tensor<4x8xf32> {
    %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
        : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %1 = stablehlo.dot_general %x, %w2, contracting_dims = [1] x [0]
        : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %2 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0]
        : (tensor<6x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    %3 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0]
        : (tensor<6x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    whale.yield %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  %n:2 = whale.task_graph "default" apply strategy #whale.split
      -> tensor<4x8xf32>, tensor<4x8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %g#0, %g#0 : tensor<4x8xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add
        across dimensions = [0, 1]
        : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.multiply %g#1, %g#1 : tensor<4x8xf32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add
        across dimensions = [0, 1]
        : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.add %1, %3 : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = []
        : (tensor<f32>) -> tensor<4x8xf32>
    %6 = stablehlo.divide %g#0, %5 : tensor<4x8xf32>
    %7 = stablehlo.divide %g#1, %5 : tensor<4x8xf32>
    %8 = stablehlo.subtract %w1, %6 : tensor<4x8xf32>
    %9 = stablehlo.subtract %w2, %7 : tensor<4x8xf32>
    whale.yield %8, %9 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %n#0, %n#1 : tensor<4x8xf32>, tensor<4x8xf32>
}
