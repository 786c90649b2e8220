module @order {
  func.func public @main(%arg0: tensor<6x5xf32> {whale.batch_dim = 0 : i64}, %arg1: tensor<6x5xi32> {whale.batch_dim = 0 : i64}) -> (tensor<6x5xi32>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<6x2xi32>) {
    %0:2 = "stablehlo.sort"(%arg1, %arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<f32>, %arg5: tensor<f32>):
      %1 = stablehlo.compare LT, %arg2, %arg3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<6x5xi32>, tensor<6x5xf32>) -> (tensor<6x5xi32>, tensor<6x5xf32>)
    %values, %indices = chlo.top_k(%0#1, k = 2) : tensor<6x5xf32> -> (tensor<6x2xf32>, tensor<6x2xi32>)
    return %0#0, %0#1, %values, %indices : tensor<6x5xi32>, tensor<6x5xf32>, tensor<6x2xf32>, tensor<6x2xi32>
  }
}
