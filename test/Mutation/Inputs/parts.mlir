module @parts attributes {whale.config = {num_micro_batch = 2 : i64}, whale.default_strategy = #whale.replicate<devices = 1>} {
  func.func public @main(%arg0: tensor<4x4xf32> {whale.fed_by = 0 : i64}, %arg1: tensor<4x4xf32> {whale.fed_by = 1 : i64}, %arg2: tensor<4x4xf32> {whale.batch_dim = 0 : i64}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] {whale.strategy = #whale.replicate<devices = 1, name = "one">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.tanh %0 {whale.strategy = #whale.replicate<devices = 1, name = "one">} : tensor<4x4xf32>
    %9 = stablehlo.compare GT, %0, %arg2 {whale.strategy = #whale.replicate<devices = 1, name = "one">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] {whale.strategy = #whale.replicate<devices = 1, name = "two">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %10 = stablehlo.select %9, %2, %1 {whale.strategy = #whale.replicate<devices = 1, name = "two">} : tensor<4x4xi1>, tensor<4x4xf32>
    %3 = stablehlo.dot_general %1, %10, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "two">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.dot_general %10, %arg1, contracting_dims = [1] x [1] {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "two">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.multiply %4, %1 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "one">} : tensor<4x4xf32>
    %6 = stablehlo.dot_general %arg2, %5, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "one">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %7 = stablehlo.subtract %arg0, %6 : tensor<4x4xf32>
    %8 = stablehlo.subtract %arg1, %3 : tensor<4x4xf32>
    return %7, %8 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
