// RUN: whale-opt %s --whale-load-cluster=ranks=2 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s

// Half precision holds 256 and 3, but not 259: positions are added as
// integers and rounded once, as on one device.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<300xi32>
// CHECK: %[[START:.*]] = whale.shard_offset {{.*}} : tensor<i32>
// CHECK: %[[STARTS:.*]] = stablehlo.broadcast_in_dim %[[START]]
// CHECK: %[[SUM:.*]] = stablehlo.add %[[IOTA]], %[[STARTS]]
// CHECK: stablehlo.convert %[[SUM]] : (tensor<300xi32>) -> tensor<300xbf16>
func.func @main(%x: tensor<600xbf16> {whale.batch_dim = 0 : i64})
    -> tensor<600xbf16> {
  %f = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<600xbf16> {
    %0 = stablehlo.iota dim = 0 : tensor<600xbf16>
    %1 = stablehlo.add %x, %0 : tensor<600xbf16>
    whale.yield %1 : tensor<600xbf16>
  }
  return %f : tensor<600xbf16>
}
