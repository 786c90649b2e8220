// RUN: whale-opt %s --whale-partition | FileCheck %s

// Nothing moves where one rank has it all, but an empty shard has the shape of
// its placement all the same.

#rows = #whale.placement<[2, 3] split 0 (2, 0) on [0, 1]>
#columns = #whale.placement<[2, 3] split 1 (3, 0) on [0, 1]>

module {
  whale.cluster @cluster {kinds = {cpu = {flops = {f32 = 1.0e12 : f64}, memory_bandwidth = 1.0e11 : f64, memory_bytes = 274877906944 : i64}}, nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
  whale.virtual_device @vd0 [[0, 1]]
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
  // CHECK-NEXT: stablehlo.negate %[[X]] : tensor<2x3xf32>
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
  // CHECK-SAME: %[[X:.*]]: tensor<0x3xf32>
  // CHECK-NEXT: %[[Y:.*]] = stablehlo.reshape %[[X]] : (tensor<0x3xf32>) -> tensor<2x0xf32>
  // CHECK-NEXT: %[[Z:.*]] = stablehlo.constant dense<> : tensor<2x0xf32>
  // CHECK-NEXT: whale.return %[[Z]]
  func.func public @main(%x: tensor<2x3xf32> {whale.placement = #rows})
      -> tensor<2x3xf32> {
    %0 = whale.reshard %x from #rows to #columns : tensor<2x3xf32>
    %1 = whale.task_graph "g" forward strategy #whale.split<devices = 2>
        on @vd0 flops 0 bytes 0 -> tensor<2x3xf32> {
      %2 = stablehlo.negate %0 {whale.placements = [#columns]}
          : tensor<2x3xf32>
      whale.yield %2 : tensor<2x3xf32>
    }
    return %1 : tensor<2x3xf32>
  }
}
