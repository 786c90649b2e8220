// Arithmetic, shifts, bit counts, comparisons, conversions, sorts and sums of
// i32, ui32, i8 and i1. Among the random arguments are the smallest and largest
// numbers, divisors of zero and shifts beyond the width. All integers have to
// be equal to those that XLA computes of the same arguments.

// RUN: %python %S/../compare_kernels.py whale-kernels-test %s --extreme

module @jit_ints attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<41xi32>, %arg1: tensor<41xi32>, %arg2: tensor<41xui32>, %arg3: tensor<41xui32>, %arg4: tensor<41xi8>, %arg5: tensor<41xi8>, %arg6: tensor<41xi1>, %arg7: tensor<41xi1>) -> (tensor<41xi32> {jax.result_info = "result[0]"}, tensor<41xi32> {jax.result_info = "result[1]"}, tensor<41xi32> {jax.result_info = "result[2]"}, tensor<41xi32> {jax.result_info = "result[3]"}, tensor<41xi32> {jax.result_info = "result[4]"}, tensor<41xi32> {jax.result_info = "result[5]"}, tensor<41xi32> {jax.result_info = "result[6]"}, tensor<41xi32> {jax.result_info = "result[7]"}, tensor<41xi32> {jax.result_info = "result[8]"}, tensor<41xi32> {jax.result_info = "result[9]"}, tensor<41xi32> {jax.result_info = "result[10]"}, tensor<41xi32> {jax.result_info = "result[11]"}, tensor<41xi32> {jax.result_info = "result[12]"}, tensor<41xi32> {jax.result_info = "result[13]"}, tensor<41xi32> {jax.result_info = "result[14]"}, tensor<41xi32> {jax.result_info = "result[15]"}, tensor<41xi1> {jax.result_info = "result[16]"}, tensor<41xi1> {jax.result_info = "result[17]"}, tensor<41xi1> {jax.result_info = "result[18]"}, tensor<41xf32> {jax.result_info = "result[19]"}, tensor<41xi64> {jax.result_info = "result[20]"}, tensor<41xui8> {jax.result_info = "result[21]"}, tensor<41xi1> {jax.result_info = "result[22]"}, tensor<41xi32> {jax.result_info = "result[23]"}, tensor<i64> {jax.result_info = "result[24]"}, tensor<i32> {jax.result_info = "result[25]"}, tensor<41xi32> {jax.result_info = "result[26]"}, tensor<i64> {jax.result_info = "result[27]"}, tensor<41xui32> {jax.result_info = "result[28]"}, tensor<41xui32> {jax.result_info = "result[29]"}, tensor<41xui32> {jax.result_info = "result[30]"}, tensor<41xui32> {jax.result_info = "result[31]"}, tensor<41xui32> {jax.result_info = "result[32]"}, tensor<41xui32> {jax.result_info = "result[33]"}, tensor<41xui32> {jax.result_info = "result[34]"}, tensor<41xui32> {jax.result_info = "result[35]"}, tensor<41xui32> {jax.result_info = "result[36]"}, tensor<41xui32> {jax.result_info = "result[37]"}, tensor<41xui32> {jax.result_info = "result[38]"}, tensor<41xui32> {jax.result_info = "result[39]"}, tensor<41xui32> {jax.result_info = "result[40]"}, tensor<41xui32> {jax.result_info = "result[41]"}, tensor<41xui32> {jax.result_info = "result[42]"}, tensor<41xui32> {jax.result_info = "result[43]"}, tensor<41xi1> {jax.result_info = "result[44]"}, tensor<41xi1> {jax.result_info = "result[45]"}, tensor<41xi1> {jax.result_info = "result[46]"}, tensor<41xf32> {jax.result_info = "result[47]"}, tensor<41xi64> {jax.result_info = "result[48]"}, tensor<41xui8> {jax.result_info = "result[49]"}, tensor<41xi1> {jax.result_info = "result[50]"}, tensor<41xui32> {jax.result_info = "result[51]"}, tensor<ui64> {jax.result_info = "result[52]"}, tensor<ui32> {jax.result_info = "result[53]"}, tensor<41xui32> {jax.result_info = "result[54]"}, tensor<i64> {jax.result_info = "result[55]"}, tensor<41xi8> {jax.result_info = "result[56]"}, tensor<41xi8> {jax.result_info = "result[57]"}, tensor<41xi8> {jax.result_info = "result[58]"}, tensor<41xi8> {jax.result_info = "result[59]"}, tensor<41xi8> {jax.result_info = "result[60]"}, tensor<41xi8> {jax.result_info = "result[61]"}, tensor<41xi8> {jax.result_info = "result[62]"}, tensor<41xi8> {jax.result_info = "result[63]"}, tensor<41xi8> {jax.result_info = "result[64]"}, tensor<41xi8> {jax.result_info = "result[65]"}, tensor<41xi8> {jax.result_info = "result[66]"}, tensor<41xi8> {jax.result_info = "result[67]"}, tensor<41xi8> {jax.result_info = "result[68]"}, tensor<41xi8> {jax.result_info = "result[69]"}, tensor<41xi8> {jax.result_info = "result[70]"}, tensor<41xi8> {jax.result_info = "result[71]"}, tensor<41xi1> {jax.result_info = "result[72]"}, tensor<41xi1> {jax.result_info = "result[73]"}, tensor<41xi1> {jax.result_info = "result[74]"}, tensor<41xf32> {jax.result_info = "result[75]"}, tensor<41xi64> {jax.result_info = "result[76]"}, tensor<41xui8> {jax.result_info = "result[77]"}, tensor<41xi1> {jax.result_info = "result[78]"}, tensor<41xi8> {jax.result_info = "result[79]"}, tensor<i64> {jax.result_info = "result[80]"}, tensor<i8> {jax.result_info = "result[81]"}, tensor<41xi8> {jax.result_info = "result[82]"}, tensor<i64> {jax.result_info = "result[83]"}, tensor<41xi32> {jax.result_info = "result[84]"}, tensor<41xi32> {jax.result_info = "result[85]"}, tensor<41xi32> {jax.result_info = "result[86]"}, tensor<41xi32> {jax.result_info = "result[87]"}, tensor<41xi1> {jax.result_info = "result[88]"}, tensor<41xi1> {jax.result_info = "result[89]"}, tensor<41xi1> {jax.result_info = "result[90]"}, tensor<41xi1> {jax.result_info = "result[91]"}, tensor<i1> {jax.result_info = "result[92]"}, tensor<i1> {jax.result_info = "result[93]"}, tensor<41xi32> {jax.result_info = "result[94]"}, tensor<i64> {jax.result_info = "result[95]"}, tensor<41xi1> {jax.result_info = "result[96]"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<41xi32>
    %1 = stablehlo.subtract %arg0, %arg1 : tensor<41xi32>
    %2 = stablehlo.multiply %arg0, %arg1 : tensor<41xi32>
    %3 = stablehlo.divide %arg0, %arg1 : tensor<41xi32>
    %4 = stablehlo.remainder %arg0, %arg1 : tensor<41xi32>
    %5 = stablehlo.maximum %arg0, %arg1 : tensor<41xi32>
    %6 = stablehlo.minimum %arg0, %arg1 : tensor<41xi32>
    %7 = stablehlo.shift_left %arg0, %arg1 : tensor<41xi32>
    %8 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<41xi32>
    %9 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<41xi32>
    %10 = stablehlo.and %arg0, %arg1 : tensor<41xi32>
    %11 = stablehlo.or %arg0, %arg1 : tensor<41xi32>
    %12 = stablehlo.xor %arg0, %arg1 : tensor<41xi32>
    %13 = stablehlo.not %arg0 : tensor<41xi32>
    %14 = stablehlo.popcnt %arg0 : tensor<41xi32>
    %15 = stablehlo.count_leading_zeros %arg0 : tensor<41xi32>
    %16 = stablehlo.compare LT, %arg0, %arg1, SIGNED : (tensor<41xi32>, tensor<41xi32>) -> tensor<41xi1>
    %17 = stablehlo.compare GE, %arg0, %arg1, SIGNED : (tensor<41xi32>, tensor<41xi32>) -> tensor<41xi1>
    %18 = stablehlo.compare EQ, %arg0, %arg1, SIGNED : (tensor<41xi32>, tensor<41xi32>) -> tensor<41xi1>
    %19 = stablehlo.convert %arg0 : (tensor<41xi32>) -> tensor<41xf32>
    %20 = stablehlo.convert %arg0 : (tensor<41xi32>) -> tensor<41xi64>
    %21 = stablehlo.convert %arg0 : (tensor<41xi32>) -> tensor<41xui8>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<41xi32>
    %23 = stablehlo.compare NE, %arg0, %22, SIGNED : (tensor<41xi32>, tensor<41xi32>) -> tensor<41xi1>
    %24 = stablehlo.convert %23 : tensor<41xi1>
    %25 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg8: tensor<i32>, %arg9: tensor<i32>):
      %109 = stablehlo.compare LT, %arg8, %arg9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %109 : tensor<i1>
    }) : (tensor<41xi32>) -> tensor<41xi32>
    %26 = stablehlo.convert %arg0 : (tensor<41xi32>) -> tensor<41xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %27 = stablehlo.reduce(%26 init: %c_0) applies stablehlo.add across dimensions = [0] : (tensor<41xi64>, tensor<i64>) -> tensor<i64>
    %c_1 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %28 = stablehlo.reduce(%arg0 init: %c_1) applies stablehlo.maximum across dimensions = [0] : (tensor<41xi32>, tensor<i32>) -> tensor<i32>
    %29 = call @cumsum(%arg0) : (tensor<41xi32>) -> tensor<41xi32>
    %30 = call @argmin(%arg0) : (tensor<41xi32>) -> tensor<i64>
    %31 = stablehlo.add %arg2, %arg3 : tensor<41xui32>
    %32 = stablehlo.subtract %arg2, %arg3 : tensor<41xui32>
    %33 = stablehlo.multiply %arg2, %arg3 : tensor<41xui32>
    %34 = stablehlo.divide %arg2, %arg3 : tensor<41xui32>
    %35 = stablehlo.remainder %arg2, %arg3 : tensor<41xui32>
    %36 = stablehlo.maximum %arg2, %arg3 : tensor<41xui32>
    %37 = stablehlo.minimum %arg2, %arg3 : tensor<41xui32>
    %38 = stablehlo.shift_left %arg2, %arg3 : tensor<41xui32>
    %39 = stablehlo.shift_right_logical %arg2, %arg3 : tensor<41xui32>
    %40 = stablehlo.shift_right_arithmetic %arg2, %arg3 : tensor<41xui32>
    %41 = stablehlo.and %arg2, %arg3 : tensor<41xui32>
    %42 = stablehlo.or %arg2, %arg3 : tensor<41xui32>
    %43 = stablehlo.xor %arg2, %arg3 : tensor<41xui32>
    %44 = stablehlo.not %arg2 : tensor<41xui32>
    %45 = stablehlo.popcnt %arg2 : tensor<41xui32>
    %46 = stablehlo.count_leading_zeros %arg2 : tensor<41xui32>
    %47 = stablehlo.compare LT, %arg2, %arg3, UNSIGNED : (tensor<41xui32>, tensor<41xui32>) -> tensor<41xi1>
    %48 = stablehlo.compare GE, %arg2, %arg3, UNSIGNED : (tensor<41xui32>, tensor<41xui32>) -> tensor<41xi1>
    %49 = stablehlo.compare EQ, %arg2, %arg3, UNSIGNED : (tensor<41xui32>, tensor<41xui32>) -> tensor<41xi1>
    %50 = stablehlo.convert %arg2 : (tensor<41xui32>) -> tensor<41xf32>
    %51 = stablehlo.convert %arg2 : (tensor<41xui32>) -> tensor<41xi64>
    %52 = stablehlo.convert %arg2 : (tensor<41xui32>) -> tensor<41xui8>
    %c_2 = stablehlo.constant dense<0> : tensor<ui32>
    %53 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<41xui32>
    %54 = stablehlo.compare NE, %arg2, %53, UNSIGNED : (tensor<41xui32>, tensor<41xui32>) -> tensor<41xi1>
    %55 = stablehlo.convert %54 : tensor<41xi1>
    %56 = "stablehlo.sort"(%arg2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg8: tensor<ui32>, %arg9: tensor<ui32>):
      %109 = stablehlo.compare LT, %arg8, %arg9, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %109 : tensor<i1>
    }) : (tensor<41xui32>) -> tensor<41xui32>
    %57 = stablehlo.convert %arg2 : (tensor<41xui32>) -> tensor<41xui64>
    %c_3 = stablehlo.constant dense<0> : tensor<ui64>
    %58 = stablehlo.reduce(%57 init: %c_3) applies stablehlo.add across dimensions = [0] : (tensor<41xui64>, tensor<ui64>) -> tensor<ui64>
    %c_4 = stablehlo.constant dense<0> : tensor<ui32>
    %59 = stablehlo.reduce(%arg2 init: %c_4) applies stablehlo.maximum across dimensions = [0] : (tensor<41xui32>, tensor<ui32>) -> tensor<ui32>
    %60 = call @cumsum_1(%arg2) : (tensor<41xui32>) -> tensor<41xui32>
    %61 = call @argmin_3(%arg2) : (tensor<41xui32>) -> tensor<i64>
    %62 = stablehlo.add %arg4, %arg5 : tensor<41xi8>
    %63 = stablehlo.subtract %arg4, %arg5 : tensor<41xi8>
    %64 = stablehlo.multiply %arg4, %arg5 : tensor<41xi8>
    %65 = stablehlo.divide %arg4, %arg5 : tensor<41xi8>
    %66 = stablehlo.remainder %arg4, %arg5 : tensor<41xi8>
    %67 = stablehlo.maximum %arg4, %arg5 : tensor<41xi8>
    %68 = stablehlo.minimum %arg4, %arg5 : tensor<41xi8>
    %69 = stablehlo.shift_left %arg4, %arg5 : tensor<41xi8>
    %70 = stablehlo.shift_right_logical %arg4, %arg5 : tensor<41xi8>
    %71 = stablehlo.shift_right_arithmetic %arg4, %arg5 : tensor<41xi8>
    %72 = stablehlo.and %arg4, %arg5 : tensor<41xi8>
    %73 = stablehlo.or %arg4, %arg5 : tensor<41xi8>
    %74 = stablehlo.xor %arg4, %arg5 : tensor<41xi8>
    %75 = stablehlo.not %arg4 : tensor<41xi8>
    %76 = stablehlo.popcnt %arg4 : tensor<41xi8>
    %77 = stablehlo.count_leading_zeros %arg4 : tensor<41xi8>
    %78 = stablehlo.compare LT, %arg4, %arg5, SIGNED : (tensor<41xi8>, tensor<41xi8>) -> tensor<41xi1>
    %79 = stablehlo.compare GE, %arg4, %arg5, SIGNED : (tensor<41xi8>, tensor<41xi8>) -> tensor<41xi1>
    %80 = stablehlo.compare EQ, %arg4, %arg5, SIGNED : (tensor<41xi8>, tensor<41xi8>) -> tensor<41xi1>
    %81 = stablehlo.convert %arg4 : (tensor<41xi8>) -> tensor<41xf32>
    %82 = stablehlo.convert %arg4 : (tensor<41xi8>) -> tensor<41xi64>
    %83 = stablehlo.convert %arg4 : (tensor<41xi8>) -> tensor<41xui8>
    %c_5 = stablehlo.constant dense<0> : tensor<i8>
    %84 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i8>) -> tensor<41xi8>
    %85 = stablehlo.compare NE, %arg4, %84, SIGNED : (tensor<41xi8>, tensor<41xi8>) -> tensor<41xi1>
    %86 = stablehlo.convert %85 : tensor<41xi1>
    %87 = "stablehlo.sort"(%arg4) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg8: tensor<i8>, %arg9: tensor<i8>):
      %109 = stablehlo.compare LT, %arg8, %arg9, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %109 : tensor<i1>
    }) : (tensor<41xi8>) -> tensor<41xi8>
    %88 = stablehlo.convert %arg4 : (tensor<41xi8>) -> tensor<41xi64>
    %c_6 = stablehlo.constant dense<0> : tensor<i64>
    %89 = stablehlo.reduce(%88 init: %c_6) applies stablehlo.add across dimensions = [0] : (tensor<41xi64>, tensor<i64>) -> tensor<i64>
    %c_7 = stablehlo.constant dense<-128> : tensor<i8>
    %90 = stablehlo.reduce(%arg4 init: %c_7) applies stablehlo.maximum across dimensions = [0] : (tensor<41xi8>, tensor<i8>) -> tensor<i8>
    %91 = call @cumsum_4(%arg4) : (tensor<41xi8>) -> tensor<41xi8>
    %92 = call @argmin_6(%arg4) : (tensor<41xi8>) -> tensor<i64>
    %93 = stablehlo.sign %arg0 : tensor<41xi32>
    %94 = stablehlo.abs %arg0 : tensor<41xi32>
    %95 = stablehlo.negate %arg0 : tensor<41xi32>
    %96 = stablehlo.multiply %arg0, %arg0 : tensor<41xi32>
    %97 = stablehlo.multiply %96, %arg0 : tensor<41xi32>
    %98 = stablehlo.and %arg6, %arg7 : tensor<41xi1>
    %99 = stablehlo.or %arg6, %arg7 : tensor<41xi1>
    %100 = stablehlo.xor %arg6, %arg7 : tensor<41xi1>
    %101 = stablehlo.not %arg6 : tensor<41xi1>
    %c_8 = stablehlo.constant dense<false> : tensor<i1>
    %102 = stablehlo.reduce(%arg6 init: %c_8) applies stablehlo.or across dimensions = [0] : (tensor<41xi1>, tensor<i1>) -> tensor<i1>
    %c_9 = stablehlo.constant dense<true> : tensor<i1>
    %103 = stablehlo.reduce(%arg6 init: %c_9) applies stablehlo.and across dimensions = [0] : (tensor<41xi1>, tensor<i1>) -> tensor<i1>
    %104 = stablehlo.convert %arg6 : (tensor<41xi1>) -> tensor<41xi32>
    %105 = stablehlo.convert %arg6 : (tensor<41xi1>) -> tensor<41xi32>
    %106 = stablehlo.convert %105 : (tensor<41xi32>) -> tensor<41xi64>
    %c_10 = stablehlo.constant dense<0> : tensor<i64>
    %107 = stablehlo.reduce(%106 init: %c_10) applies stablehlo.add across dimensions = [0] : (tensor<41xi64>, tensor<i64>) -> tensor<i64>
    %108 = stablehlo.compare GE, %arg6, %arg7, UNSIGNED : (tensor<41xi1>, tensor<41xi1>) -> tensor<41xi1>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %24, %25, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %55, %56, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %86, %87, %89, %90, %91, %92, %93, %94, %95, %97, %98, %99, %100, %101, %102, %103, %104, %107, %108 : tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi1>, tensor<41xi1>, tensor<41xi1>, tensor<41xf32>, tensor<41xi64>, tensor<41xui8>, tensor<41xi1>, tensor<41xi32>, tensor<i64>, tensor<i32>, tensor<41xi32>, tensor<i64>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xui32>, tensor<41xi1>, tensor<41xi1>, tensor<41xi1>, tensor<41xf32>, tensor<41xi64>, tensor<41xui8>, tensor<41xi1>, tensor<41xui32>, tensor<ui64>, tensor<ui32>, tensor<41xui32>, tensor<i64>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi8>, tensor<41xi1>, tensor<41xi1>, tensor<41xi1>, tensor<41xf32>, tensor<41xi64>, tensor<41xui8>, tensor<41xi1>, tensor<41xi8>, tensor<i64>, tensor<i8>, tensor<41xi8>, tensor<i64>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi32>, tensor<41xi1>, tensor<41xi1>, tensor<41xi1>, tensor<41xi1>, tensor<i1>, tensor<i1>, tensor<41xi32>, tensor<i64>, tensor<41xi1>
  }
  func.func private @cumsum(%arg0: tensor<41xi32>) -> tensor<41xi32> {
    %0 = call @cumsum_0(%arg0) : (tensor<41xi32>) -> tensor<41xi32>
    return %0 : tensor<41xi32>
  }
  func.func private @cumsum_0(%arg0: tensor<41xi32>) -> tensor<41xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[40, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 41>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<41xi32>, tensor<i32>) -> tensor<41xi32>
    return %1 : tensor<41xi32>
  }
  func.func private @argmin(%arg0: tensor<41xi32>) -> tensor<i64> {
    %0 = stablehlo.iota dim = 0 : tensor<41xi64>
    %c = stablehlo.constant dense<2147483647> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %c), (%0 init: %c_0) across dimensions = [0] : (tensor<41xi32>, tensor<41xi64>, tensor<i32>, tensor<i64>) -> (tensor<i32>, tensor<i64>)
     reducer(%arg1: tensor<i32>, %arg3: tensor<i32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<i32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<i32>, tensor<i64>
    }
    return %1#1 : tensor<i64>
  }
  func.func private @cumsum_1(%arg0: tensor<41xui32>) -> tensor<41xui32> {
    %0 = call @cumsum_2(%arg0) : (tensor<41xui32>) -> tensor<41xui32>
    return %0 : tensor<41xui32>
  }
  func.func private @cumsum_2(%arg0: tensor<41xui32>) -> tensor<41xui32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<ui32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[40, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 41>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<ui32>, %arg2: tensor<ui32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<ui32>
      stablehlo.return %2 : tensor<ui32>
    }) : (tensor<41xui32>, tensor<ui32>) -> tensor<41xui32>
    return %1 : tensor<41xui32>
  }
  func.func private @argmin_3(%arg0: tensor<41xui32>) -> tensor<i64> {
    %0 = stablehlo.iota dim = 0 : tensor<41xi64>
    %c = stablehlo.constant dense<4294967295> : tensor<ui32>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %c), (%0 init: %c_0) across dimensions = [0] : (tensor<41xui32>, tensor<41xi64>, tensor<ui32>, tensor<i64>) -> (tensor<ui32>, tensor<i64>)
     reducer(%arg1: tensor<ui32>, %arg3: tensor<ui32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<ui32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<ui32>, tensor<i64>
    }
    return %1#1 : tensor<i64>
  }
  func.func private @cumsum_4(%arg0: tensor<41xi8>) -> tensor<41xi8> {
    %0 = call @cumsum_5(%arg0) : (tensor<41xi8>) -> tensor<41xi8>
    return %0 : tensor<41xi8>
  }
  func.func private @cumsum_5(%arg0: tensor<41xi8>) -> tensor<41xi8> {
    %c = stablehlo.constant dense<0> : tensor<i8>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<i8>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[40, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 41>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i8>
      stablehlo.return %2 : tensor<i8>
    }) : (tensor<41xi8>, tensor<i8>) -> tensor<41xi8>
    return %1 : tensor<41xi8>
  }
  func.func private @argmin_6(%arg0: tensor<41xi8>) -> tensor<i64> {
    %0 = stablehlo.iota dim = 0 : tensor<41xi64>
    %c = stablehlo.constant dense<127> : tensor<i8>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %c), (%0 init: %c_0) across dimensions = [0] : (tensor<41xi8>, tensor<41xi64>, tensor<i8>, tensor<i64>) -> (tensor<i8>, tensor<i64>)
     reducer(%arg1: tensor<i8>, %arg3: tensor<i8>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<i8>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<i8>, tensor<i64>
    }
    return %1#1 : tensor<i64>
  }
}
