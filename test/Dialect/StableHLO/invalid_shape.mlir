// Constants and operations that change shapes, also the dynamic ones, each with
// one mistake: ranks and dimensions that do not fit, numbers of elements that
// differ, sizes beyond 64 bits. It has to give exactly the errors noted above
// it. A failure means that a mistake passes, or that its message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @constant_c1() {
  // expected-error @+2 {{inferred type(s) 'tensor<2xi32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<3xi32>
  return
}

// -----

func.func @constant_bytes() {
  // expected-error @+1 {{expects a byte for each of 4 booleans (got 3)}}
  stablehlo.constant dense<"0x000100"> : tensor<4xi1>
  return
}

// -----

func.func @constant_digits() {
  // expected-error @+1 {{expects an even number of hex digits}}
  stablehlo.constant dense<"0x00010"> : tensor<4xi1>
  return
}

// -----

func.func @constant_twice() {
  // expected-error @+1 {{expects 'value' only once}}
  stablehlo.constant {value = 1} dense<1> : tensor<i32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @+1 {{expects iota_dimension in range [0, 2) (got 2)}}
  stablehlo.iota dim = 2 : tensor<4x8xi32>
  return
}

// -----

func.func @iota_negative() {
  // expected-error @+1 {{expects iota_dimension in range [0, 2) (got -1)}}
  stablehlo.iota dim = -1 : tensor<4x8xi32>
  return
}

// -----

func.func @broadcast_in_dim_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects operand and result of one element type}}
  stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xi32>
  return
}

// -----

func.func @broadcast_in_dim_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 2 broadcast_dimensions (got 1)}}
  stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_in_dim_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects broadcast_dimensions in range [0, 2) (got 2)}}
  stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_in_dim_c4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects broadcast_dimensions to be unique (got 1 twice)}}
  stablehlo.broadcast_in_dim %x, dims = [1, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_in_dim_c5(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects size 1 or 9 of operand dimension 1 (got 8)}}
  stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @reshape_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects operand and result of one element type}}
  stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<32xi32>
  return
}

// -----

func.func @reshape_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects as many elements in the result as in the operand}}
  stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<31xf32>
  return
}

// -----

func.func @reshape_overflow(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error @+1 {{expects as many elements in the result as in the operand}}
  stablehlo.reshape %x : (tensor<4294967296x4294967296xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects permutation to be unique (got 0 twice)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.transpose %x, dims = [0, 0] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_count(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects 2 dimensions in permutation (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.transpose %x, dims = [0] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @transpose_c3(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<8x4xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reverse_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimensions to be unique (got 1 twice)}}
  stablehlo.reverse %x, dims = [1, 1] : tensor<4x8xf32>
  return
}

// -----

func.func @reverse_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimensions in range [0, 2) (got 2)}}
  stablehlo.reverse %x, dims = [2] : tensor<4x8xf32>
  return
}

// -----

func.func @concatenate_c1(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>) {
  // expected-error @+2 {{expects inputs of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.concatenate %x, %y, dim = 0 : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @concatenate_c2(%x: tensor<4x8xf32>, %y: tensor<4x7xf32>) {
  // expected-error @+2 {{expects each input, but for the dimension, of shape [4, 8] (got [4, 7])}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.concatenate %x, %y, dim = 0 : (tensor<4x8xf32>, tensor<4x7xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @concatenate_c3() {
  // expected-error @+2 {{expects at least one input}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.concatenate"() <{dimension = 0 : i64}> : () -> tensor<8xf32>
  return
}

// -----

func.func @concatenate_c4(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects dimension in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.concatenate %x, dim = 2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concatenate_c6(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<8x8xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.concatenate %x, %x, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<9x8xf32>
  return
}

// -----

func.func @concatenate_overflow(%x: tensor<9223372036854775807xi1>) {
  // expected-error @+2 {{expects a result whose size can be represented}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.concatenate %x, %x, dim = 0 : (tensor<9223372036854775807xi1>, tensor<9223372036854775807xi1>) -> tensor<0xi1>
  return
}

// -----

func.func @pad_c1(%x: tensor<4x8xf32>, %v: tensor<i32>) {
  // expected-error @+2 {{expects operand and padding value of one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c2_low(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects 2 edge_padding_low values (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c2_high(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects 2 edge_padding_high values (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0, 0], high = [0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c2_interior(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects 2 interior_padding values (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0, 0], high = [0, 0], interior = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects interior_padding of at least 0 (got -1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0, 0], high = [0, 0], interior = [0, -1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c4(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<5x8xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects padding that leaves dimension 0 a size that can be represented}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [-5, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_overflow(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // expected-error @+2 {{expects padding that leaves dimension 1 a size that can be represented}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.pad %x, %v, low = [0, 0], high = [0, 0], interior = [0, 9223372036854775807] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @get_dimension_size_c1(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{expects dimension in range [0, 2) (got 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.get_dimension_size %x, dim = 2 : (tensor<4x8xf32>) -> tensor<i32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c7(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects 2 elements of output_dimensions (got 3)}}
  stablehlo.dynamic_broadcast_in_dim %x, %s3, dims = [0, 1] : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c8(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects known dimensions to be unique (got 0 twice)}}
  stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @dynamic_iota_c1(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects iota_dimension in range [0, 2) (got 2)}}
  stablehlo.dynamic_iota %s, dim = 2 : (tensor<2xi32>) -> tensor<?x?xi32>
  return
}

// -----

func.func @dynamic_iota_c2(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects 2 elements of output_shape (got 3)}}
  stablehlo.dynamic_iota %s3, dim = 0 : (tensor<3xi32>) -> tensor<?x?xi32>
  return
}

// -----

func.func @dynamic_pad_c1(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects operand and result of one element type}}
  stablehlo.dynamic_pad %x, %v, %s, %s, %s : (tensor<4x8xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  return
}

// -----

func.func @dynamic_pad_c2(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects 2 elements of padding (got 3)}}
  stablehlo.dynamic_pad %x, %v, %s, %s3, %s : (tensor<4x8xf32>, tensor<f32>, tensor<2xi32>, tensor<3xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @dynamic_reshape_c1(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects operand and result of one element type}}
  stablehlo.dynamic_reshape %x, %s : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<?x?xi32>
  return
}

// -----

func.func @dynamic_reshape_c4(%x: tensor<4x8xf32>, %s: tensor<2xi32>, %s3: tensor<3xi32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects 2 elements of output_shape (got 3)}}
  stablehlo.dynamic_reshape %x, %s3 : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<?x?xf32>
  return
}
