// RUN: whale-opt %s -whale-normalize | FileCheck %s

// x[jnp.arange(6), i], as jnp writes it.

// CHECK-LABEL: func.func @gather
// CHECK-SAME:    (%[[X:.*]]: tensor<6x5xf32>, %[[I:.*]]: tensor<6x1xi32>)
// CHECK-NEXT:    %[[R:.*]] = "stablehlo.gather"(%[[X]], %[[I]])
// CHECK-SAME:      collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1
// CHECK-NEXT:    return %[[R]]
func.func @gather(%x: tensor<6x5xf32>, %i: tensor<6x1xi32>) -> tensor<6xf32> {
  %iota = stablehlo.iota dim = 0 : tensor<6xi32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
  %below = stablehlo.compare LT, %iota, %zero, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %n = stablehlo.constant dense<6> : tensor<6xi32>
  %wrapped = stablehlo.add %iota, %n : tensor<6xi32>
  %row = stablehlo.select %below, %wrapped, %iota : tensor<6xi1>, tensor<6xi32>
  %rows = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
  %both = stablehlo.concatenate %rows, %i, dim = 1 : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>
  %0 = "stablehlo.gather"(%x, %both) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x5xf32>, tensor<6x2xi32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Two counted indices beside one that isn't, in another order than the
// operand's dimensions.

// CHECK-LABEL: func.func @two
// CHECK-SAME:    (%[[X:.*]]: tensor<4x6x5xf32>, %[[I:.*]]: tensor<6x4x1xi32>)
// CHECK-NEXT:    "stablehlo.gather"(%[[X]], %[[I]])
// CHECK-SAME:      collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [1, 0], start_index_map = [2], index_vector_dim = 2
func.func @two(%x: tensor<4x6x5xf32>, %i: tensor<6x4x1xi32>) -> tensor<6x4xf32> {
  %a = stablehlo.iota dim = 0 : tensor<6x4x1xi32>
  %b = stablehlo.iota dim = 1 : tensor<6x4x1xi32>
  %all = stablehlo.concatenate %a, %i, %b, dim = 2 : (tensor<6x4x1xi32>, tensor<6x4x1xi32>, tensor<6x4x1xi32>) -> tensor<6x4x3xi32>
  %0 = "stablehlo.gather"(%x, %all) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [1, 2, 0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x6x5xf32>, tensor<6x4x3xi32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME:    (%[[X:.*]]: tensor<6x5xf32>, %[[I:.*]]: tensor<6x2x1xi32>, %[[U:.*]]: tensor<6x2xf32>)
// CHECK-NEXT:    "stablehlo.scatter"(%[[X]], %[[I]], %[[U]])
// CHECK-SAME:      inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2
func.func @scatter(%x: tensor<6x5xf32>, %i: tensor<6x2x1xi32>, %u: tensor<6x2xf32>) -> tensor<6x5xf32> {
  %a = stablehlo.iota dim = 0 : tensor<6x2x1xi32>
  %both = stablehlo.concatenate %a, %i, dim = 2 : (tensor<6x2x1xi32>, tensor<6x2x1xi32>) -> tensor<6x2x2xi32>
  %0 = "stablehlo.scatter"(%x, %both, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<6x2x2xi32>, tensor<6x2xf32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}

// Fewer rows than the operand has, every row of a diagonal, and numbers that
// wrap round.

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @others(%x: tensor<6x6xf32>, %y: tensor<200x3xf32>, %i: tensor<4x1xi32>, %j: tensor<200x1xi8>) -> (tensor<4xf32>, tensor<4xf32>, tensor<200xf32>) {
  %a = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %both = stablehlo.concatenate %a, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %0 = "stablehlo.gather"(%x, %both) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x6xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %same = stablehlo.concatenate %a, %a, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %1 = "stablehlo.gather"(%x, %same) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x6xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %b = stablehlo.iota dim = 0 : tensor<200x1xi8>
  %narrow = stablehlo.concatenate %b, %j, dim = 1 : (tensor<200x1xi8>, tensor<200x1xi8>) -> tensor<200x2xi8>
  %2 = "stablehlo.gather"(%y, %narrow) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<200x3xf32>, tensor<200x2xi8>) -> tensor<200xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<200xf32>
}

// Pieces of none or of two indices: the iota is not at its place in the list.

// CHECK-LABEL: func.func @pieces
// CHECK: collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2]
func.func @pieces(%x: tensor<4x4x4xf32>, %i: tensor<4x2xi32>, %none: tensor<4x0xi32>) -> tensor<4xf32> {
  %a = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %all = stablehlo.concatenate %i, %a, %none, dim = 1 : (tensor<4x2xi32>, tensor<4x1xi32>, tensor<4x0xi32>) -> tensor<4x3xi32>
  %0 = "stablehlo.gather"(%x, %all) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x4x4xf32>, tensor<4x3xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
