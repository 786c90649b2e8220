module @dense {
  func.func public @main(%arg0: tensor<8x4xf32> {whale.fed_by = 0 : i64, whale.donated}, %arg1: tensor<6x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x4xf32>, tensor<f32>) {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.tanh %0 {whale.strategy = #whale.split<devices = 2, name = "a">} : tensor<6x4xf32>
    %2 = stablehlo.dot_general %arg1, %1, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %4 = stablehlo.multiply %3, %2 : tensor<8x4xf32>
    %5 = stablehlo.subtract %arg0, %4 {whale.phase = #whale.phase<apply>} : tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%1 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    return %5, %6 : tensor<8x4xf32>, tensor<f32>
  }
}
