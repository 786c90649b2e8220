// Slices, gathers, scatters and sorts, each with one mistake in its dimension
// numbers, sizes, element types or regions. It has to give exactly the errors
// noted above it. A failure means that a mistake passes, or that its message
// has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @slice_c2(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects 2 start_indices (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.slice %x [0:4] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_limits(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects 2 limit_indices (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.slice"(%x) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4>, strides = array<i64: 1, 1>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_c3(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects 0 <= start <= limit <= size in dimension 1 (got 0:9}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.slice %x [0:4, 0:9] : (tensor<4x8xf32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @slice_c4(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects strides of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.slice %x [0:4, 0:8:0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_c5(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x3xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.slice %x [0:4, 0:8:3] : (tensor<4x8xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @dynamic_slice_c2(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+2 {{expects 2 start_indices (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_slice %x, %i, sizes = [1, 1] : (tensor<4x8xf32>, tensor<i32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @dynamic_slice_sizes(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+2 {{expects 2 slice_sizes (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_slice %x, %i, %i, sizes = [1] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @dynamic_slice_c3(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+2 {{expects start_indices of one element type (got 'i32' and 'i64')}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 1] : (tensor<4x8xf32>, tensor<i32>, tensor<i64>) -> tensor<1x1xf32>
  return
}

// -----

func.func @dynamic_slice_c4(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+2 {{expects 0 <= slice size <= size in dimension 1 (got 9}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 9] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x9xf32>
  return
}

// -----

func.func @dynamic_slice_c5(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>) {
  // expected-error @+2 {{inferred type(s) 'tensor<1x1xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 1] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @dynamic_update_slice_c2(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>, %u: tensor<1x1xi32>) {
  // expected-error @+2 {{expects operand and update of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<4x8xf32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @dynamic_update_slice_c3(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>, %u: tensor<1xf32>) {
  // expected-error @+2 {{expects 2 dimensions of the update (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<4x8xf32>, tensor<1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @dynamic_update_slice_c4(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>, %u: tensor<1x1xf32>) {
  // expected-error @+2 {{expects 2 start_indices (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4x8xf32>, tensor<1x1xf32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @dynamic_update_slice_c6(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i64>, %u: tensor<1x9xf32>) {
  // expected-error @+2 {{expects an update that fits in dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<4x8xf32>, tensor<1x9xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @real_dynamic_slice_c2(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects bounds for each of 2 dimensions}}
  stablehlo.real_dynamic_slice %x, %s, %s3, %s : (tensor<4x8xf32>, tensor<2xi32>, tensor<3xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @gather_c1(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects 1 offset_dims (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects index_vector_dim in range [0, 2] (got 3)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 3>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c3(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects 1 dimensions in start_index_map (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c4(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects offset_dims to be sorted}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 1], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x1x8xf32>
  return
}

// -----

func.func @gather_c5(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects offset_dims in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c6(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects collapsed_slice_dims and operand_batching_dims to be unique (got 0 twice)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c7(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects collapsed_slice_dims to be sorted}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1, 0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c8(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects collapsed_slice_dims in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c9(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects slice size 0 or 1 in the collapsed or batching dimension 0 (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c10(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects operand_batching_dims to be sorted}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [1, 0], start_indices_batching_dims = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c11(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects operand_batching_dims in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [2], start_indices_batching_dims = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c13(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects start_indices_batching_dims to be unique (got 0 twice)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c14(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects start_indices_batching_dims in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c15(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects index_vector_dim not to be one of start_indices_batching_dims}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c16(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects 1 start_indices_batching_dims (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c17(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects batching dimensions of equal sizes (got 4 and 3)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c18(%x: tensor<4x8xf32>, %i: tensor<3x2xi32>) {
  // expected-error @+2 {{expects start_index_map and operand_batching_dims to be unique (got 0 twice)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x2xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c19(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects start_index_map in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c20(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects 2 slice_sizes (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c21(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{expects 0 <= slice size <= size in dimension 1 (got 9}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 9>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_c22(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<3x8xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @gather_field(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{unknown field 'foo'}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<foo = [1]>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @gather_twice(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
  // expected-error @+1 {{duplicate field 'offset_dims'}}
  "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], offset_dims = [1]>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @dynamic_gather_c1(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %s: tensor<3xi32>) {
  // expected-error @+1 {{expects 2 slice_sizes}}
  "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @scatter_c2(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects 1 update_window_dims (got 0)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c4(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x9xf32>) {
  // expected-error @+1 {{expects a window of at most 8 in update dimension 1 (got 9)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x9xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c4_batch(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<2x8xf32>) {
  // expected-error @+1 {{expects size 3 of update dimension 0, as in the indices (got 2)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c4_rank(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8x1xf32>) {
  // expected-error @+1 {{expects 2 dimensions of each update (got 3)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8x1xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c6(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xi32>) {
  // expected-error @+1 {{expects input and update of one element type}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c7(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x1x8xf32>) {
  // expected-error @+1 {{expects update_window_dims to be sorted}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x1x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c8(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects update_window_dims in range [0, 2) (got 2)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c9(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects inserted_window_dims and input_batching_dims to be unique (got 0 twice)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c19(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects 1 dimensions in scatter_dims_to_operand_dims (got 2)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c22(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects index_vector_dim in range [0, 2] (got 3)}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c23(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects a region on elements to which 'f32' can be promoted (got 'i32')}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_c24(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects each result of shape [4, 8] (got [4, 7])}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @scatter_c25(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) {
  // expected-error @+1 {{expects result and region of one element type}}
  "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

func.func @scatter_c5(%i: tensor<3x1xi32>) {
  // expected-error @+1 {{expects at least one input}}
  "stablehlo.scatter"(%i) <{scatter_dimension_numbers = #stablehlo.scatter<>}> ({
    stablehlo.return
  }) : (tensor<3x1xi32>) -> ()
  return
}

// -----

func.func @sort_c1() {
  // expected-error @+1 {{expected 1 or more operands, but found 0}}
  "stablehlo.sort"() ({
    stablehlo.return
  }) : () -> ()
  return
}

// -----

func.func @sort_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{requires the same shape for all operands and results}}
  "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @sort_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects input and result of one element type}}
  "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

func.func @sort_c4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimension in range [-2, 2) (got 2)}}
  "stablehlo.sort"(%x) <{dimension = 2 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sort_c5(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a comparator that returns tensor<i1>}}
  "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sort_c5_count(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 2 comparator arguments (got 1)}}
  "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sort_c5_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects comparator argument 0 to be a 0-dimensional tensor of 'f32'}}
  "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
