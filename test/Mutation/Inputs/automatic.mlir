module @automatic attributes {whale.config = {num_micro_batch = 2 : i64, num_task_graph = 2 : i64}} {
  func.func public @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<4x8xf32> {whale.batch_dim = 0 : i64}) -> tensor<4x8xf32> {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.logistic %0 : tensor<4x8xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = stablehlo.add %2, %arg2 : tensor<4x8xf32>
    return %3 : tensor<4x8xf32>
  }
}
