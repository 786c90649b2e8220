// RUN: whale-opt %s --whale-load-cluster=ranks=4 --whale-assign-devices \
// RUN:   --whale-propagate -o /dev/null 2>&1 | FileCheck %s

// Each parameter says how it is split, what that is called, and what else was
// weighed.

// CHECK: argument 0 is split along dimension 1 in 8 grains
// CHECK-SAME: (embedding: its results are split, too), [[S:[0-9.e-]+]] s;
// CHECK-SAME: not along dimension 0 in 64 grains
// CHECK-SAME: (vocabulary: its results are partial sums)
// CHECK: argument 1 is split along dimension 2 in 16 grains
// CHECK-SAME: (column: its results are split, too), [[S]] s;
// CHECK-SAME: not along dimension 0 in 4 grains
// CHECK-SAME: (expert: its results are split, too), [[S]] s;
// CHECK-SAME: not along dimension 1 in 8 grains
// CHECK-SAME: (row: its results are partial sums)
// CHECK: argument 2 is split along dimension 3 in 32 grains
// CHECK-SAME: (output channels: its results are split, too), [[S]] s;
// CHECK-SAME: not along dimension 2 in 8 grains
// CHECK-SAME: (input channels: its results are partial sums)
func.func @main(%table: tensor<64x8xf32>, %experts: tensor<4x8x16xf32>,
                %kernel: tensor<3x3x8x32xf32>,
                %tokens: tensor<4x1xi32>, %x: tensor<4x6x8xf32> {whale.batch_dim = 1 : i64},
                %image: tensor<2x5x5x8xf32> {whale.batch_dim = 0 : i64})
    -> (tensor<4x8xf32>, tensor<4x6x16xf32>, tensor<2x5x5x32xf32>) {
  %f:3 = whale.task_graph "default" forward strategy #whale.split
      -> tensor<4x8xf32>, tensor<4x6x16xf32>, tensor<2x5x5x32xf32> {
    %rows = "stablehlo.gather"(%table, %tokens) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 8>, indices_are_sorted = false}>
      : (tensor<64x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
    %hidden = stablehlo.dot_general %x, %experts, batching_dims = [0] x [0],
        contracting_dims = [2] x [1]
        : (tensor<4x6x8xf32>, tensor<4x8x16xf32>) -> tensor<4x6x16xf32>
    %maps = stablehlo.convolution(%image, %kernel)
        dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<2x5x5x8xf32>, tensor<3x3x8x32xf32>) -> tensor<2x5x5x32xf32>
    whale.yield %rows, %hidden, %maps
        : tensor<4x8xf32>, tensor<4x6x16xf32>, tensor<2x5x5x32xf32>
  }
  return %f#0, %f#1, %f#2
      : tensor<4x8xf32>, tensor<4x6x16xf32>, tensor<2x5x5x32xf32>
}
