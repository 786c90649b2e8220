module @loop attributes {whale.default_strategy = #whale.split} {
  func.func public @main(%arg0: tensor<3x4x4xf32>, %arg1: tensor<6x4xf32> {whale.batch_dim = 0 : i64}) -> (tensor<6x4xf32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg1) : tensor<i32>, tensor<6x4xf32>
    cond {
      %c_1 = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<0> : tensor<i32>
      %1 = stablehlo.dynamic_slice %arg0, %iterArg, %c_1, %c_1, sizes = [1, 4, 4] : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
      %2 = stablehlo.reshape %1 : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
      %3 = stablehlo.dot_general %iterArg_0, %2, contracting_dims = [1] x [0] : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
      %4 = func.call @act(%3) : (tensor<6x4xf32>) -> tensor<6x4xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg, %c_2 : tensor<i32>
      stablehlo.return %5, %4 : tensor<i32>, tensor<6x4xf32>
    }
    return %0#1, %0#0 : tensor<6x4xf32>, tensor<i32>
  }
  func.func private @act(%arg0: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %0 = chlo.erf %arg0 : tensor<6x4xf32> -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
}
