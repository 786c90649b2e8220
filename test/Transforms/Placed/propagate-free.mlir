// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s

// Constants, iotas and broadcasts of whole values are made in shards where
// that is how they are used: nothing is computed whole and then cut.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.local_slice
// CHECK-DAG: stablehlo.constant dense<2.000000e+00> : tensor<4x6xf32>
// CHECK-DAG: stablehlo.broadcast_in_dim {{.*}} : (tensor<6xf32>) -> tensor<4x6xf32>
// CHECK-DAG: whale.shard_offset
// CHECK-NOT: tensor<8x6xf32>{{$}}
// CHECK: return
func.func @main(%b: tensor<6xf32>,
                %x: tensor<8x6xf32> {whale.batch_dim = 0 : i64})
    -> tensor<8x6xf32> {
  %y = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<8x6xf32> {
    %two = stablehlo.constant dense<2.0> : tensor<8x6xf32>
    %row = stablehlo.iota dim = 0 : tensor<8x6xf32>
    %bias = stablehlo.broadcast_in_dim %b, dims = [1]
        : (tensor<6xf32>) -> tensor<8x6xf32>
    %bias2 = stablehlo.broadcast_in_dim %b, dims = [1]
        : (tensor<6xf32>) -> tensor<8x6xf32>
    %0 = stablehlo.multiply %x, %two : tensor<8x6xf32>
    %1 = stablehlo.add %0, %bias : tensor<8x6xf32>
    %2 = stablehlo.add %1, %row : tensor<8x6xf32>
    %3 = stablehlo.add %2, %bias2 : tensor<8x6xf32>
    whale.yield %3 : tensor<8x6xf32>
  }
  return %y : tensor<8x6xf32>
}
