// The examples of docs/dialects/whale.md.
// RUN: whale-opt %s -split-input-file | FileCheck %s

// CHECK: whale.cluster @cluster
// CHECK: whale.task_graph "body" forward
// CHECK: whale.reshard
// CHECK: whale.all_gather

#rows = #whale.placement<[8, 16] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8, 16] replicate 2 on [0, 1]>

whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
whale.virtual_device @vd0 [[0, 1]]

func.func @main(%x: tensor<8x16xf32> {whale.batch_dim = 0})
    -> tensor<8x16xf32> {
  %0 = whale.task_graph "body" forward
      strategy #whale.replicate<devices = 2> on @vd0 flops 128
      -> tensor<8x16xf32> {
    %y = arith.addf %x, %x : tensor<8x16xf32>
    whale.yield %y : tensor<8x16xf32>
  }
  %1 = whale.reshard %0 from #rows to #whole : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

#rows = #whale.placement<[8, 16] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8, 16] replicate 2 on [0, 1]>

whale.schedule ranks [0, 1] @rank_class_0(
    %x: tensor<4x16xf32> {whale.placement = #rows})
    -> (tensor<8x16xf32> {whale.placement = #whole}) {
  %y = arith.addf %x, %x : tensor<4x16xf32>
  %z = whale.all_gather %y channel 0 from #rows to #whole
      : (tensor<4x16xf32>) -> tensor<8x16xf32>
  whale.return %z : tensor<8x16xf32>
}
