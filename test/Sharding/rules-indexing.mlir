// RUN: whale-opt %s -whale-print-rules -split-input-file -verify-diagnostics -o /dev/null

// Lookups and updates at computed places.

func.func @f(%t: tensor<32x16xf32>, %i: tensor<8x1xi32>) {
  // Rows of a table: the table can be split by rows (a lookup) and by columns.
  // expected-remark@+1 {{[b, c], [a, 1] -> [a, c] where a=8, b=32 lookup, c=16; linear in 0}}
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%t: tensor<32x16xf32>, %i: tensor<8x2xi32>) {
  // A part of a row at a computed place needs the row whole.
  // expected-remark@+1 {{[b, c], [a, d] -> [a, e] where a=8, b=32 lookup, c=16 whole, d=2 whole, e=4 whole; linear in 0}}
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<32x16xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x16xf32>, %i: tensor<8x1xi32>) {
  // A batch of lookups, each in its own row.
  // expected-remark@+1 {{[a, b], [a, 1] -> [a] where a=8, b=16 lookup; linear in 0}}
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x16xf32>, tensor<8x1xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<32x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8x16xf32>) {
  // The gradient of the first: rows are added to.
  // expected-remark@+1 {{[b, c], [a, 1], [a, c] -> [b, c] where a=8 whole, b=32 update, c=16; linear in 0 and 2}}
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<32x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return
}

// -----

func.func @f(%t: tensor<32x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8x16xf32>) {
  // Rows that are replaced: the last one wins, so updates stay together.
  // expected-remark@+1 {{[b, c], [a, 1], [a, c] -> [b, c] where a=8 whole, b=32 update, c=16}}
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) : (tensor<32x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return
}
