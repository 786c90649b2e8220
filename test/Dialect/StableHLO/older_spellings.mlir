// RUN: whale-opt %s | whale-opt | FileCheck %s

// What other versions of JAX, jax.export and hand-written texts spell
// differently is read too.

// CHECK: module @jit_f attributes {jax.uses_shape_polymorphism = true, tf.versions = 1 : i64}
module @jit_f attributes {
    jax.uses_shape_polymorphism = true,
    tf.versions = 1 : i64
} {
  // Attributes of other dialects are kept, in order.
  // CHECK-LABEL: func.func public @unknown_attributes
  // CHECK-SAME: %arg0: tensor<4xf32> {jax.buffer_donor = true, mhlo.layout_mode = "default", tf.aliasing_output = 0 : i32}
  func.func public @unknown_attributes(
      %arg0: tensor<4xf32> {jax.buffer_donor = true,
                            mhlo.layout_mode = "default",
                            tf.aliasing_output = 0 : i32})
      -> (tensor<4xf32> {jax.result_info = "result"}) {
    // CHECK: stablehlo.add %arg0, %arg0 {mhlo.frontend_attributes = {_xla_compute_type = "host"}, mhlo.sharding = "{replicated}"} : tensor<4xf32>
    %0 = stablehlo.add %arg0, %arg0 {
      mhlo.frontend_attributes = {_xla_compute_type = "host"},
      mhlo.sharding = "{replicated}"
    } : tensor<4xf32>
    // CHECK: return
    func.return %0 : tensor<4xf32>
  }

  // Attributes of the operation in a dictionary without angle brackets.
  // CHECK-LABEL: @plain_dictionary
  func.func @plain_dictionary(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>) {
    // CHECK: "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}>
    %0 = "stablehlo.gather"(%x, %i) {
      dimension_numbers = #stablehlo.gather<
        offset_dims = [1],
        collapsed_slice_dims = [0],
        start_index_map = [0],
        index_vector_dim = 1>,
      indices_are_sorted = false,
      slice_sizes = array<i64: 1, 8>
    } : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
    // CHECK: stablehlo.transpose %arg0, dims = [1, 0]
    %1 = "stablehlo.transpose"(%x) {permutation = array<i64: 1, 0>}
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
    // CHECK: stablehlo.constant dense<1> : tensor<i32>
    %2 = "stablehlo.constant"() {value = dense<1> : tensor<i32>}
      : () -> tensor<i32>
    // CHECK: stablehlo.compare LT, %arg0, %arg0, FLOAT
    %3 = "stablehlo.compare"(%x, %x) {
      compare_type = #stablehlo<comparison_type FLOAT>,
      comparison_direction = #stablehlo<comparison_direction LT>
    } : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    return
  }

  // Attributes left out at their default, as by jax.export.
  // CHECK-LABEL: @defaults
  func.func @defaults(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>,
                      %image: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>,
                      %i: tensor<3x1xi32>, %zero: tensor<f32>) {
    // CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] :
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    // CHECK: window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
    %1 = stablehlo.convolution(%image, %k)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32>
    // CHECK: <{dimension_numbers = #stablehlo.gather<{{[^>]*}}>, slice_sizes = array<i64: 1, 8>}>
    %2 = "stablehlo.gather"(%x, %i) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0],
        index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}>
      : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
    // CHECK: "stablehlo.reduce_window"(%arg0, %arg5) <{window_dimensions = array<i64: 2, 2>}>
    %3 = "stablehlo.reduce_window"(%x, %zero) <{
      window_dimensions = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<3x7xf32>
    // CHECK: "stablehlo.sort"(%arg0) ({
    %4 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      // CHECK: stablehlo.compare LT, %{{.*}}, %{{[^,]*}} :
      %p = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: stablehlo.cholesky %{{.*}} : tensor<2x2xf32>
    %5 = stablehlo.slice %x [0:2, 0:2] : (tensor<4x8xf32>) -> tensor<2x2xf32>
    %6 = stablehlo.cholesky %5 : tensor<2x2xf32>
    return
  }

  // What jax.export makes of chlo.
  // CHECK-LABEL: @composite
  func.func @composite(%x: tensor<4xf32>) -> tensor<2xf32> {
    // CHECK: stablehlo.composite "chlo.top_k" %arg0 {composite_attributes = {k = 2 : i64}, decomposition = @chlo.top_k.impl, version = 1 : i32} : (tensor<4xf32>) -> tensor<2xf32>
    %0 = stablehlo.composite "chlo.top_k" %x {
      composite_attributes = {k = 2 : i64},
      decomposition = @chlo.top_k.impl,
      version = 1 : i32
    } : (tensor<4xf32>) -> tensor<2xf32>
    // CHECK: stablehlo.composite "a.b" %arg0 {decomposition = @chlo.top_k.impl} :
    %1 = stablehlo.composite "a.b" %x {decomposition = @chlo.top_k.impl}
      : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @chlo.top_k.impl(%x: tensor<4xf32>) -> tensor<2xf32> {
    %0 = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }

  // Dynamic sizes are legal, and compatible with static ones.
  // CHECK-LABEL: @dynamic
  func.func @dynamic(%x: tensor<?x8xf32>, %y: tensor<4x8xf32>) {
    // CHECK: stablehlo.add %arg0, %arg1 : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %0 = stablehlo.add %x, %y
      : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
    %1 = stablehlo.concatenate %x, %y, dim = 0
      : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
    return
  }
}
