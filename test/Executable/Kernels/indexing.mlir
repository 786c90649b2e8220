// Gathers, scatters and slices at computed places as JAX writes them for x[i],
// take, take_along_axis and x.at[i]. Some indices are negative or beyond the
// end, where JAX clamps, drops or gives NaN. Whale's kernels and XLA compute
// the results of the same random arguments: they may differ by 2e-5 of the
// largest number.

// RUN: %python %S/../compare_kernels.py whale-kernels-test %s 

module @jit_index attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x5x4xf32>, %arg1: tensor<3x4xi32>, %arg2: tensor<6x5x4xf32>) -> (tensor<3x4x5x4xf32> {jax.result_info = "result[0]"}, tensor<6x3x4x4xf32> {jax.result_info = "result[1]"}, tensor<4x4xf32> {jax.result_info = "result[2]"}, tensor<6x1x4xf32> {jax.result_info = "result[3]"}, tensor<6x3x4x4xf32> {jax.result_info = "result[4]"}, tensor<3x4x5x4xf32> {jax.result_info = "result[5]"}, tensor<2x3x4xf32> {jax.result_info = "result[6]"}, tensor<6x5x4xf32> {jax.result_info = "result[7]"}, tensor<6x5x4xf32> {jax.result_info = "result[8]"}, tensor<6x5x4xf32> {jax.result_info = "result[9]"}, tensor<6x5x4xf32> {jax.result_info = "result[10]"}, tensor<6x5x4xf32> {jax.result_info = "result[11]"}, tensor<6x5x4xf32> {jax.result_info = "result[12]"}, tensor<6x5x4xf32> {jax.result_info = "result[13]"}, tensor<6x5x4xf32> {jax.result_info = "result[14]"}, tensor<6x5x4xf32> {jax.result_info = "result[15]"}, tensor<6x5x4xf32> {jax.result_info = "result[16]"}) {
    %c = stablehlo.constant dense<[0, 1, 2, 0, 1, 2]> : tensor<6xi64>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %1 = stablehlo.subtract %arg1, %0 : tensor<3x4xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %3 = stablehlo.compare LT, %1, %2, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_2 = stablehlo.constant dense<6> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %5 = stablehlo.add %1, %4 : tensor<3x4xi32>
    %6 = stablehlo.select %3, %5, %1 : tensor<3x4xi1>, tensor<3x4xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %8 = "stablehlo.gather"(%arg0, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5, 4>}> : (tensor<6x5x4xf32>, tensor<3x4x1xi32>) -> tensor<3x4x5x4xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %10 = stablehlo.compare LT, %1, %9, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_4 = stablehlo.constant dense<5> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %12 = stablehlo.add %1, %11 : tensor<3x4xi32>
    %13 = stablehlo.select %10, %12, %1 : tensor<3x4xi1>, tensor<3x4xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %15 = "stablehlo.gather"(%arg0, %14) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 6, 1, 4>}> : (tensor<6x5x4xf32>, tensor<3x4x1xi32>) -> tensor<6x3x4x4xf32>
    %16 = stablehlo.slice %1 [0:1, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %17 = stablehlo.reshape %16 : (tensor<1x4xi32>) -> tensor<4xi32>
    %18 = stablehlo.slice %1 [1:2, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %19 = stablehlo.reshape %18 : (tensor<1x4xi32>) -> tensor<4xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %21 = stablehlo.compare LT, %17, %20, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_6 = stablehlo.constant dense<6> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %23 = stablehlo.add %17, %22 : tensor<4xi32>
    %24 = stablehlo.select %21, %23, %17 : tensor<4xi1>, tensor<4xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %26 = stablehlo.compare LT, %19, %25, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_8 = stablehlo.constant dense<5> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %28 = stablehlo.add %19, %27 : tensor<4xi32>
    %29 = stablehlo.select %26, %28, %19 : tensor<4xi1>, tensor<4xi32>
    %30 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %32 = stablehlo.concatenate %30, %31, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    %33 = "stablehlo.gather"(%arg0, %32) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<6x5x4xf32>, tensor<4x2xi32>) -> tensor<4x4xf32>
    %34 = stablehlo.slice %1 [0:1, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [1, 2] : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2] : (tensor<1x1x4xi32>) -> tensor<6x1x4xi32>
    %37 = call @take_along_axis(%arg0, %36) : (tensor<6x5x4xf32>, tensor<6x1x4xi32>) -> tensor<6x1x4xf32>
    %c_9 = stablehlo.constant dense<3> : tensor<i32>
    %38 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %39 = stablehlo.multiply %1, %38 : tensor<3x4xi32>
    %40 = call @_take(%arg0, %39) : (tensor<6x5x4xf32>, tensor<3x4xi32>) -> tensor<6x3x4x4xf32>
    %c_10 = stablehlo.constant dense<3> : tensor<i32>
    %41 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %42 = stablehlo.multiply %1, %41 : tensor<3x4xi32>
    %43 = call @_take_0(%arg0, %42) : (tensor<6x5x4xf32>, tensor<3x4xi32>) -> tensor<3x4x5x4xf32>
    %44 = stablehlo.slice %arg1 [0:1, 0:1] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %45 = stablehlo.reshape %44 : (tensor<1x1xi32>) -> tensor<i32>
    %c_11 = stablehlo.constant dense<4> : tensor<i32>
    %46 = stablehlo.add %45, %c_11 : tensor<i32>
    %47 = stablehlo.slice %arg1 [0:1, 1:2] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %48 = stablehlo.reshape %47 : (tensor<1x1xi32>) -> tensor<i32>
    %c_12 = stablehlo.constant dense<1> : tensor<i32>
    %49 = stablehlo.subtract %48, %c_12 : tensor<i32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %50 = stablehlo.compare LT, %46, %c_13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_14 = stablehlo.constant dense<6> : tensor<i32>
    %51 = stablehlo.add %46, %c_14 : tensor<i32>
    %52 = stablehlo.select %50, %51, %46 : tensor<i1>, tensor<i32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %53 = stablehlo.compare LT, %49, %c_15, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_16 = stablehlo.constant dense<5> : tensor<i32>
    %54 = stablehlo.add %49, %c_16 : tensor<i32>
    %55 = stablehlo.select %53, %54, %49 : tensor<i1>, tensor<i32>
    %c_17 = stablehlo.constant dense<0> : tensor<i32>
    %c_18 = stablehlo.constant dense<0> : tensor<i32>
    %56 = stablehlo.compare LT, %c_17, %c_18, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %c_20 = stablehlo.constant dense<4> : tensor<i32>
    %57 = stablehlo.add %c_19, %c_20 : tensor<i32>
    %c_21 = stablehlo.constant dense<0> : tensor<i32>
    %58 = stablehlo.select %56, %57, %c_21 : tensor<i1>, tensor<i32>
    %59 = stablehlo.dynamic_slice %arg0, %52, %55, %58, sizes = [2, 3, 4] : (tensor<6x5x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32>
    %60 = stablehlo.slice %arg2 [0:2, 0:3, 0:4] : (tensor<6x5x4xf32>) -> tensor<2x3x4xf32>
    %61 = stablehlo.slice %arg1 [0:1, 0:1] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %62 = stablehlo.reshape %61 : (tensor<1x1xi32>) -> tensor<i32>
    %c_22 = stablehlo.constant dense<4> : tensor<i32>
    %63 = stablehlo.add %62, %c_22 : tensor<i32>
    %64 = stablehlo.slice %arg1 [0:1, 1:2] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %65 = stablehlo.reshape %64 : (tensor<1x1xi32>) -> tensor<i32>
    %c_23 = stablehlo.constant dense<1> : tensor<i32>
    %66 = stablehlo.subtract %65, %c_23 : tensor<i32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %67 = stablehlo.compare LT, %63, %c_24, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_25 = stablehlo.constant dense<6> : tensor<i32>
    %68 = stablehlo.add %63, %c_25 : tensor<i32>
    %69 = stablehlo.select %67, %68, %63 : tensor<i1>, tensor<i32>
    %c_26 = stablehlo.constant dense<0> : tensor<i32>
    %70 = stablehlo.compare LT, %66, %c_26, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_27 = stablehlo.constant dense<5> : tensor<i32>
    %71 = stablehlo.add %66, %c_27 : tensor<i32>
    %72 = stablehlo.select %70, %71, %66 : tensor<i1>, tensor<i32>
    %c_28 = stablehlo.constant dense<1> : tensor<i32>
    %c_29 = stablehlo.constant dense<0> : tensor<i32>
    %73 = stablehlo.compare LT, %c_28, %c_29, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_30 = stablehlo.constant dense<1> : tensor<i32>
    %c_31 = stablehlo.constant dense<4> : tensor<i32>
    %74 = stablehlo.add %c_30, %c_31 : tensor<i32>
    %c_32 = stablehlo.constant dense<1> : tensor<i32>
    %75 = stablehlo.select %73, %74, %c_32 : tensor<i1>, tensor<i32>
    %76 = stablehlo.dynamic_update_slice %arg0, %60, %69, %72, %75 : (tensor<6x5x4xf32>, tensor<2x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x5x4xf32>
    %77 = stablehlo.slice %arg2 [0:2, 0:3, 0:2] : (tensor<6x5x4xf32>) -> tensor<2x3x2xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x2xf32>
    %79 = stablehlo.multiply %77, %78 : tensor<2x3x2xf32>
    %80 = stablehlo.slice %arg1 [0:1, 1:2] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %81 = stablehlo.reshape %80 : (tensor<1x1xi32>) -> tensor<i32>
    %82 = stablehlo.slice %arg1 [0:1, 2:3] : (tensor<3x4xi32>) -> tensor<1x1xi32>
    %83 = stablehlo.reshape %82 : (tensor<1x1xi32>) -> tensor<i32>
    %c_33 = stablehlo.constant dense<0> : tensor<i32>
    %c_34 = stablehlo.constant dense<0> : tensor<i32>
    %84 = stablehlo.compare LT, %c_33, %c_34, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_35 = stablehlo.constant dense<0> : tensor<i32>
    %c_36 = stablehlo.constant dense<6> : tensor<i32>
    %85 = stablehlo.add %c_35, %c_36 : tensor<i32>
    %c_37 = stablehlo.constant dense<0> : tensor<i32>
    %86 = stablehlo.select %84, %85, %c_37 : tensor<i1>, tensor<i32>
    %c_38 = stablehlo.constant dense<0> : tensor<i32>
    %87 = stablehlo.compare LT, %81, %c_38, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_39 = stablehlo.constant dense<5> : tensor<i32>
    %88 = stablehlo.add %81, %c_39 : tensor<i32>
    %89 = stablehlo.select %87, %88, %81 : tensor<i1>, tensor<i32>
    %c_40 = stablehlo.constant dense<0> : tensor<i32>
    %90 = stablehlo.compare LT, %83, %c_40, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_41 = stablehlo.constant dense<4> : tensor<i32>
    %91 = stablehlo.add %83, %c_41 : tensor<i32>
    %92 = stablehlo.select %90, %91, %83 : tensor<i1>, tensor<i32>
    %93 = stablehlo.dynamic_update_slice %arg0, %79, %86, %89, %92 : (tensor<6x5x4xf32>, tensor<2x3x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x5x4xf32>
    %94 = stablehlo.slice %arg2 [0:1, 0:1, 0:1] : (tensor<6x5x4xf32>) -> tensor<1x1x1xf32>
    %95 = stablehlo.reshape %94 : (tensor<1x1x1xf32>) -> tensor<f32>
    %c_42 = stablehlo.constant dense<0> : tensor<i32>
    %96 = stablehlo.broadcast_in_dim %c_42, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %97 = stablehlo.compare LT, %1, %96, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_43 = stablehlo.constant dense<6> : tensor<i32>
    %98 = stablehlo.broadcast_in_dim %c_43, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %99 = stablehlo.add %1, %98 : tensor<3x4xi32>
    %100 = stablehlo.select %97, %99, %1 : tensor<3x4xi1>, tensor<3x4xi32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %102 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<3x4x5x4xf32>
    %103 = "stablehlo.scatter"(%arg0, %101, %102) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<3x4x1xi32>, tensor<3x4x5x4xf32>) -> tensor<6x5x4xf32>
    %c_44 = stablehlo.constant dense<0> : tensor<i32>
    %104 = stablehlo.broadcast_in_dim %c_44, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %105 = stablehlo.compare LT, %1, %104, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_45 = stablehlo.constant dense<5> : tensor<i32>
    %106 = stablehlo.broadcast_in_dim %c_45, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %107 = stablehlo.add %1, %106 : tensor<3x4xi32>
    %108 = stablehlo.select %105, %107, %1 : tensor<3x4xi1>, tensor<3x4xi32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %cst_46 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<6x3x4x4xf32>
    %111 = "stablehlo.scatter"(%arg0, %109, %110) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 3], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<3x4x1xi32>, tensor<6x3x4x4xf32>) -> tensor<6x5x4xf32>
    %112 = stablehlo.slice %1 [0:1, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %113 = stablehlo.reshape %112 : (tensor<1x4xi32>) -> tensor<4xi32>
    %114 = stablehlo.slice %1 [1:2, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %115 = stablehlo.reshape %114 : (tensor<1x4xi32>) -> tensor<4xi32>
    %116 = stablehlo.slice %arg2 [0:4, 0:1, 0:4] : (tensor<6x5x4xf32>) -> tensor<4x1x4xf32>
    %117 = stablehlo.reshape %116 : (tensor<4x1x4xf32>) -> tensor<4x4xf32>
    %c_47 = stablehlo.constant dense<0> : tensor<i32>
    %118 = stablehlo.broadcast_in_dim %c_47, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %119 = stablehlo.compare LT, %113, %118, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_48 = stablehlo.constant dense<6> : tensor<i32>
    %120 = stablehlo.broadcast_in_dim %c_48, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %121 = stablehlo.add %113, %120 : tensor<4xi32>
    %122 = stablehlo.select %119, %121, %113 : tensor<4xi1>, tensor<4xi32>
    %c_49 = stablehlo.constant dense<0> : tensor<i32>
    %123 = stablehlo.broadcast_in_dim %c_49, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %124 = stablehlo.compare LT, %115, %123, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_50 = stablehlo.constant dense<5> : tensor<i32>
    %125 = stablehlo.broadcast_in_dim %c_50, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %126 = stablehlo.add %115, %125 : tensor<4xi32>
    %127 = stablehlo.select %124, %126, %115 : tensor<4xi1>, tensor<4xi32>
    %128 = stablehlo.broadcast_in_dim %122, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %129 = stablehlo.broadcast_in_dim %127, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %130 = stablehlo.concatenate %128, %129, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    %131 = "stablehlo.scatter"(%arg0, %130, %117) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<4x2xi32>, tensor<4x4xf32>) -> tensor<6x5x4xf32>
    %c_51 = stablehlo.constant dense<3> : tensor<i32>
    %132 = stablehlo.broadcast_in_dim %c_51, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %133 = stablehlo.multiply %1, %132 : tensor<3x4xi32>
    %c_52 = stablehlo.constant dense<0> : tensor<i32>
    %134 = stablehlo.broadcast_in_dim %c_52, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %135 = stablehlo.compare LT, %133, %134, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_53 = stablehlo.constant dense<6> : tensor<i32>
    %136 = stablehlo.broadcast_in_dim %c_53, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %137 = stablehlo.add %133, %136 : tensor<3x4xi32>
    %138 = stablehlo.select %135, %137, %133 : tensor<3x4xi1>, tensor<3x4xi32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %cst_54 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<3x4x5x4xf32>
    %141 = "stablehlo.scatter"(%arg0, %139, %140) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<3x4x1xi32>, tensor<3x4x5x4xf32>) -> tensor<6x5x4xf32>
    %142 = stablehlo.slice %arg1 [0:1, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %143 = stablehlo.reshape %142 : (tensor<1x4xi32>) -> tensor<4xi32>
    %144 = stablehlo.slice %arg1 [1:2, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %145 = stablehlo.reshape %144 : (tensor<1x4xi32>) -> tensor<4xi32>
    %c_55 = stablehlo.constant dense<0> : tensor<i32>
    %146 = stablehlo.broadcast_in_dim %c_55, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %147 = stablehlo.compare LT, %143, %146, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_56 = stablehlo.constant dense<6> : tensor<i32>
    %148 = stablehlo.broadcast_in_dim %c_56, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %149 = stablehlo.add %143, %148 : tensor<4xi32>
    %150 = stablehlo.select %147, %149, %143 : tensor<4xi1>, tensor<4xi32>
    %c_57 = stablehlo.constant dense<0> : tensor<i32>
    %151 = stablehlo.broadcast_in_dim %c_57, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %152 = stablehlo.compare LT, %145, %151, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %c_58 = stablehlo.constant dense<5> : tensor<i32>
    %153 = stablehlo.broadcast_in_dim %c_58, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %154 = stablehlo.add %145, %153 : tensor<4xi32>
    %155 = stablehlo.select %152, %154, %145 : tensor<4xi1>, tensor<4xi32>
    %156 = stablehlo.broadcast_in_dim %150, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %157 = stablehlo.broadcast_in_dim %155, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %158 = stablehlo.concatenate %156, %157, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    %cst_59 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %159 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %160 = "stablehlo.scatter"(%arg0, %158, %159) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.multiply %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<4x2xi32>, tensor<4x4xf32>) -> tensor<6x5x4xf32>
    %c_60 = stablehlo.constant dense<1> : tensor<i32>
    %161 = stablehlo.broadcast_in_dim %c_60, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_61 = stablehlo.constant dense<2> : tensor<i32>
    %162 = stablehlo.broadcast_in_dim %c_61, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %163 = stablehlo.concatenate %161, %162, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %cst_62 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %164 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %165 = "stablehlo.scatter"(%arg0, %163, %164) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.minimum %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<2xi32>, tensor<2x4xf32>) -> tensor<6x5x4xf32>
    %c_63 = stablehlo.constant dense<0> : tensor<i64>
    %166 = stablehlo.broadcast_in_dim %c_63, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %167 = stablehlo.compare LT, %c, %166, SIGNED : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi1>
    %c_64 = stablehlo.constant dense<3> : tensor<i64>
    %168 = stablehlo.broadcast_in_dim %c_64, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %169 = stablehlo.add %c, %168 : tensor<6xi64>
    %170 = stablehlo.select %167, %169, %c : tensor<6xi1>, tensor<6xi64>
    %171 = stablehlo.convert %170 : (tensor<6xi64>) -> tensor<6xi32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %173 = "stablehlo.gather"(%arg1, %172) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xi32>, tensor<6x1xi32>) -> tensor<6x4xi32>
    %c_65 = stablehlo.constant dense<0> : tensor<i32>
    %174 = stablehlo.broadcast_in_dim %c_65, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %175 = stablehlo.compare LT, %173, %174, SIGNED : (tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<6x4xi1>
    %c_66 = stablehlo.constant dense<5> : tensor<i32>
    %176 = stablehlo.broadcast_in_dim %c_66, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %177 = stablehlo.add %173, %176 : tensor<6x4xi32>
    %178 = stablehlo.select %175, %177, %173 : tensor<6x4xi1>, tensor<6x4xi32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [0, 1] : (tensor<6x4xi32>) -> tensor<6x4x1xi32>
    %cst_67 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %180 = stablehlo.broadcast_in_dim %cst_67, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %181 = stablehlo.broadcast_in_dim %180, dims = [1, 2] : (tensor<4x4xf32>) -> tensor<6x4x4xf32>
    %182 = "stablehlo.scatter"(%arg0, %179, %181) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %193 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %193 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<6x4x1xi32>, tensor<6x4x4xf32>) -> tensor<6x5x4xf32>
    %183 = stablehlo.slice %arg1 [0:1, 0:4] : (tensor<3x4xi32>) -> tensor<1x4xi32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [0, 2] : (tensor<1x4xi32>) -> tensor<1x1x4xi32>
    %185:2 = call @take_along_axis_1(%arg0, %184) : (tensor<6x5x4xf32>, tensor<1x1x4xi32>) -> (tensor<6x1x4xf32>, tensor<1x4x1xi32>)
    %186 = stablehlo.multiply %185#0, %185#0 : tensor<6x1x4xf32>
    %cst_68 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %187 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<6x1x4xf32>
    %188 = stablehlo.multiply %187, %185#0 : tensor<6x1x4xf32>
    %cst_69 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %189 = stablehlo.reduce(%186 init: %cst_69) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<6x1x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_70 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<6x1x4xf32>
    %191 = stablehlo.multiply %190, %188 : tensor<6x1x4xf32>
    %192 = call @take_along_axis_2(%185#1, %191) : (tensor<1x4x1xi32>, tensor<6x1x4xf32>) -> tensor<6x5x4xf32>
    return %8, %15, %33, %37, %40, %43, %59, %76, %93, %103, %111, %131, %141, %160, %165, %182, %192 : tensor<3x4x5x4xf32>, tensor<6x3x4x4xf32>, tensor<4x4xf32>, tensor<6x1x4xf32>, tensor<6x3x4x4xf32>, tensor<3x4x5x4xf32>, tensor<2x3x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>, tensor<6x5x4xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<6x5x4xf32>, %arg1: tensor<6x1x4xi32>) -> tensor<6x1x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6x1x4xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<6x1x4xi32>, tensor<6x1x4xi32>) -> tensor<6x1x4xi1>
    %c_0 = stablehlo.constant dense<5> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6x1x4xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<6x1x4xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<6x1x4xi1>, tensor<6x1x4xi32>
    %5 = stablehlo.reshape %4 : (tensor<6x1x4xi32>) -> tensor<6x1x4x1xi32>
    %c_1 = stablehlo.constant dense<4> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x1x4x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<6x1x4x1xi32>, tensor<6x1x4x1xi32>) -> tensor<6x1x4x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<6x1x4x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<6x1x4x1xi32>, tensor<6x1x4x1xi32>) -> tensor<6x1x4x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<6x1x4x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<6x1x4x1xi1>, tensor<i1>) -> tensor<6x1x4xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 2], start_index_map = [1], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<6x5x4xf32>, tensor<6x1x4x1xi32>) -> tensor<6x1x4xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x1x4xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<6x1x4xi1>, tensor<6x1x4xf32>
    return %15 : tensor<6x1x4xf32>
  }
  func.func private @_take(%arg0: tensor<6x5x4xf32>, %arg1: tensor<3x4xi32>) -> tensor<6x3x4x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 6, 1, 4>}> : (tensor<6x5x4xf32>, tensor<3x4x1xi32>) -> tensor<6x3x4x4xf32>
    return %1 : tensor<6x3x4x4xf32>
  }
  func.func private @_take_0(%arg0: tensor<6x5x4xf32>, %arg1: tensor<3x4xi32>) -> tensor<3x4x5x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<3x4xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<3x4xi32>) -> tensor<3x4x1xi32>
    %c_1 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x4x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<3x4x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<3x4x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<3x4x1xi1>, tensor<i1>) -> tensor<3x4xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5, 4>}> : (tensor<6x5x4xf32>, tensor<3x4x1xi32>) -> tensor<3x4x5x4xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<3x4xi1>) -> tensor<3x4x5x4xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4x5x4xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<3x4x5x4xi1>, tensor<3x4x5x4xf32>
    return %16 : tensor<3x4x5x4xf32>
  }
  func.func private @_where(%arg0: tensor<3x4xi1>, %arg1: tensor<3x4xi32>, %arg2: tensor<3x4xi32>) -> tensor<3x4xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<3x4xi1>, tensor<3x4xi32>
    return %0 : tensor<3x4xi32>
  }
  func.func private @take_along_axis_1(%arg0: tensor<6x5x4xf32>, %arg1: tensor<1x1x4xi32>) -> (tensor<6x1x4xf32>, tensor<1x4x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x1x4xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<1x1x4xi32>, tensor<1x1x4xi32>) -> tensor<1x1x4xi1>
    %c_0 = stablehlo.constant dense<5> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1x1x4xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<1x1x4xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<1x1x4xi1>, tensor<1x1x4xi32>
    %5 = stablehlo.reshape %4 : (tensor<1x1x4xi32>) -> tensor<1x4x1xi32>
    %c_1 = stablehlo.constant dense<4> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1x4x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<1x4x1xi32>, tensor<1x4x1xi32>) -> tensor<1x4x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<1x4x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<1x4x1xi32>, tensor<1x4x1xi32>) -> tensor<1x4x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<1x4x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<1x4x1xi1>, tensor<i1>) -> tensor<1x4xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], operand_batching_dims = [2], start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 6, 1, 1>}> : (tensor<6x5x4xf32>, tensor<1x4x1xi32>) -> tensor<6x1x4xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [1, 2] : (tensor<1x4xi1>) -> tensor<6x1x4xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x1x4xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<6x1x4xi1>, tensor<6x1x4xf32>
    return %16, %5 : tensor<6x1x4xf32>, tensor<1x4x1xi32>
  }
  func.func private @take_along_axis_2(%arg0: tensor<1x4x1xi32>, %arg1: tensor<6x1x4xf32>) -> tensor<6x5x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x5x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], input_batching_dims = [2], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<6x5x4xf32>, tensor<1x4x1xi32>, tensor<6x1x4xf32>) -> tensor<6x5x4xf32>
    return %1 : tensor<6x5x4xf32>
  }
}
