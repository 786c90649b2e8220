// Whether all values are finite, or which is the largest: of parts of tensors,
// devices combine what each of them has, and exchange one element for all
// tensors. A sum of parts is added up before it is combined.

// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-verify-placements \
// RUN:   --whale-partition -split-input-file | FileCheck %s

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.all_reduce
// CHECK: %[[ONE:.*]] = stablehlo.reduce{{.*}}applies stablehlo.and
// CHECK: %[[OTHER:.*]] = stablehlo.reduce{{.*}}applies stablehlo.and
// CHECK: %[[BOTH:.*]] = stablehlo.and %[[ONE]], %[[OTHER]]
// CHECK: %[[WITH:.*]] = stablehlo.and %[[BOTH]], %{{.*}}
// CHECK: whale.all_reduce %[[WITH]] {{.*}} (tensor<i1>) -> tensor<i1>
// CHECK-NOT: whale.all_reduce
// CHECK: return
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %y: tensor<8xf32> {whale.batch_dim = 0 : i64}, %b: tensor<i1>)
    -> tensor<i1> {
  %n = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<i1> {
    %true = stablehlo.constant dense<true> : tensor<i1>
    %0 = stablehlo.is_finite %x : (tensor<8x4xf32>) -> tensor<8x4xi1>
    %1 = stablehlo.reduce(%0 init: %true) applies stablehlo.and
        across dimensions = [0, 1]
        : (tensor<8x4xi1>, tensor<i1>) -> tensor<i1>
    %2 = stablehlo.is_finite %y : (tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.reduce(%2 init: %true) applies stablehlo.and
        across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    %4 = stablehlo.and %1, %3 : tensor<i1>
    %5 = stablehlo.and %4, %b : tensor<i1>
    whale.yield %5 : tensor<i1>
  }
  return %n : tensor<i1>
}

// -----

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[LARGEST:.*]] = stablehlo.maximum
// CHECK: whale.all_reduce %[[LARGEST]] {{.*}} (tensor<f32>) -> tensor<f32>
// CHECK-NOT: whale.all_reduce
// CHECK: return
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %y: tensor<8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<f32> {
  %n = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<f32> {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
        across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.reduce(%y init: %low) applies stablehlo.maximum
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.maximum %0, %1 : tensor<f32>
    whale.yield %2 : tensor<f32>
  }
  return %n : tensor<f32>
}

// -----

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: stablehlo.reduce{{.*}}applies stablehlo.add
// CHECK: %[[SUM:.*]] = whale.all_reduce
// CHECK: stablehlo.maximum %[[SUM]]
// CHECK: return
func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                %y: tensor<f32>) -> tensor<f32> {
  %n = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
        across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.maximum %0, %y : tensor<f32>
    whale.yield %1 : tensor<f32>
  }
  return %n : tensor<f32>
}
