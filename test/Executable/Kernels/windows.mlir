// RUN: %python %S/../compare_kernels.py whale-kernels-test %s 

module @jit_win attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x8x9x3xf32>) -> (tensor<2x4x5x3xf32> {jax.result_info = "result[0]"}, tensor<2x8x5x3xf32> {jax.result_info = "result[1]"}, tensor<2x16x8x3xf32> {jax.result_info = "result[2]"}, tensor<2x8x9x3xf32> {jax.result_info = "result[3]"}, tensor<2x8x9x3xf32> {jax.result_info = "result[4]"}, tensor<2x8x9x4xf32> {jax.result_info = "result[5]"}, tensor<2x2x7x4xf32> {jax.result_info = "result[6]"}, tensor<2x8x9x6xf32> {jax.result_info = "result[7]"}, tensor<2x8x9x3xf32> {jax.result_info = "result[8]"}, tensor<3x3x3x4xf32> {jax.result_info = "result[9]"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x4x5x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
    %3 = "stablehlo.reduce_window"(%arg0, %2) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 0], [0, 2], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 3, 1>, window_strides = array<i64: 1, 1, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x8x5x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%arg0, %4) <{base_dilations = array<i64: 1, 2, 1, 1>, padding = dense<[[0, 0], [1, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 2, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x16x8x3xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<f32>
    %7 = "stablehlo.reduce_window"(%arg0, %6) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x4x5x3xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<2x4x5x3xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4x5x3xf32>
    %10 = stablehlo.multiply %9, %7 : tensor<2x4x5x3xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%8 init: %cst_4) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x4x5x3xf32>, tensor<f32>) -> tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x4x5x3xf32>
    %13 = stablehlo.multiply %12, %10 : tensor<2x4x5x3xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %14 = stablehlo.pad %arg0, %cst_6, low = [0, 0, 0, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x9x10x3xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = "stablehlo.select_and_scatter"(%14, %13, %cst_7) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %51 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x9x10x3xf32>, tensor<2x4x5x3xf32>, tensor<f32>) -> tensor<2x9x10x3xf32>
    %16 = stablehlo.slice %15 [0:2, 0:8, 0:9, 0:3] : (tensor<2x9x10x3xf32>) -> tensor<2x8x9x3xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<f32>
    %18 = "stablehlo.reduce_window"(%arg0, %17) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 0], [0, 2], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 3, 1>, window_strides = array<i64: 1, 1, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x8x9x3xf32>, tensor<f32>) -> tensor<2x8x5x3xf32>
    %19 = stablehlo.multiply %18, %18 : tensor<2x8x5x3xf32>
    %cst_9 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x8x5x3xf32>
    %21 = stablehlo.multiply %20, %18 : tensor<2x8x5x3xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%19 init: %cst_10) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x8x5x3xf32>, tensor<f32>) -> tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x8x5x3xf32>
    %24 = stablehlo.multiply %23, %21 : tensor<2x8x5x3xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.pad %24, %cst_12, low = [0, 0, 2, 0], high = [0, 1, 0, 0], interior = [0, 0, 1, 0] : (tensor<2x8x5x3xf32>, tensor<f32>) -> tensor<2x9x11x3xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<f32>
    %27 = "stablehlo.reduce_window"(%25, %26) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %51 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %51 : tensor<f32>
    }) : (tensor<2x9x11x3xf32>, tensor<f32>) -> tensor<2x8x9x3xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x3x3x4xf32>
    %29 = stablehlo.slice %arg0 [0:1, 0:3, 0:3, 0:3] : (tensor<2x8x9x3xf32>) -> tensor<1x3x3x3xf32>
    %30 = stablehlo.reshape %29 : (tensor<1x3x3x3xf32>) -> tensor<3x3x3xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2] : (tensor<3x3x3xf32>) -> tensor<3x3x3x1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2, 3] : (tensor<3x3x3x1xf32>) -> tensor<3x3x3x4xf32>
    %33 = stablehlo.multiply %28, %32 : tensor<3x3x3x4xf32>
    %34 = stablehlo.convolution(%arg0, %33) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x9x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x9x4xf32>
    %35 = stablehlo.convolution(%arg0, %33) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [2, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x9x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x2x7x4xf32>
    %36 = stablehlo.slice %33 [0:3, 0:3, 0:1, 0:4] : (tensor<3x3x3x4xf32>) -> tensor<3x3x1x4xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<3x3x1x4xf32>) -> tensor<3x3x1x4x2xf32>
    %38 = stablehlo.reshape %37 : (tensor<3x3x1x4x2xf32>) -> tensor<3x3x1x8xf32>
    %39 = stablehlo.slice %38 [0:3, 0:3, 0:1, 0:6] : (tensor<3x3x1x8xf32>) -> tensor<3x3x1x6xf32>
    %40 = stablehlo.convolution(%arg0, %39) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x9x3xf32>, tensor<3x3x1x6xf32>) -> tensor<2x8x9x6xf32>
    %41 = stablehlo.convolution(%arg0, %33) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x9x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x5x4xf32>
    %42 = stablehlo.multiply %41, %41 : tensor<2x4x5x4xf32>
    %cst_15 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x4x5x4xf32>
    %44 = stablehlo.multiply %43, %41 : tensor<2x4x5x4xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %45 = stablehlo.reduce(%42 init: %cst_16) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x4x5x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x4x5x4xf32>
    %47 = stablehlo.multiply %46, %44 : tensor<2x4x5x4xf32>
    %48 = stablehlo.convolution(%arg0, %47) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [2, 2], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x9x3xf32>, tensor<2x4x5x4xf32>) -> tensor<3x3x3x4xf32>
    %49 = stablehlo.reverse %33, dims = [0, 1] : tensor<3x3x3x4xf32>
    %50 = stablehlo.convolution(%47, %49) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x5x4xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x9x3xf32>
    return %1, %3, %5, %16, %27, %34, %35, %40, %50, %48 : tensor<2x4x5x3xf32>, tensor<2x8x5x3xf32>, tensor<2x16x8x3xf32>, tensor<2x8x9x3xf32>, tensor<2x8x9x3xf32>, tensor<2x8x9x4xf32>, tensor<2x2x7x4xf32>, tensor<2x8x9x6xf32>, tensor<2x8x9x3xf32>, tensor<3x3x3x4xf32>
  }
}
