module @branches {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf64>) -> (tensor<4x4xf32>, tensor<4x4xf64>, tensor<4xi1>) {
    %0 = "stablehlo.case"(%arg0) ({
      %6 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      stablehlo.return %6 : tensor<4x4xf32>
    }, {
      %6 = stablehlo.exponential %arg1 : tensor<4x4xf32>
      stablehlo.return %6 : tensor<4x4xf32>
    }) : (tensor<i32>) -> tensor<4x4xf32>
    %1 = stablehlo.slice %0 [1:3, 0:4:2] : (tensor<4x4xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.concatenate %1, %1, dim = 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %3 = stablehlo.concatenate %2, %2, dim = 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %4 = stablehlo.reduce(%arg2 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf64>, tensor<f64>) -> tensor<4xf64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf64>) -> tensor<4x4xf64>
    %6 = stablehlo.compare GE, %arg2, %5 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
    %7 = stablehlo.select %6, %arg2, %5 : tensor<4x4xi1>, tensor<4x4xf64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %8 = stablehlo.reduce(%6 init: %c) applies stablehlo.and across dimensions = [1] : (tensor<4x4xi1>, tensor<i1>) -> tensor<4xi1>
    return %3, %7, %8 : tensor<4x4xf32>, tensor<4x4xf64>, tensor<4xi1>
  }
}
