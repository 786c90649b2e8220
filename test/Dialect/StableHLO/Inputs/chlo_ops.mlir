module {
  func.func @chlo(%arg0: tensor<4x8xf32>, %arg1: tensor<2x8x3xf32>, %arg2: tensor<2xi32>, %arg3: tensor<4xf32>, %arg4: tensor<4xi32>) {
    %0 = chlo.acosh %arg3 : tensor<4xf32> -> tensor<4xf32>
    %1 = chlo.asinh %arg3 : tensor<4xf32> -> tensor<4xf32>
    %2 = chlo.atanh %arg3 : tensor<4xf32> -> tensor<4xf32>
    %3 = chlo.bessel_i1e %arg3 : tensor<4xf32> -> tensor<4xf32>
    %4 = chlo.conj %arg3 : tensor<4xf32> -> tensor<4xf32>
    %5 = chlo.cosh %arg3 : tensor<4xf32> -> tensor<4xf32>
    %6 = chlo.erf %arg3 : tensor<4xf32> -> tensor<4xf32>
    %7 = chlo.erfc %arg3 : tensor<4xf32> -> tensor<4xf32>
    %8 = chlo.sinh %arg3 : tensor<4xf32> -> tensor<4xf32>
    %9 = chlo.tan %arg3 : tensor<4xf32> -> tensor<4xf32>
    %10 = chlo.is_inf %arg3 : tensor<4xf32> -> tensor<4xi1>
    %11 = chlo.is_neg_inf %arg3 : tensor<4xf32> -> tensor<4xi1>
    %12 = chlo.is_pos_inf %arg3 : tensor<4xf32> -> tensor<4xi1>
    %13 = chlo.next_after %arg3, %arg3 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %14 = chlo.polygamma %arg3, %arg3 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %15 = chlo.zeta %arg3, %arg3 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %16 = chlo.mulhi %arg4, %arg4 : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
    %17 = chlo.square %arg3 : tensor<4xf32> -> tensor<4xf32>
    %18 = chlo.constant dense<1.000000e+00> : tensor<4xf32>
    %19 = "chlo.constant_like"(%arg3) <{value = 1.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
    %20 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<2x8x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
    return
  }
}
