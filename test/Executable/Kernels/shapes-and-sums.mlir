// Moves of elements (also negative and interior padding, and empty tensors),
// reductions, running sums and products with various orders of dimensions.
// Whale's kernels and XLA compute the results of the same random arguments:
// integers have to be equal, and f32 within 2e-5 of the largest number of its
// result.

// RUN: %python %S/../compare_kernels.py whale-kernels-test %s 

module @jit_shapes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x7xf32>, %arg1: tensor<5x7xf32>) -> (tensor<7x5xf32> {jax.result_info = "result[0]"}, tensor<5x7xf32> {jax.result_info = "result[1]"}, tensor<5x7xf32> {jax.result_info = "result[2]"}, tensor<3x3xf32> {jax.result_info = "result[3]"}, tensor<3x2xf32> {jax.result_info = "result[4]"}, tensor<5x3x7xf32> {jax.result_info = "result[5]"}, tensor<8x20xf32> {jax.result_info = "result[6]"}, tensor<6x8xf32> {jax.result_info = "result[7]"}, tensor<8x16xf32> {jax.result_info = "result[8]"}, tensor<10x7xf32> {jax.result_info = "result[9]"}, tensor<5x21xf32> {jax.result_info = "result[10]"}, tensor<30x7xf32> {jax.result_info = "result[11]"}, tensor<5x42xf32> {jax.result_info = "result[12]"}, tensor<7x5xf32> {jax.result_info = "result[13]"}, tensor<0x3xf64> {jax.result_info = "result[14]"}, tensor<5x7xf32> {jax.result_info = "result[15]"}, tensor<5xf32> {jax.result_info = "result[16]"}, tensor<f32> {jax.result_info = "result[17]"}, tensor<7xf32> {jax.result_info = "result[18]"}, tensor<5xf32> {jax.result_info = "result[19]"}, tensor<f32> {jax.result_info = "result[20]"}, tensor<5xf32> {jax.result_info = "result[21]"}, tensor<5xi64> {jax.result_info = "result[22]"}, tensor<7xi64> {jax.result_info = "result[23]"}, tensor<5x7xf32> {jax.result_info = "result[24]"}, tensor<5x7xf32> {jax.result_info = "result[25]"}, tensor<5x7xf32> {jax.result_info = "result[26]"}, tensor<5x7xf32> {jax.result_info = "result[27]"}, tensor<5x7xf32> {jax.result_info = "result[28]"}, tensor<5x5xf32> {jax.result_info = "result[29]"}, tensor<7xf32> {jax.result_info = "result[30]"}, tensor<7x7xf32> {jax.result_info = "result[31]"}, tensor<f32> {jax.result_info = "result[32]"}, tensor<5x5xi32> {jax.result_info = "result[33]"}, tensor<3x5x5xf32> {jax.result_info = "result[34]"}, tensor<3x5x5xf32> {jax.result_info = "result[35]"}, tensor<5x7xf32> {jax.result_info = "result[36]"}, tensor<3x3xf32> {jax.result_info = "result[37]"}, tensor<5x5x3xf32> {jax.result_info = "result[38]"}, tensor<7x7xf32> {jax.result_info = "result[39]"}, tensor<3x5x3x5xf32> {jax.result_info = "result[40]"}, tensor<3x7xf32> {jax.result_info = "result[41]"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %1 = stablehlo.reverse %arg0, dims = [0] : tensor<5x7xf32>
    %2 = stablehlo.reverse %arg0, dims = [1] : tensor<5x7xf32>
    %3 = stablehlo.slice %arg0 [1:4, 2:7:2] : (tensor<5x7xf32>) -> tensor<3x3xf32>
    %4 = stablehlo.slice %arg0 [0:3, 0:2] : (tensor<5x7xf32>) -> tensor<3x2xf32>
    %5 = stablehlo.slice %arg1 [0:3, 1:3] : (tensor<5x7xf32>) -> tensor<3x2xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<3x2xf32>
    %7 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<5x7xf32>) -> tensor<5x1x7xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<5x1x7xf32>) -> tensor<5x3x7xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x3x7xf32>
    %10 = stablehlo.add %8, %9 : tensor<5x3x7xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %11 = stablehlo.pad %arg0, %cst_0, low = [1, 0], high = [2, 1], interior = [0, 2] : (tensor<5x7xf32>, tensor<f32>) -> tensor<8x20xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.pad %arg0, %cst_1, low = [-1, 3], high = [2, -2], interior = [0, 0] : (tensor<5x7xf32>, tensor<f32>) -> tensor<6x8xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x8xf32>
    %14 = stablehlo.add %12, %13 : tensor<6x8xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.pad %arg0, %cst_3, low = [-1, 0], high = [0, -3], interior = [1, 2] : (tensor<5x7xf32>, tensor<f32>) -> tensor<8x16xf32>
    %16 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<10x7xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %18 = stablehlo.multiply %arg1, %17 : tensor<5x7xf32>
    %19 = stablehlo.concatenate %arg0, %18, %arg0, dim = 1 : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x21xf32>
    %cst_5 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<5x21xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<5x21xf32>
    %22 = stablehlo.concatenate %arg0, %arg1, %arg0, %arg1, %arg0, %arg1, dim = 0 : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<30x7xf32>
    %23 = stablehlo.concatenate %arg0, %arg1, %arg0, %arg1, %arg0, %arg1, dim = 1 : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x42xf32>
    %24 = stablehlo.reshape %arg0 : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %25 = stablehlo.reshape %arg1 : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %26 = stablehlo.add %24, %25 : tensor<7x5xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<0x3xf64>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %28 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<0x3xf64>
    %29 = stablehlo.add %27, %28 : tensor<0x3xf64>
    %30 = stablehlo.slice %arg0 [0:0, 0:7] : (tensor<5x7xf32>) -> tensor<0x7xf32>
    %31 = stablehlo.concatenate %30, %arg1, dim = 0 : (tensor<0x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %32 = stablehlo.slice %arg0 [0:5, 0:0] : (tensor<5x7xf32>) -> tensor<5x0xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_8) applies stablehlo.add across dimensions = [1] : (tensor<5x0xf32>, tensor<f32>) -> tensor<5xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %34 = stablehlo.reduce(%arg0 init: %cst_9) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<f32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.reduce(%arg0 init: %cst_10) applies stablehlo.add across dimensions = [0] : (tensor<5x7xf32>, tensor<f32>) -> tensor<7xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.reduce(%arg0 init: %cst_11) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %cst_12 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%arg0 init: %cst_12) applies stablehlo.multiply across dimensions = [0, 1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %38 = call @_var(%arg0, %c) : (tensor<5x7xf32>, tensor<i64>) -> tensor<5xf32>
    %39 = call @argmax(%arg0) : (tensor<5x7xf32>) -> tensor<5xi64>
    %40 = call @argmin(%arg0) : (tensor<5x7xf32>) -> tensor<7xi64>
    %cst_13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %41 = stablehlo.reduce(%arg0 init: %cst_13) applies stablehlo.maximum across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %cst_14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %43 = stablehlo.maximum %42, %41 : tensor<5xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %46 = stablehlo.subtract %arg0, %45 : tensor<5x7xf32>
    %47 = stablehlo.exponential %46 : tensor<5x7xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.reduce(%47 init: %cst_15) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %51 = stablehlo.divide %47, %50 : tensor<5x7xf32>
    %52 = call @cumsum(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %53 = call @cumsum_1(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %54 = call @cummax(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %55 = call @cumlogsumexp(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %56 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x5xf32>
    %57 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [1], contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<7xf32>
    %58 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<7x7xf32>
    %59 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<f32>
    %60 = stablehlo.convert %arg0 : (tensor<5x7xf32>) -> tensor<5x7xi32>
    %61 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %62 = stablehlo.convert %61 : (tensor<7x5xf32>) -> tensor<7x5xi32>
    %63 = stablehlo.dot_general %60, %62, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x7xi32>, tensor<7x5xi32>) -> tensor<5x5xi32>
    %64 = stablehlo.add %arg0, %arg1 : tensor<5x7xf32>
    %65 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %66 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %67 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %68 = stablehlo.concatenate %65, %66, %67, dim = 0 : (tensor<1x5x7xf32>, tensor<1x5x7xf32>, tensor<1x5x7xf32>) -> tensor<3x5x7xf32>
    %69 = stablehlo.multiply %arg0, %arg1 : tensor<5x7xf32>
    %70 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %71 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %72 = stablehlo.broadcast_in_dim %69, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %73 = stablehlo.concatenate %70, %71, %72, dim = 0 : (tensor<1x5x7xf32>, tensor<1x5x7xf32>, tensor<1x5x7xf32>) -> tensor<3x5x7xf32>
    %74 = stablehlo.dot_general %68, %73, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x5x7xf32>) -> tensor<3x5x5xf32>
    %75 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %76 = stablehlo.dot_general %68, %75, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<7x5xf32>) -> tensor<3x5x5xf32>
    %77 = stablehlo.dot_general %68, %73, batching_dims = [1, 2] x [1, 2], contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x5x7xf32>) -> tensor<5x7xf32>
    %78 = stablehlo.dot_general %68, %73, contracting_dims = [1, 2] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x5x7xf32>) -> tensor<3x3xf32>
    %79 = stablehlo.dot_general %73, %68, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x5x7xf32>) -> tensor<3x5x5xf32>
    %80 = stablehlo.transpose %79, dims = [2, 1, 0] : (tensor<3x5x5xf32>) -> tensor<5x5x3xf32>
    %81 = stablehlo.dot_general %68, %73, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x5x7xf32>) -> tensor<7x7xf32>
    %82 = stablehlo.transpose %73, dims = [0, 2, 1] : (tensor<3x5x7xf32>) -> tensor<3x7x5xf32>
    %83 = stablehlo.dot_general %68, %82, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x7x5xf32>) -> tensor<3x5x3x5xf32>
    %84 = stablehlo.transpose %73, dims = [2, 1, 0] : (tensor<3x5x7xf32>) -> tensor<7x5x3xf32>
    %85 = stablehlo.dot_general %68, %84, batching_dims = [0, 2] x [2, 0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x5x7xf32>, tensor<7x5x3xf32>) -> tensor<3x7xf32>
    return %0, %1, %2, %3, %6, %10, %11, %14, %15, %16, %21, %22, %23, %26, %29, %31, %33, %34, %35, %36, %37, %38, %39, %40, %51, %52, %53, %54, %55, %56, %57, %58, %59, %63, %74, %76, %77, %78, %80, %81, %83, %85 : tensor<7x5xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<3x3xf32>, tensor<3x2xf32>, tensor<5x3x7xf32>, tensor<8x20xf32>, tensor<6x8xf32>, tensor<8x16xf32>, tensor<10x7xf32>, tensor<5x21xf32>, tensor<30x7xf32>, tensor<5x42xf32>, tensor<7x5xf32>, tensor<0x3xf64>, tensor<5x7xf32>, tensor<5xf32>, tensor<f32>, tensor<7xf32>, tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xi64>, tensor<7xi64>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x5xf32>, tensor<7xf32>, tensor<7x7xf32>, tensor<f32>, tensor<5x5xi32>, tensor<3x5x5xf32>, tensor<3x5x5xf32>, tensor<5x7xf32>, tensor<3x3xf32>, tensor<5x5x3xf32>, tensor<7x7xf32>, tensor<3x5x3x5xf32>, tensor<3x7xf32>
  }
  func.func private @_var(%arg0: tensor<5x7xf32>, %arg1: tensor<i64>) -> tensor<5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %cst_0 = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<5x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x7xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<5x7xf32>
    %6 = chlo.square %5 : tensor<5x7xf32> -> tensor<5x7xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %8 = stablehlo.subtract %cst_1, %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %10 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %11 = stablehlo.divide %9, %10 : tensor<5xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.compare GT, %8, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %13 = call @_where(%12, %11, %cst_4) : (tensor<i1>, tensor<5xf32>, tensor<f64>) -> tensor<5xf32>
    return %13 : tensor<5xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<5xf32>, %arg2: tensor<f64>) -> tensor<5xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<f64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<5xf32>
    return %2 : tensor<5xf32>
  }
  func.func private @argmax(%arg0: tensor<5x7xf32>) -> tensor<5xi64> {
    %0 = stablehlo.iota dim = 1 : tensor<5x7xi64>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<5x7xf32>, tensor<5x7xi64>, tensor<f32>, tensor<i64>) -> (tensor<5xf32>, tensor<5xi64>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i64>
    }
    return %1#1 : tensor<5xi64>
  }
  func.func private @argmin(%arg0: tensor<5x7xf32>) -> tensor<7xi64> {
    %0 = stablehlo.iota dim = 0 : tensor<5x7xi64>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<5x7xf32>, tensor<5x7xi64>, tensor<f32>, tensor<i64>) -> (tensor<7xf32>, tensor<7xi64>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i64>
    }
    return %1#1 : tensor<7xi64>
  }
  func.func private @cumsum(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    return %0 : tensor<5x7xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 5, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    return %1 : tensor<5x7xf32>
  }
  func.func private @cumsum_1(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %0 = call @cumsum_2(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    return %0 : tensor<5x7xf32>
  }
  func.func private @cumsum_2(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 7>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    return %1 : tensor<5x7xf32>
  }
  func.func private @cummax(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 6]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 7>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    return %1 : tensor<5x7xf32>
  }
  func.func private @cumlogsumexp(%arg0: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 5, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      %2 = stablehlo.subtract %arg1, %arg2 : tensor<f32>
      %3 = stablehlo.compare NE, %2, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
      %5 = stablehlo.abs %2 : tensor<f32>
      %6 = stablehlo.negate %5 : tensor<f32>
      %7 = stablehlo.exponential %6 : tensor<f32>
      %8 = stablehlo.log_plus_one %7 : tensor<f32>
      %9 = stablehlo.add %1, %8 : tensor<f32>
      %10 = stablehlo.select %3, %4, %9 : tensor<i1>, tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    return %0 : tensor<5x7xf32>
  }
}
