// RUN: whale-opt %s --whale-load-cluster=ranks=4 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s

// Tokens are dispatched in groups, shared out with the mini-batch; experts are
// split. Tokens travel to their experts and back, and so do their gradients:
// each time an all-to-all, and nothing is gathered.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: %arg0: tensor<1x6x10xf32>
// CHECK-SAME: %arg1: tensor<1x10x6xf32>
// CHECK-SAME: %arg2: tensor<2x3x6xf32>
// CHECK-SAME: %arg3: tensor<2x3x4x2xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x4x2x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: whale.all_to_all {{.*}} (tensor<4x2x2x6xf32>) -> tensor<1x8x2x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: stablehlo.dot_general {{.*}} -> tensor<1x8x2x10xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: stablehlo.dot_general {{.*}} -> tensor<1x8x2x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: whale.all_to_all {{.*}} (tensor<1x8x2x6xf32>) -> tensor<4x2x2x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: stablehlo.dot_general {{.*}} -> tensor<2x3x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: whale.all_to_all {{.*}} (tensor<4x2x2x6xf32>) -> tensor<1x8x2x6xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: stablehlo.dot_general {{.*}} -> tensor<1x6x10xf32>
// CHECK-NOT: whale.{{all|reduce|broad|send}}
// CHECK: return
func.func @main(%up: tensor<4x6x10xf32> {whale.fed_by = 0 : i64},
                %down: tensor<4x10x6xf32> {whale.fed_by = 1 : i64},
                %x: tensor<8x3x6xf32> {whale.batch_dim = 0 : i64},
                %to: tensor<8x3x4x2xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x6x10xf32>, tensor<4x10x6xf32>, tensor<8x3x6xf32>) {
  // Group g, token s, expert e, place c, width d.
  %dispatched = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x4x2x6xf32> {
    %0 = stablehlo.dot_general %to, %x, batching_dims = [0] x [0],
        contracting_dims = [1] x [1]
        : (tensor<8x3x4x2xf32>, tensor<8x3x6xf32>) -> tensor<8x4x2x6xf32>
    whale.yield %0 : tensor<8x4x2x6xf32>
  }
  %f:3 = whale.task_graph "experts" forward strategy #whale.split
      -> tensor<4x8x2x6xf32>, tensor<4x8x2x10xf32>, tensor<4x8x2x6xf32> {
    %0 = stablehlo.transpose %dispatched, dims = [1, 0, 2, 3]
        : (tensor<8x4x2x6xf32>) -> tensor<4x8x2x6xf32>
    %1 = stablehlo.dot_general %0, %up, batching_dims = [0] x [0],
        contracting_dims = [3] x [1]
        : (tensor<4x8x2x6xf32>, tensor<4x6x10xf32>) -> tensor<4x8x2x10xf32>
    %2 = stablehlo.tanh %1 : tensor<4x8x2x10xf32>
    %3 = stablehlo.dot_general %2, %down, batching_dims = [0] x [0],
        contracting_dims = [3] x [1]
        : (tensor<4x8x2x10xf32>, tensor<4x10x6xf32>) -> tensor<4x8x2x6xf32>
    whale.yield %0, %2, %3
        : tensor<4x8x2x6xf32>, tensor<4x8x2x10xf32>, tensor<4x8x2x6xf32>
  }
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x3x6xf32> {
    %0 = stablehlo.transpose %f#2, dims = [1, 0, 2, 3]
        : (tensor<4x8x2x6xf32>) -> tensor<8x4x2x6xf32>
    %1 = stablehlo.dot_general %to, %0, batching_dims = [0] x [0],
        contracting_dims = [2, 3] x [1, 2]
        : (tensor<8x3x4x2xf32>, tensor<8x4x2x6xf32>) -> tensor<8x3x6xf32>
    whale.yield %1 : tensor<8x3x6xf32>
  }
  %dy = whale.task_graph "default" backward strategy #whale.replicate
      -> tensor<8x4x2x6xf32> {
    %0 = stablehlo.dot_general %to, %y, batching_dims = [0] x [0],
        contracting_dims = [1] x [1]
        : (tensor<8x3x4x2xf32>, tensor<8x3x6xf32>) -> tensor<8x4x2x6xf32>
    whale.yield %0 : tensor<8x4x2x6xf32>
  }
  %g:2 = whale.task_graph "experts" backward strategy #whale.split
      -> tensor<4x6x10xf32>, tensor<4x10x6xf32> {
    %0 = stablehlo.transpose %dy, dims = [1, 0, 2, 3]
        : (tensor<8x4x2x6xf32>) -> tensor<4x8x2x6xf32>
    %1 = stablehlo.dot_general %f#1, %0, batching_dims = [0] x [0],
        contracting_dims = [1, 2] x [1, 2]
        : (tensor<4x8x2x10xf32>, tensor<4x8x2x6xf32>) -> tensor<4x10x6xf32>
    %2 = stablehlo.dot_general %0, %down, batching_dims = [0] x [0],
        contracting_dims = [3] x [2]
        : (tensor<4x8x2x6xf32>, tensor<4x10x6xf32>) -> tensor<4x8x2x10xf32>
    %3 = stablehlo.dot_general %f#0, %2, batching_dims = [0] x [0],
        contracting_dims = [1, 2] x [1, 2]
        : (tensor<4x8x2x6xf32>, tensor<4x8x2x10xf32>) -> tensor<4x6x10xf32>
    whale.yield %3, %1 : tensor<4x6x10xf32>, tensor<4x10x6xf32>
  }
  %n:2 = whale.task_graph "experts" apply strategy #whale.split
      -> tensor<4x6x10xf32>, tensor<4x10x6xf32> {
    %0 = stablehlo.subtract %up, %g#0 : tensor<4x6x10xf32>
    %1 = stablehlo.subtract %down, %g#1 : tensor<4x10x6xf32>
    whale.yield %0, %1 : tensor<4x6x10xf32>, tensor<4x10x6xf32>
  }
  return %n#0, %n#1, %y
      : tensor<4x6x10xf32>, tensor<4x10x6xf32>, tensor<8x3x6xf32>
}
