// RUN: whale-opt %s --whale-partition --whale-verify-partition --canonicalize \
// RUN:   | FileCheck %s

// Rows are added to a table whose rows are split: each rank moves the positions
// by the start of its part, and adds what falls into it.

#rows = #whale.placement<[8, 6] split 0 (3, 5) on [0, 1]>
#at = #whale.placement<[5, 1] replicate 2 on [0, 1]>
#new = #whale.placement<[5, 6] replicate 2 on [0, 1]>

module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}

  // CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
  // CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<3x6xf32>
  // CHECK: %[[START:.*]] = whale.shard_offset 0
  // CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[START]]
  // CHECK: %[[AT:.*]] = stablehlo.subtract %{{.*}}, %[[SHIFT]] : tensor<5xi32>
  // CHECK: stablehlo.compare LT, %[[AT]], %{{.*}}
  // CHECK: stablehlo.compare GE, %[[AT]], %{{.*}}
  // CHECK: %[[MINE:.*]] = stablehlo.select {{.*}} tensor<5x1xi32>
  // CHECK: "stablehlo.scatter"(%[[T]], %[[MINE]]
  // CHECK-LABEL: whale.schedule ranks [1] @rank_class_1
  // CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<5x6xf32>
  // CHECK: "stablehlo.scatter"(%[[T]], %{{.*}}
  func.func public @main(%t: tensor<8x6xf32> {whale.placement = #rows},
                         %i: tensor<5x1xi32> {whale.placement = #at},
                         %u: tensor<5x6xf32> {whale.placement = #new})
      -> tensor<8x6xf32> {
    %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers =
        #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {whale.placements = [#rows]}
        : (tensor<8x6xf32>, tensor<5x1xi32>, tensor<5x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
