// RUN: %python %S/../compare_kernels.py whale-kernels-test %s --extreme

module @jit_floats attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<37xf32>, %arg1: tensor<37xf32>) -> (tensor<37xf32> {jax.result_info = "result[0]"}, tensor<37xf32> {jax.result_info = "result[1]"}, tensor<37xf32> {jax.result_info = "result[2]"}, tensor<37xf32> {jax.result_info = "result[3]"}, tensor<37xf32> {jax.result_info = "result[4]"}, tensor<37xf32> {jax.result_info = "result[5]"}, tensor<37xf32> {jax.result_info = "result[6]"}, tensor<37xf32> {jax.result_info = "result[7]"}, tensor<37xf32> {jax.result_info = "result[8]"}, tensor<37xf32> {jax.result_info = "result[9]"}, tensor<37xf32> {jax.result_info = "result[10]"}, tensor<37xf32> {jax.result_info = "result[11]"}, tensor<37xf32> {jax.result_info = "result[12]"}, tensor<37xf32> {jax.result_info = "result[13]"}, tensor<37xf32> {jax.result_info = "result[14]"}, tensor<37xf32> {jax.result_info = "result[15]"}, tensor<37xf32> {jax.result_info = "result[16]"}, tensor<37xf32> {jax.result_info = "result[17]"}, tensor<37xi1> {jax.result_info = "result[18]"}, tensor<37xf32> {jax.result_info = "result[19]"}, tensor<37xf32> {jax.result_info = "result[20]"}, tensor<37xf32> {jax.result_info = "result[21]"}, tensor<37xf32> {jax.result_info = "result[22]"}, tensor<37xf32> {jax.result_info = "result[23]"}, tensor<37xf32> {jax.result_info = "result[24]"}, tensor<37xf32> {jax.result_info = "result[25]"}, tensor<37xf32> {jax.result_info = "result[26]"}, tensor<37xf32> {jax.result_info = "result[27]"}, tensor<37xf32> {jax.result_info = "result[28]"}, tensor<37xi1> {jax.result_info = "result[29]"}, tensor<37xi1> {jax.result_info = "result[30]"}, tensor<37xi1> {jax.result_info = "result[31]"}, tensor<37xi1> {jax.result_info = "result[32]"}, tensor<37xi1> {jax.result_info = "result[33]"}, tensor<37xi1> {jax.result_info = "result[34]"}, tensor<37xf32> {jax.result_info = "result[35]"}, tensor<37xf32> {jax.result_info = "result[36]"}, tensor<37xf32> {jax.result_info = "result[37]"}, tensor<37xf32> {jax.result_info = "result[38]"}, tensor<37xf64> {jax.result_info = "result[39]"}, tensor<37xbf16> {jax.result_info = "result[40]"}, tensor<37xf16> {jax.result_info = "result[41]"}, tensor<37xi32> {jax.result_info = "result[42]"}, tensor<37xi8> {jax.result_info = "result[43]"}, tensor<37xui8> {jax.result_info = "result[44]"}, tensor<37xui32> {jax.result_info = "result[45]"}, tensor<37xi64> {jax.result_info = "result[46]"}, tensor<37xi1> {jax.result_info = "result[47]"}, tensor<37xi32> {jax.result_info = "result[48]"}, tensor<37x4xui8> {jax.result_info = "result[49]"}, tensor<18xf64> {jax.result_info = "result[50]"}, tensor<37xf32> {jax.result_info = "result[51]"}, tensor<i64> {jax.result_info = "result[52]"}) {
    %0 = stablehlo.abs %arg0 : tensor<37xf32>
    %1 = stablehlo.negate %arg0 : tensor<37xf32>
    %2 = stablehlo.sign %arg0 : tensor<37xf32>
    %3 = stablehlo.floor %arg0 : tensor<37xf32>
    %4 = stablehlo.ceil %arg0 : tensor<37xf32>
    %5 = stablehlo.round_nearest_afz %arg0 : tensor<37xf32>
    %6 = stablehlo.round_nearest_even %arg0 : tensor<37xf32>
    %7 = stablehlo.exponential %arg0 : tensor<37xf32>
    %8 = stablehlo.exponential_minus_one %arg0 : tensor<37xf32>
    %9 = stablehlo.log %arg0 : tensor<37xf32>
    %10 = stablehlo.log_plus_one %arg0 : tensor<37xf32>
    %11 = stablehlo.tanh %arg0 : tensor<37xf32>
    %12 = stablehlo.sine %arg0 : tensor<37xf32>
    %13 = stablehlo.cosine %arg0 : tensor<37xf32>
    %14 = stablehlo.sqrt %arg0 : tensor<37xf32>
    %15 = stablehlo.rsqrt %arg0 : tensor<37xf32>
    %16 = stablehlo.cbrt %arg0 : tensor<37xf32>
    %17 = stablehlo.negate %arg0 : tensor<37xf32>
    %18 = stablehlo.exponential %17 : tensor<37xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<37xf32>
    %20 = stablehlo.add %19, %18 : tensor<37xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<37xf32>
    %22 = stablehlo.divide %21, %20 : tensor<37xf32>
    %23 = stablehlo.is_finite %arg0 : (tensor<37xf32>) -> tensor<37xi1>
    %24 = stablehlo.tan %arg0 : tensor<37xf32>
    %25 = stablehlo.add %arg0, %arg1 : tensor<37xf32>
    %26 = stablehlo.subtract %arg0, %arg1 : tensor<37xf32>
    %27 = stablehlo.multiply %arg0, %arg1 : tensor<37xf32>
    %28 = stablehlo.divide %arg0, %arg1 : tensor<37xf32>
    %29 = stablehlo.remainder %arg0, %arg1 : tensor<37xf32>
    %30 = stablehlo.power %arg0, %arg1 : tensor<37xf32>
    %31 = stablehlo.maximum %arg0, %arg1 : tensor<37xf32>
    %32 = stablehlo.minimum %arg0, %arg1 : tensor<37xf32>
    %33 = stablehlo.atan2 %arg0, %arg1 : tensor<37xf32>
    %34 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %35 = stablehlo.compare NE, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %36 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %37 = stablehlo.compare LE, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %38 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %39 = stablehlo.compare GE, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %cst_1 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<37xf32>
    %41 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<37xf32>
    %42 = stablehlo.clamp %40, %arg0, %41 : tensor<37xf32>
    %43 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %44 = call @_where(%43, %arg0, %arg1) : (tensor<37xi1>, tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
    %45 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<37xf32>
    %46 = stablehlo.reduce_precision %arg0, format = e8m3 : tensor<37xf32>
    %47 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf64>
    %48 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xbf16>
    %49 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf16>
    %50 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xi32>
    %51 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xi8>
    %52 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xui8>
    %53 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xui32>
    %54 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xi64>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<37xf32>
    %56 = stablehlo.compare NE, %arg0, %55, FLOAT : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xi1>
    %57 = stablehlo.convert %56 : tensor<37xi1>
    %58 = stablehlo.bitcast_convert %arg0 : (tensor<37xf32>) -> tensor<37xi32>
    %59 = stablehlo.bitcast_convert %arg0 : (tensor<37xf32>) -> tensor<37x4xui8>
    %60 = stablehlo.slice %arg0 [0:36] : (tensor<37xf32>) -> tensor<36xf32>
    %61 = stablehlo.reshape %60 : (tensor<36xf32>) -> tensor<18x2xf32>
    %62 = stablehlo.bitcast_convert %61 : (tensor<18x2xf32>) -> tensor<18xf64>
    %63 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %65 = stablehlo.compare EQ, %arg2, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %66 = stablehlo.select %65, %cst_5, %arg2 : tensor<i1>, tensor<f32>
      %67 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_6 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %68 = stablehlo.select %67, %cst_6, %66 : tensor<i1>, tensor<f32>
      %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %69 = stablehlo.compare EQ, %arg3, %cst_7, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %70 = stablehlo.select %69, %cst_8, %arg3 : tensor<i1>, tensor<f32>
      %71 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_9 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %72 = stablehlo.select %71, %cst_9, %70 : tensor<i1>, tensor<f32>
      %73 = stablehlo.compare LT, %68, %72, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %73 : tensor<i1>
    }) : (tensor<37xf32>) -> tensor<37xf32>
    %64 = call @argmax(%arg0) : (tensor<37xf32>) -> tensor<i64>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %42, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %57, %58, %59, %62, %63, %64 : tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xi1>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xi1>, tensor<37xi1>, tensor<37xi1>, tensor<37xi1>, tensor<37xi1>, tensor<37xi1>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf64>, tensor<37xbf16>, tensor<37xf16>, tensor<37xi32>, tensor<37xi8>, tensor<37xui8>, tensor<37xui32>, tensor<37xi64>, tensor<37xi1>, tensor<37xi32>, tensor<37x4xui8>, tensor<18xf64>, tensor<37xf32>, tensor<i64>
  }
  func.func private @_where(%arg0: tensor<37xi1>, %arg1: tensor<37xf32>, %arg2: tensor<37xf32>) -> tensor<37xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<37xi1>, tensor<37xf32>
    return %0 : tensor<37xf32>
  }
  func.func private @argmax(%arg0: tensor<37xf32>) -> tensor<i64> {
    %0 = stablehlo.iota dim = 0 : tensor<37xi64>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<37xf32>, tensor<37xi64>, tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<i64>)
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
    return %1#1 : tensor<i64>
  }
}
