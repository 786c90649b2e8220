// RUN: whale-opt %s --split-input-file --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// A value that both devices have becomes a sum of terms: one device keeps it,
// the other one gets zeros.

// CHECK-LABEL: func.func @rank_class_0
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8xf32>
// CHECK: %[[TERM:.*]] = whale.local_slice %[[X]] channel 0
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[TERM]] channel 1
// CHECK: return %[[SUM]]
#both = #whale.placement<[8] replicate 2 on [0, 1]>
#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32> {whale.placement = #both})
      -> tensor<8xf32> {
    %0 = whale.reshard %x from #both to #terms : tensor<8xf32>
    %1 = whale.reshard %0 from #terms to #both : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
