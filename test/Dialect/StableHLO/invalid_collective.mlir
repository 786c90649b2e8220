// Collectives, send, recv and asynchronous operations, each with one mistake in
// its groups, dimensions, shapes, types or regions. It has to give exactly the
// errors noted above it. A failure means that a mistake passes, or that its
// message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @all_gather_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects all_gather_dim in range [0, 2) (got 2)}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @all_gather_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each id of replica_groups once and none negative (got 0)}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @all_gather_rank(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects replica_groups of rank 2 (got}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @all_gather_c5(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a positive channel handle with use_global_device_ids}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @all_gather_c6(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a result of a multiple of size 4 in dimension 0 (got 7)}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<7x8xf32>
  return
}

// -----

func.func @all_gather_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result, but for all_gather_dim, of shape [4, 8] (got [4, 7])}}
  "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x7xf32>
  return
}

// -----

func.func @all_gather_operands() {
  // expected-error @+1 {{expects at least one operand}}
  "stablehlo.all_gather"() <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : () -> ()
  return
}

// -----

func.func @all_reduce_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each id of replica_groups once and none negative (got -2)}}
  "stablehlo.all_reduce"(%x) <{replica_groups = dense<-2> : tensor<1x1xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @all_reduce_c5(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a region on elements to which 'f32' can be promoted (got 'i32')}}
  "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @all_reduce_c6(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a result of the operand's shape and the region's element type}}
  "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @all_reduce_results(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 1 results (got 0)}}
  "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> ()
  return
}

// -----

func.func @reduce_scatter_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects scatter_dimension in range [0, 2) (got 2)}}
  "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @reduce_scatter_c7(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects result and region of one element type}}
  "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf64>
  return
}

// -----

func.func @reduce_scatter_c8(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result, but for scatter_dimension, of shape [4, 8] (got [4, 7])}}
  "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x7xf32>
  return
}

// -----

func.func @reduce_scatter_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects an operand of a multiple of size 3 in dimension 0 (got 4)}}
  "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @all_to_all_c1(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects split_dimension in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 2 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @all_to_all_c2(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects size 8 of split_dimension to be divisible by split_count (3)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, split_count = 3 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @all_to_all_c3(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects concat_dimension in range [0, 2) (got -1)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = -1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @all_to_all_c4(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects split_count of at least 1 (got 0)}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>, split_count = 0 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @all_to_all_c8(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects groups of split_count (4) processes (got 2)}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<16x2xf32>
  return
}

// -----

func.func @all_to_all_c9(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<8x4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @collective_broadcast_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each id of replica_groups once and none negative (got 1)}}
  "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<1> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @collective_permute_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects source_target_pairs of shape [n, 2] (got}}
  "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @collective_permute_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each source once and none negative (got 0)}}
  "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @collective_permute_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each target once and none negative (got 1)}}
  "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @partition_id() {
  // expected-error @+2 {{inferred type(s) 'tensor<ui32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.partition_id : tensor<i32>
  return
}

// -----

func.func @replica_id() {
  // expected-error @+2 {{inferred type(s) 'tensor<ui32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.replica_id : tensor<i32>
  return
}

// -----

func.func @recv_c2(%t: !stablehlo.token) {
  // expected-error @+1 {{expects a token as the last result}}
  "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>}> : (!stablehlo.token) -> tensor<4xf32>
  return
}

// -----

func.func @recv_c1(%t: !stablehlo.token) {
  // expected-error @+1 {{expects tensors before the token}}
  "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>}> : (!stablehlo.token) -> (!stablehlo.token, !stablehlo.token)
  return
}

// -----

func.func @send_pairs(%t: !stablehlo.token) {
  // expected-error @+1 {{expects source_target_pairs of shape [n, 2]}}
  "stablehlo.send"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, source_target_pairs = dense<0> : tensor<1xi64>}> : (!stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @async_start_arguments(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects region arguments of the operands' types}}
  "stablehlo.async_start"(%x) ({
    stablehlo.return
  }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4xf32>>
  return
}

// -----

func.func @async_start_future(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a region that returns the future's types}}
  "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<4x8xf32>):
    stablehlo.return %a : tensor<4x8xf32>
  }) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<4xf32>>
  return
}

// -----

func.func @async_done_c1(%f: !stablehlo.future<tensor<4xf32>>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<5xf32>
  return
}

// -----

// The largest number is no special case.
func.func @collective_permute_largest(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each target once and none negative (got 9223372036854775807)}}
  "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 9223372036854775807], [1, 9223372036854775807]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
