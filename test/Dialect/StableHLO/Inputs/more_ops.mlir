module {
  func.func @other(%arg0: tensor<2xf32>, %arg1: tensor<f32>, %arg2: tensor<3x3x4xf32>, %arg3: tensor<1x8x3xf32>, %arg4: tensor<1x2xi32>, %arg5: tensor<2xui64>, %arg6: !stablehlo.token) {
    %0 = "stablehlo.async_start"(%arg0) ({
    ^bb0(%arg7: tensor<2xf32>):
      %6 = "stablehlo.all_gather"(%arg7) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<4xf32>
      stablehlo.return %6 : tensor<4xf32>
    }) : (tensor<2xf32>) -> !stablehlo.future<tensor<4xf32>>
    %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
    %c = stablehlo.constant dense<[4, 2]> : tensor<2xi64>
    %2 = stablehlo.rng %arg1, %arg1, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x2xf32>
    %3 = "stablehlo.dynamic_conv"(%arg3, %arg2, %arg4) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x3xf32>, tensor<3x3x4xf32>, tensor<1x2xi32>) -> tensor<1x?x4xf32>
    %output_state, %output = stablehlo.rng_bit_generator %arg5, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %4 = stablehlo.logistic %arg0 : tensor<2xf32>
    %5 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<2xf32>
    return
  }
}
