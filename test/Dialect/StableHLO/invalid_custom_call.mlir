// Calls of functions that the compiler knows by name, each with one mistake in
// its operands, results, layouts or configuration. It has to give exactly the
// errors noted above it. A failure means that a mistake passes, or that its
// message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

func.func @missing_result(%x: tensor<8x8xf32>) {
  // expected-error @+1 {{expects 2 results (got 1)}}
  %0 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = true}} : (tensor<8x8xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @surplus_operand(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects 1 operand (got 2)}}
  %0 = stablehlo.custom_call @chlo.erf(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @other_shape(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects result 0 to be 'tensor<8xf32>' (got 'tensor<4xf32>')}}
  %0 = stablehlo.custom_call @mhlo.erf(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @token(%x: !stablehlo.token) {
  // expected-error @+1 {{expects operand 0 to be a tensor of 0 dimensions or more (got '!stablehlo.token')}}
  %0 = stablehlo.custom_call @mhlo.erf(%x) : (!stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @test_of_elements(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects result 0 to be 'tensor<8xi1>' (got 'tensor<8xf32>')}}
  %0 = stablehlo.custom_call @chlo.is_inf(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @no_k(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects k: an integer of type i64}}
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) : (tensor<8xf32>) -> (tensor<3xf32>, tensor<3xi32>)
  return
}

// -----

func.func @large_k(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects k<=n in (T n) -> (T k, i32 k) (got 9 and 8)}}
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 9 : i64}} : (tensor<8xf32>) -> (tensor<9xf32>, tensor<9xi32>)
  return
}

// -----

func.func @negative_k(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects k of at least 0 (got -1)}}
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = -1 : i64}} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)
  return
}

// -----

func.func @smallest(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects largest to be true (got false)}}
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = false}} : (tensor<8xf32>) -> (tensor<3xf32>, tensor<3xi32>)
  return
}

// -----

func.func @surplus_configuration(%x: tensor<8xf32>) {
  // expected-error @+1 {{has no configuration "k"}}
  %0 = stablehlo.custom_call @mhlo.erf(%x) {mhlo.attributes = {k = 3 : i64}} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @computations(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects no called_computations}}
  %0 = stablehlo.custom_call @mhlo.erf(%x) {called_computations = [@computations]} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @letter_width(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects uplo to be 'L' or 'U', of type ui8 (got 76 : i128)}}
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : i128}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  return
}

// -----

// Of three rows of the table, each with one mode.
func.func @mode(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects mode: 'A' or 'S' or 'N', of type ui8}}
  %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%a) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>)
  return
}

// -----

// The row of this side is right for longer than the other one.
func.func @side(%a: tensor<4x4xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+1 {{expects diag to be 'U' or 'N', of type ui8 (got 76 : ui8)}}
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {mhlo.backend_config = {diag = 76 : ui8, side = 82 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}} : (tensor<4x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @no_layouts(%a: tensor<4x6xf32>) {
  // expected-error @+1 {{expects operand_layouts and result_layouts}}
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xi32>, tensor<i32>)
  return
}

// -----

func.func @row_major(%a: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expects operand 0 to have the layout that LAPACK reads: the last two dimensions in column-major order (got dense<[2, 1, 0]> : tensor<3xindex>)}}
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {operand_layouts = [dense<[2, 1, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<2x4x6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4xi32>, tensor<2xi32>)
  return
}

// -----

// The type is that of the name.
func.func @element_type(%a: tensor<4x4xf64>) {
  // expected-error @+1 {{expects operand 0 to be 'tensor<4x4xf32>' (got 'tensor<4x4xf64>')}}
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]} : (tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xi32>, tensor<i32>)
  return
}

// -----

func.func @reflectors(%a: tensor<6x4xf32>, %t: tensor<5xf32>) {
  // expected-error @+1 {{expects k<=n in (T m n, T k) -> (T m n) (got 5 and 4)}}
  %0 = stablehlo.custom_call @lapack_sorgqr_ffi(%a, %t) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<6x4xf32>, tensor<5xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @range(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects high in 1..n (got 5)}}
  %0:3 = stablehlo.custom_call @lapack_sgehrd_ffi(%a) {mhlo.backend_config = {low = 1 : i32, high = 5 : i32}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<3xf32>, tensor<i32>)
  return
}

// -----

func.func @sharding(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects a tensor, and a result of its type (got 'tensor<8xf32>' and 'tensor<4xf32>')}}
  %0 = stablehlo.custom_call @Sharding(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @approx_dim(%x: tensor<8xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects reduction_dim in range [0, 1) (got 1)}}
  %0 = stablehlo.custom_call @ApproxTopK(%x, %v) {mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<8xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @approx_size(%x: tensor<8xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects result 0 to be 'tensor<2xf32>' (got 'tensor<3xf32>')}}
  %0 = stablehlo.custom_call @ApproxTopK(%x, %v) {mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<8xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

func.func @approx_comparator(%x: tensor<8xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{expects @approx_comparator to be a function that compares two elements of each tensor}}
  %0 = stablehlo.custom_call @ApproxTopK(%x, %v) {called_computations = [@approx_comparator], mhlo.backend_config = {reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<8xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
