// Sharding rules of products, convolutions and their gradients, attention and
// triangular solves. Each remark is the rule of an operation: which dimensions
// are split together, which are summed or stay whole, which rows of neighbours
// are read. By a wrong rule, devices would compute something else.

// RUN: whale-opt %s -whale-print-rules -split-input-file -verify-diagnostics -o /dev/null

// Products and convolutions: batch and free dimensions are split, what is summed
// makes results partial.

func.func @f(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) {
  // expected-remark@+1 {{[b, a], [a, c] -> [b, c] where a=4 sum, b=8, c=16; linear in 0; linear in 1}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x4xf32>, %b: tensor<2x16x4xf32>) {
  // expected-remark@+1 {{[a, c, b], [a, d, b] -> [a, c, d] where a=2, b=4 sum, c=8, d=16; linear in 0; linear in 1}}
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x4xf32>, tensor<2x16x4xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @f(%a: tensor<2x8x4xf32>, %b: tensor<2x8x16xf32>) {
  // Two dimensions are summed.
  // expected-remark@+1 {{[a, b, c], [a, b, d] -> [c, d] where a=2 sum, b=8 sum, c=4, d=16; linear in 0; linear in 1}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf32>, %b: tensor<16xf32>) {
  // An outer product.
  // expected-remark@+1 {{[a], [b] -> [a, b] where a=8, b=16; linear in 0; linear in 1}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : (tensor<8xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x8x4xf32>, %k: tensor<3x3x4x16xf32>) {
  // Positions of the window need their neighbours.
  // expected-remark@+1 {{[a, d, e, b], [f, g, b, c] -> [a, h, i, c] where a=2, b=4 sum, c=16, d=8 whole, e=8 whole, f=3 whole, g=3 whole, h=6 whole, i=6 whole; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<2x6x6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x8x4xf32>, %k: tensor<3x3x1x8xf32>) {
  // Depthwise: groups of features are split with the filters.
  // expected-remark@+1 {{[a, d, e, b], [f, g, 1, bc] -> [a, h, i, bc] where a=2, b=4, c=2, d=8 whole, e=8 whole, f=3 whole, g=3 whole, h=6 whole, i=6 whole; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
      : (tensor<2x8x8x4xf32>, tensor<3x3x1x8xf32>) -> tensor<2x6x6x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8x8x4xf32>, %k: tensor<3x3x4x16xf32>) {
  // expected-remark@+1 {{[ab, e, f, d], [g, h, d, ac] -> [b, i, j, ac] where a=2, b=2, c=8, d=4 sum, e=8 whole, f=8 whole, g=3 whole, h=3 whole, i=6 whole, j=6 whole; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
      : (tensor<4x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<2x6x6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x6x4xf32>, %k: tensor<3x5x4x16xf32>) {
  // Padding keeps the size: each part reads rows of its neighbours.
  // expected-remark@+1 {{[a, d, e, b], [f, g, b, c] -> [a, d, e, c] where a=2, b=4 sum, c=16, d=8, e=6, f=3 whole, g=5 whole; along d reads 1 rows before and 1 after in 0; along e reads 2 rows before and 2 after in 0; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [2, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x6x4xf32>, tensor<3x5x4x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x16x12x4xf32>, %k: tensor<3x2x4x16xf32>) {
  // With stride 2, in grains of two rows; nothing is read of others where
  // windows are side by side.
  // expected-remark@+1 {{[a, de, fg, b], [h, i, b, c] -> [a, d, f, c] where a=2, b=4 sum, c=16, d=8, e=2 whole, f=6, g=2 whole, h=3 whole, i=2 whole; along d reads 0 rows before and 1 after in 0; along f reads 0 rows before and 0 after in 0; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x16x12x4xf32>, tensor<3x2x4x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x6x16xf32>, %k: tensor<3x3x4x16xf32>) {
  // The gradient of the image of such a convolution spreads rows out, in one
  // dimension; the other one is padded to another size.
  // expected-remark@+1 {{[a, d, f, b], [g, h, c, b] -> [a, de, i, c] where a=2, b=16 sum, c=4, d=8, e=2 whole, f=6 whole, g=3 whole, h=3 whole, i=8 whole; along d reads 1 rows before and 0 after in 0; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 2]], lhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x6x16xf32>, tensor<3x3x4x16xf32>) -> tensor<2x16x8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x16x12x4xf32>, %g: tensor<2x8x12x16xf32>) {
  // The gradient of the kernel sums over rows; where the window is reversed
  // rows and positions run against each other.
  // expected-remark@+1 {{[b, de, f, a], [b, d, g, c] -> [h, i, a, c] where a=4, b=2 sum, c=16, d=8 sum, e=2 whole, f=12 whole, g=12 whole, h=3 whole, i=3 whole; along d reads 0 rows before and 1 after in 0; linear in 0; linear in 1}}
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [1, 1]], rhs_dilate = [2, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x16x12x4xf32>, tensor<2x8x12x16xf32>) -> tensor<3x3x4x16xf32>
  return
}

// -----

// Of attention, heads, samples and rows are split; keys are whole, which keeps
// all sums as they are.
func.func @f(%q: tensor<8x5x4x3xf32>, %k: tensor<8x6x3xf32>, %v: tensor<8x6x2xf32>, %m: tensor<8x1x1x6xi1>) {
  // expected-remark@+1 {{[a, b, c, d], [a, e, f], [a, g, h], [a, 1, 1, i] -> [a, c, b, j] where a=8, b=5, c=4, d=3 whole, e=6 whole, f=3 whole, g=6 whole, h=2 whole, i=6 whole, j=2 whole; linear in 2}}
  %0 = whale.attention query "bqhd" %q key "bkd" %k value "bke" %v mask "b11k" %m to "bhqe" scale 1.0 : (tensor<8x5x4x3xf32>, tensor<8x6x3xf32>, tensor<8x6x2xf32>, tensor<8x1x1x6xi1>) -> tensor<8x4x5x2xf32>
  return
}

// -----

// Where the number of a row matters, rows are whole.
func.func @f(%q: tensor<8x5x3xf32>, %k: tensor<6x3xf32>, %v: tensor<6x2xf32>) {
  // expected-remark@+1 {{[a, b, c], [d, e], [f, g] -> [a, h, i] where a=8, b=5 whole, c=3 whole, d=6 whole, e=3 whole, f=6 whole, g=2 whole, h=5 whole, i=2 whole; linear in 2}}
  %0 = whale.attention query "hqd" %q key "kd" %k value "ke" %v to "hqe" scale 1.0 {causal = 0 : i64} : (tensor<8x5x3xf32>, tensor<6x3xf32>, tensor<6x2xf32>) -> tensor<8x5x2xf32>
  return
}

// -----

// Cotangents of keys and values are sums over rows.
func.func @f(%q: tensor<8x5x3xf32>, %k: tensor<6x3xf32>, %v: tensor<6x2xf32>, %d: tensor<8x5x2xf32>) {
  // expected-remark@+1 {{[a, b, c], [d, e], [f, g], [a, b, h] -> [a, b, i], [a, j, k], [a, l, m] where a=8, b=5 sum, c=3 whole, d=6 whole, e=3 whole, f=6 whole, g=2 whole, h=2 whole, i=3 whole, j=6 whole, k=3 whole, l=6 whole, m=2 whole; linear in 3}}
  %0:3 = whale.attention_gradient query "hqd" %q key "kd" %k value "ke" %v cotangent "hqe" %d to "hqd", "hkd", "hke" scale 1.0 : (tensor<8x5x3xf32>, tensor<6x3xf32>, tensor<6x2xf32>, tensor<8x5x2xf32>) -> (tensor<8x5x3xf32>, tensor<8x6x3xf32>, tensor<8x6x2xf32>)
  return
}

// -----

func.func @f(%a: tensor<2x4x4xf32>, %b: tensor<2x4x8xf32>, %c: tensor<2x8x4xf32>) {
  // Each system is solved alone: the columns, or rows, of the right-hand side.
  // expected-remark@+1 {{[a, c, d], [a, e, b] -> [a, f, b] where a=2, b=8, c=4 whole, d=4 whole, e=4 whole, f=4 whole}}
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // expected-remark@+1 {{[a, c, d], [a, b, e] -> [a, b, f] where a=2, b=8, c=4 whole, d=4 whole, e=4 whole, f=4 whole}}
  %1 = "stablehlo.triangular_solve"(%a, %c) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x4x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  // expected-remark@+1 {{[a, c, d], [a, e, b] -> [a, f, b] where a=2, b=8, c=4 whole, d=4 whole, e=4 whole, f=4 whole}}
  %2 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]} : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // expected-remark@+1 {{[a, c, d], [a, b, e] -> [a, b, f] where a=2, b=8, c=4 whole, d=4 whole, e=4 whole, f=4 whole}}
  %3 = stablehlo.custom_call @lapack_strsm_ffi(%a, %c) {mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]} : (tensor<2x4x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return
}
