// Regions in a wider type than the operands, and windows over nothing.

func.func @reduce() {
  // 200 + 100 does not fit in a byte.
  %x = stablehlo.constant dense<[100, 100, 100]> : tensor<3xi8>
  %init = stablehlo.constant dense<0> : tensor<i8>
  %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<3xi8>, tensor<i8>) -> tensor<i32>
  check.expect_eq_const %0, dense<300> : tensor<i32>
  func.return
}

func.func @reduce_window() {
  // 65504 is the largest number in f16.
  %x = stablehlo.constant dense<[6.5504e+04, 6.5504e+04, 1.0]> : tensor<3xf16>
  %init = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3xf16>, tensor<f16>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[1.31008e+05, 6.5505e+04]> : tensor<2xf32>
  func.return
}

func.func @scatter() {
  // 256 + 1 does not fit in bf16.
  %x = stablehlo.constant dense<[256.0, 2.0]> : tensor<2xbf16>
  %i = stablehlo.constant dense<0> : tensor<1x1xi32>
  %u = stablehlo.constant dense<1.0> : tensor<1xbf16>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2xbf16>, tensor<1x1xi32>, tensor<1xbf16>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[257.0, 2.0]> : tensor<2xf32>
  func.return
}

func.func @select_and_scatter() {
  %x = stablehlo.constant dense<[1, 3, 2]> : tensor<3xi8>
  %s = stablehlo.constant dense<[100, 100]> : tensor<2xi8>
  %init = stablehlo.constant dense<1> : tensor<i8>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %init) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<i16>, %b: tensor<i16>):
    %1 = stablehlo.add %a, %b : tensor<i16>
    stablehlo.return %1 : tensor<i16>
  }) : (tensor<3xi8>, tensor<2xi8>, tensor<i8>) -> tensor<3xi16>
  check.expect_eq_const %0, dense<[1, 201, 1]> : tensor<3xi16>
  func.return
}

func.func @window_over_nothing() {
  %x = stablehlo.constant dense<0.0> : tensor<2x0xf32>
  %init = stablehlo.constant dense<3.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 1, 2>, base_dilations = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x0xf32>, tensor<f32>) -> tensor<2x1xf32>
  check.expect_eq_const %0, dense<3.0> : tensor<2x1xf32>
  func.return
}
