// RUN: %python %S/../compare_kernels.py whale-kernels-test %s 

module @jit_halves attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<37xf32>, %arg1: tensor<37xf32>) -> (tensor<37xbf16> {jax.result_info = "result[0]"}, tensor<37xbf16> {jax.result_info = "result[1]"}, tensor<37xbf16> {jax.result_info = "result[2]"}, tensor<37xbf16> {jax.result_info = "result[3]"}, tensor<37xbf16> {jax.result_info = "result[4]"}, tensor<37xbf16> {jax.result_info = "result[5]"}, tensor<37xbf16> {jax.result_info = "result[6]"}, tensor<37xi1> {jax.result_info = "result[7]"}, tensor<bf16> {jax.result_info = "result[8]"}, tensor<37xi32> {jax.result_info = "result[9]"}, tensor<37xf16> {jax.result_info = "result[10]"}, tensor<37xf16> {jax.result_info = "result[11]"}, tensor<37xf16> {jax.result_info = "result[12]"}, tensor<37xf16> {jax.result_info = "result[13]"}, tensor<37xf16> {jax.result_info = "result[14]"}, tensor<37xf16> {jax.result_info = "result[15]"}, tensor<37xf16> {jax.result_info = "result[16]"}, tensor<37xi1> {jax.result_info = "result[17]"}, tensor<f16> {jax.result_info = "result[18]"}, tensor<37xi32> {jax.result_info = "result[19]"}, tensor<37xf32> {jax.result_info = "result[20]"}, tensor<37xui8> {jax.result_info = "result[21]"}, tensor<37xf32> {jax.result_info = "result[22]"}, tensor<37xui8> {jax.result_info = "result[23]"}, tensor<37xf32> {jax.result_info = "result[24]"}, tensor<37xui8> {jax.result_info = "result[25]"}, tensor<37xf32> {jax.result_info = "result[26]"}, tensor<37xui8> {jax.result_info = "result[27]"}, tensor<37xf32> {jax.result_info = "result[28]"}, tensor<37xui8> {jax.result_info = "result[29]"}, tensor<37xf32> {jax.result_info = "result[30]"}, tensor<37xui8> {jax.result_info = "result[31]"}, tensor<37xf32> {jax.result_info = "result[32]"}, tensor<37xui8> {jax.result_info = "result[33]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xbf16>
    %1 = stablehlo.convert %arg1 : (tensor<37xf32>) -> tensor<37xbf16>
    %2 = stablehlo.add %0, %1 : tensor<37xbf16>
    %3 = stablehlo.multiply %0, %1 : tensor<37xbf16>
    %4 = stablehlo.subtract %0, %1 : tensor<37xbf16>
    %5 = stablehlo.divide %0, %1 : tensor<37xbf16>
    %6 = stablehlo.exponential %0 : tensor<37xbf16>
    %7 = stablehlo.tanh %0 : tensor<37xbf16>
    %8 = stablehlo.maximum %0, %1 : tensor<37xbf16>
    %9 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<37xbf16>, tensor<37xbf16>) -> tensor<37xi1>
    %10 = stablehlo.convert %0 : (tensor<37xbf16>) -> tensor<37xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<37xf32>, tensor<f32>) -> tensor<f32>
    %12 = stablehlo.convert %11 : (tensor<f32>) -> tensor<bf16>
    %13 = stablehlo.convert %0 : (tensor<37xbf16>) -> tensor<37xi32>
    %14 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf16>
    %15 = stablehlo.convert %arg1 : (tensor<37xf32>) -> tensor<37xf16>
    %16 = stablehlo.add %14, %15 : tensor<37xf16>
    %17 = stablehlo.multiply %14, %15 : tensor<37xf16>
    %18 = stablehlo.subtract %14, %15 : tensor<37xf16>
    %19 = stablehlo.divide %14, %15 : tensor<37xf16>
    %20 = stablehlo.exponential %14 : tensor<37xf16>
    %21 = stablehlo.tanh %14 : tensor<37xf16>
    %22 = stablehlo.maximum %14, %15 : tensor<37xf16>
    %23 = stablehlo.compare LT, %14, %15, FLOAT : (tensor<37xf16>, tensor<37xf16>) -> tensor<37xi1>
    %24 = stablehlo.convert %14 : (tensor<37xf16>) -> tensor<37xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<37xf32>, tensor<f32>) -> tensor<f32>
    %26 = stablehlo.convert %25 : (tensor<f32>) -> tensor<f16>
    %27 = stablehlo.convert %14 : (tensor<37xf16>) -> tensor<37xi32>
    %28 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E4M3FN>
    %29 = stablehlo.convert %28 : (tensor<37xf8E4M3FN>) -> tensor<37xf32>
    %30 = stablehlo.bitcast_convert %28 : (tensor<37xf8E4M3FN>) -> tensor<37xui8>
    %31 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E5M2>
    %32 = stablehlo.convert %31 : (tensor<37xf8E5M2>) -> tensor<37xf32>
    %33 = stablehlo.bitcast_convert %31 : (tensor<37xf8E5M2>) -> tensor<37xui8>
    %34 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E4M3FNUZ>
    %35 = stablehlo.convert %34 : (tensor<37xf8E4M3FNUZ>) -> tensor<37xf32>
    %36 = stablehlo.bitcast_convert %34 : (tensor<37xf8E4M3FNUZ>) -> tensor<37xui8>
    %37 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E5M2FNUZ>
    %38 = stablehlo.convert %37 : (tensor<37xf8E5M2FNUZ>) -> tensor<37xf32>
    %39 = stablehlo.bitcast_convert %37 : (tensor<37xf8E5M2FNUZ>) -> tensor<37xui8>
    %40 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E4M3B11FNUZ>
    %41 = stablehlo.convert %40 : (tensor<37xf8E4M3B11FNUZ>) -> tensor<37xf32>
    %42 = stablehlo.bitcast_convert %40 : (tensor<37xf8E4M3B11FNUZ>) -> tensor<37xui8>
    %43 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E3M4>
    %44 = stablehlo.convert %43 : (tensor<37xf8E3M4>) -> tensor<37xf32>
    %45 = stablehlo.bitcast_convert %43 : (tensor<37xf8E3M4>) -> tensor<37xui8>
    %46 = stablehlo.convert %arg0 : (tensor<37xf32>) -> tensor<37xf8E4M3>
    %47 = stablehlo.convert %46 : (tensor<37xf8E4M3>) -> tensor<37xf32>
    %48 = stablehlo.bitcast_convert %46 : (tensor<37xf8E4M3>) -> tensor<37xui8>
    return %2, %3, %4, %5, %6, %7, %8, %9, %12, %13, %16, %17, %18, %19, %20, %21, %22, %23, %26, %27, %29, %30, %32, %33, %35, %36, %38, %39, %41, %42, %44, %45, %47, %48 : tensor<37xbf16>, tensor<37xbf16>, tensor<37xbf16>, tensor<37xbf16>, tensor<37xbf16>, tensor<37xbf16>, tensor<37xbf16>, tensor<37xi1>, tensor<bf16>, tensor<37xi32>, tensor<37xf16>, tensor<37xf16>, tensor<37xf16>, tensor<37xf16>, tensor<37xf16>, tensor<37xf16>, tensor<37xf16>, tensor<37xi1>, tensor<f16>, tensor<37xi32>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>, tensor<37xf32>, tensor<37xui8>
  }
}
