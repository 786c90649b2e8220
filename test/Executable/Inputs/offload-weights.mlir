module @weights attributes {whale.config = {offload = {level = "weights"}, zero = {level = "v2"}}} {
  func.func public @main(%arg0: tensor<64x4xf32> {whale.fed_by = 0 : i64, whale.donated}, %arg1: tensor<64x4xf32> {whale.fed_by = 1 : i64, whale.donated}, %arg2: tensor<6x64xf32> {whale.batch_dim = 0 : i64}) -> (tensor<64x4xf32>, tensor<64x4xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<6x64xf32>, tensor<64x4xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.tanh %0 : tensor<6x4xf32>
    %2 = stablehlo.dot_general %arg2, %1, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<6x64xf32>, tensor<6x4xf32>) -> tensor<64x4xf32>
    %3 = stablehlo.add %arg1, %2 {whale.phase = #whale.phase<apply>} : tensor<64x4xf32>
    %4 = stablehlo.subtract %arg0, %3 {whale.phase = #whale.phase<apply>} : tensor<64x4xf32>
    return %4, %3 : tensor<64x4xf32>, tensor<64x4xf32>
  }
}
