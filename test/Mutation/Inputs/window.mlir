module @window {
  func.func public @main(%arg0: tensor<2x6x6x3xf32> {whale.batch_dim = 0 : i64}, %arg1: tensor<3x3x3x4xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x4xbf16>) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x3x3x4xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%0, %cst) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<2x3x3x4xf32>, tensor<f32>) -> tensor<2x3x3x4xf32>
    %2 = stablehlo.convert %1 : (tensor<2x3x3x4xf32>) -> tensor<2x3x3x4xbf16>
    return %0, %2 : tensor<2x3x3x4xf32>, tensor<2x3x3x4xbf16>
  }
}
