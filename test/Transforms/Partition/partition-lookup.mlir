// RUN: whale-opt %s --whale-partition --canonicalize | FileCheck %s

// Positions in a table of 12 rows that is seen as [3, 4] or [2, 6]: each rank
// looks up those that it holds, and yields zeros for the others.

#rows = #whale.placement<[3, 4, 6] split 0 (2, 1) on [0, 1]>
#inner = #whale.placement<[3, 4, 6] split 1 (2, 2) on [0, 1]>
#at = #whale.placement<[5, 1] replicate 2 on [0, 1]>
#partial = #whale.placement<[5, 6] partial sum 2 on [0, 1]>
#whole = #whale.placement<[5, 6] replicate 2 on [0, 1]>

module {
  whale.cluster @cluster {kinds = {cpu = {flops = {f32 = 1.0e12 : f64}, memory_bandwidth = 1.0e11 : f64, memory_bytes = 274877906944 : i64}}, nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
  whale.virtual_device @vd0 [[0, 1]]

  // A contiguous range of rows: two blocks of four, or one.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-SAME: %[[A:.*]]: tensor<8x6xf32>
  // CHECK-SAME: %[[B:.*]]: tensor<6x6xf32>
  // CHECK-SAME: %[[I:.*]]: tensor<5x1xi32>
  // CHECK: %[[BLOCK:.*]] = whale.shard_offset 0
  // CHECK: %[[START:.*]] = stablehlo.multiply %[[BLOCK]], %{{.*}} : tensor<i32>
  // CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[START]]
  // CHECK: stablehlo.subtract %{{.*}}, %[[SHIFT]]
  // CHECK: "stablehlo.gather"(%[[A]]
  // CHECK: stablehlo.select

  // Two rows of each block of four: the block, and the row in it.
  // CHECK: %[[HIGH:.*]] = stablehlo.divide
  // CHECK: %[[LOW:.*]] = stablehlo.remainder
  // CHECK: stablehlo.multiply %[[HIGH]]
  // CHECK: %[[OFFSET:.*]] = whale.shard_offset 1
  // CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[OFFSET]]
  // CHECK: %[[IN:.*]] = stablehlo.subtract %[[LOW]], %[[SHIFT]]
  // CHECK: stablehlo.add %{{.*}}, %[[IN]]
  // CHECK: "stablehlo.gather"(%[[B]]
  // CHECK: stablehlo.select
  func.func public @main(
      %a: tensor<12x6xf32> {whale.placement = #rows},
      %b: tensor<12x6xf32> {whale.placement = #inner},
      %i: tensor<5x1xi32> {whale.placement = #at})
      -> (tensor<5x6xf32>, tensor<5x6xf32>) {
    %0:2 = whale.task_graph "default" forward strategy #whale.split on @vd0
        flops 0 bytes 0 -> tensor<5x6xf32>, tensor<5x6xf32> {
      %1 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> {whale.placements = [#partial]} : (tensor<12x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
      %2 = whale.reshard %1 from #partial to #whole : tensor<5x6xf32>
      %3 = "stablehlo.gather"(%b, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> {whale.placements = [#partial]} : (tensor<12x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
      %4 = whale.reshard %3 from #partial to #whole : tensor<5x6xf32>
      whale.yield %2, %4 : tensor<5x6xf32>, tensor<5x6xf32>
    }
    return %0#0, %0#1 : tensor<5x6xf32>, tensor<5x6xf32>
  }
}
