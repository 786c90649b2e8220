// The layouts in which branches return their values, on two ranks. All branches
// have to end in the same one. A reduction of the samples is then one
// all-reduce behind the branches if all of them return terms of it, and else
// one inside of its branch. Judged by local shapes and all-reduces in the
// schedule.

// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition --split-input-file \
// RUN:   | FileCheck %s

// Branches end in one layout: samples stay where they are, a sum that another
// branch has a whole value for is reduced in its own.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[H:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x16xf32>
// CHECK: "stablehlo.case"
// CHECK: %[[T:.*]] = stablehlo.tanh %[[H]] : tensor<4x16xf32>
// CHECK: %[[TERM:.*]] = stablehlo.dot_general
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[TERM]]
// CHECK: stablehlo.return %[[T]], %[[SUM]]
// CHECK: stablehlo.return %[[H]], %arg0
func.func @main(%w: tensor<4x16xf32>,
                %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> (tensor<8x16xf32>, tensor<4x16xf32>) {
  %g:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x16xf32>, tensor<4x16xf32> {
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %0:2 = "stablehlo.case"(%n) ({
      %1 = stablehlo.tanh %h : tensor<8x16xf32>
      %2 = stablehlo.dot_general %x, %h, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      stablehlo.return %1, %2 : tensor<8x16xf32>, tensor<4x16xf32>
    }, {
      stablehlo.return %h, %w : tensor<8x16xf32>, tensor<4x16xf32>
    }) : (tensor<i32>) -> (tensor<8x16xf32>, tensor<4x16xf32>)
    whale.yield %0#0, %0#1 : tensor<8x16xf32>, tensor<4x16xf32>
  }
  return %g#0, %g#1 : tensor<8x16xf32>, tensor<4x16xf32>
}

// -----

// Sums of all branches are one sum behind them, and zeros are terms of it.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[G:.*]]:2 = "stablehlo.case"
// CHECK-NOT: all_reduce
// CHECK: }) : (tensor<i32>) -> (tensor<4x4xf32>, tensor<f32>)
// CHECK-DAG: whale.all_reduce %[[G]]#0
// CHECK-DAG: whale.all_reduce %[[G]]#1
// CHECK: return
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %g:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<4x4xf32>, tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0:2 = "stablehlo.case"(%n) ({
      %zeros = stablehlo.broadcast_in_dim %zero, dims = []
          : (tensor<f32>) -> tensor<4x4xf32>
      %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
          across dimensions = [0, 1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %zeros, %1 : tensor<4x4xf32>, tensor<f32>
    }, {
      %1 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %y = stablehlo.abs %x : tensor<8x4xf32>
      %2 = stablehlo.reduce(%y init: %zero) applies stablehlo.add
          across dimensions = [0, 1]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %1, %2 : tensor<4x4xf32>, tensor<f32>
    }) : (tensor<i32>) -> (tensor<4x4xf32>, tensor<f32>)
    whale.yield %0#0, %0#1 : tensor<4x4xf32>, tensor<f32>
  }
  return %g#0, %g#1 : tensor<4x4xf32>, tensor<f32>
}

// -----

// So is what leaves any other reduction as it is: false of "or".

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[ANY:.*]] = "stablehlo.case"
// CHECK-NOT: all_reduce
// CHECK: }) : (tensor<i32>) -> tensor<i1>
// CHECK: whale.all_reduce %[[ANY]]
func.func @main(%x: tensor<8xi1> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> tensor<i1> {
  %g = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<i1> {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %0 = "stablehlo.case"(%n) ({
      %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or
          across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
      stablehlo.return %false : tensor<i1>
    }) : (tensor<i32>) -> tensor<i1>
    whale.yield %0 : tensor<i1>
  }
  return %g : tensor<i1>
}

// -----

// A sum and a largest value have no layout in common, and what no branch needs
// in a certain one is made as it is wanted.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: "stablehlo.case"
// CHECK: %[[MAX:.*]] = whale.all_reduce
// CHECK: stablehlo.return %[[MAX]], %{{.*}} : tensor<4xf32>, tensor<4x4xf32>
// CHECK: %[[SUM:.*]] = whale.all_reduce
// CHECK: stablehlo.return %[[SUM]], %{{.*}} : tensor<4xf32>, tensor<4x4xf32>
// CHECK-NOT: whale.
// CHECK: stablehlo.multiply %{{.*}} : tensor<4x4xf32>
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
  %g:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<4xf32>, tensor<8x4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %0:2 = "stablehlo.case"(%n) ({
      %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %1 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum
          across dimensions = [0]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      %rows = stablehlo.iota dim = 0 : tensor<8x4xf32>
      stablehlo.return %1, %rows : tensor<4xf32>, tensor<8x4xf32>
    }, {
      %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
          across dimensions = [0]
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      %ones = stablehlo.broadcast_in_dim %one, dims = []
          : (tensor<f32>) -> tensor<8x4xf32>
      stablehlo.return %1, %ones : tensor<4xf32>, tensor<8x4xf32>
    }) : (tensor<i32>) -> (tensor<4xf32>, tensor<8x4xf32>)
    %2 = stablehlo.multiply %x, %0#1 : tensor<8x4xf32>
    whale.yield %0#0, %2 : tensor<4xf32>, tensor<8x4xf32>
  }
  return %g#0, %g#1 : tensor<4xf32>, tensor<8x4xf32>
}

// -----

// A micro-batch may leave a branch as it came in.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: "stablehlo.case"
// CHECK: stablehlo.return %{{.*}} : tensor<2x4xf32>
// CHECK: stablehlo.return %{{.*}} : tensor<2x4xf32>
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %n: tensor<i32>) -> tensor<f32> {
  %p:2 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<4x4xf32>, tensor<4x4xf32> {
    %a = stablehlo.slice %x [0:4, 0:4]
        : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %b = stablehlo.slice %x [4:8, 0:4]
        : (tensor<8x4xf32>) -> tensor<4x4xf32>
    whale.yield %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
  }
  %l = whale.micro_batches [0, 0](%p#0, %p#1)
      reduce [#whale.reduction<sum>] batch_dims [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<f32> {
  ^bb0(%m: tensor<4x4xf32>):
    %g = whale.task_graph "default" forward strategy #whale.replicate
        -> tensor<f32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %h = "stablehlo.case"(%n) ({
        stablehlo.return %m : tensor<4x4xf32>
      }, {
        %t = stablehlo.tanh %m : tensor<4x4xf32>
        stablehlo.return %t : tensor<4x4xf32>
      }) : (tensor<i32>) -> tensor<4x4xf32>
      %s = stablehlo.reduce(%h init: %zero) applies stablehlo.add
          across dimensions = [0, 1]
          : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
      whale.yield %s : tensor<f32>
    }
    whale.yield %g : tensor<f32>
  }
  return %l : tensor<f32>
}
