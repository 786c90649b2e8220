module @indices attributes {whale.default_strategy = #whale.replicate} {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<6xi32> {whale.batch_dim = 0 : i64}, %arg2: tensor<6x4xf32> {whale.batch_dim = 0 : i64}) -> (tensor<6x4xf32>, tensor<8x4xf32>, tensor<6x8xf32>) {
    %0 = stablehlo.reshape %arg1 : (tensor<6xi32>) -> tensor<6x1xi32>
    %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %2 = "stablehlo.scatter"(%arg0, %0, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %5 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %3 = stablehlo.pad %1, %cst, low = [0, 1], high = [0, 3], interior = [0, 0] : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x8xf32>
    %4 = stablehlo.reverse %3, dims = [1] : tensor<6x8xf32>
    return %1, %2, %4 : tensor<6x4xf32>, tensor<8x4xf32>, tensor<6x8xf32>
  }
}
