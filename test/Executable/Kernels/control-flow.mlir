// Loops, scans with a gradient, branches and sorts as JAX writes them (also
// top_k, median and searchsorted). Whale's kernels and XLA compute the results
// of the same random arguments: integers have to be equal, and f32 within 2e-5
// of the largest number of its result.

// RUN: %python %S/../compare_kernels.py whale-kernels-test %s 

module @jit_control attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x7xf32>, %arg1: tensor<i32>) -> (tensor<i32> {jax.result_info = "result[0]"}, tensor<5x7xf32> {jax.result_info = "result[1]"}, tensor<5x7xf32> {jax.result_info = "result[2]"}, tensor<7xf32> {jax.result_info = "result[3]"}, tensor<5x7xf32> {jax.result_info = "result[4]"}, tensor<5x7xf32> {jax.result_info = "result[5]"}, tensor<5x7xf32> {jax.result_info = "result[6]"}, tensor<5xf32> {jax.result_info = "result[7][0]"}, tensor<5xf32> {jax.result_info = "result[7][1]"}, tensor<5xi64> {jax.result_info = "result[7][2]"}, tensor<5x3xf32> {jax.result_info = "result[8][0]"}, tensor<5x3xi32> {jax.result_info = "result[8][1]"}, tensor<f32> {jax.result_info = "result[9]"}, tensor<7xi32> {jax.result_info = "result[10]"}) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %0 = call @remainder(%arg1, %c) : (tensor<i32>, tensor<i64>) -> tensor<i32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<5x7xf32>
    %3:3 = stablehlo.while(%iterArg = %0, %iterArg_15 = %arg0, %iterArg_16 = %2) : tensor<i32>, tensor<5x7xf32>, tensor<5x7xf32>
    cond {
      %c_17 = stablehlo.constant dense<5> : tensor<i32>
      %44 = stablehlo.compare LT, %iterArg, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %44 : tensor<i1>
    } do {
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %44 = stablehlo.add %iterArg, %c_17 : tensor<i32>
      %cst_18 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
      %45 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
      %46 = stablehlo.multiply %iterArg_15, %45 : tensor<5x7xf32>
      %47 = stablehlo.add %46, %iterArg_16 : tensor<5x7xf32>
      %c_19 = stablehlo.constant dense<2> : tensor<i64>
      %48 = func.call @remainder(%iterArg, %c_19) : (tensor<i32>, tensor<i64>) -> tensor<i32>
      %c_20 = stablehlo.constant dense<0> : tensor<i32>
      %49 = stablehlo.compare EQ, %48, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %50 = stablehlo.add %iterArg_16, %iterArg_15 : tensor<5x7xf32>
      %51 = stablehlo.subtract %iterArg_16, %iterArg_15 : tensor<5x7xf32>
      %52 = func.call @_where_0(%49, %50, %51) : (tensor<i1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      stablehlo.return %44, %47, %52 : tensor<i32>, tensor<5x7xf32>, tensor<5x7xf32>
    }
    %4 = stablehlo.slice %arg0 [0:1, 0:7] : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x7xf32>) -> tensor<7xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %7:4 = stablehlo.while(%iterArg = %arg0, %iterArg_15 = %c_1, %iterArg_16 = %5, %iterArg_17 = %6) : tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>
    cond {
      %c_18 = stablehlo.constant dense<5> : tensor<i64>
      %44 = stablehlo.compare LT, %iterArg_15, %c_18, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %44 : tensor<i1>
    } do {
      %44 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_15) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %45:2 = func.call @closed_call(%iterArg_16, %44) : (tensor<7xf32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>)
      %46 = func.call @dynamic_update_index_in_dim(%iterArg_17, %45#1, %iterArg_15) : (tensor<5x7xf32>, tensor<7xf32>, tensor<i64>) -> tensor<5x7xf32>
      %c_18 = stablehlo.constant dense<1> : tensor<i64>
      %47 = stablehlo.add %iterArg_15, %c_18 : tensor<i64>
      stablehlo.return %iterArg, %47, %45#0, %46 : tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>
    }
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %8 = stablehlo.clamp %c_2, %arg1, %c_3 : tensor<i32>
    %9 = "stablehlo.case"(%8) ({
      %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %44 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
      %45 = stablehlo.add %arg0, %44 : tensor<5x7xf32>
      stablehlo.return %45 : tensor<5x7xf32>
    }, {
      %cst_15 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %44 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
      %45 = stablehlo.multiply %arg0, %44 : tensor<5x7xf32>
      stablehlo.return %45 : tensor<5x7xf32>
    }, {
      %44 = stablehlo.reverse %arg0, dims = [0] : tensor<5x7xf32>
      stablehlo.return %44 : tensor<5x7xf32>
    }) : (tensor<i32>) -> tensor<5x7xf32>
    %10 = stablehlo.slice %arg0 [0:1, 0:7] : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %11 = stablehlo.reshape %10 : (tensor<1x7xf32>) -> tensor<7xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i64>
    %15:6 = stablehlo.while(%iterArg = %arg0, %iterArg_15 = %c_7, %iterArg_16 = %11, %iterArg_17 = %12, %iterArg_18 = %13, %iterArg_19 = %14) : tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>
    cond {
      %c_20 = stablehlo.constant dense<5> : tensor<i64>
      %44 = stablehlo.compare LT, %iterArg_15, %c_20, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %44 : tensor<i1>
    } do {
      %44 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_15) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %45:4 = func.call @closed_call_1(%iterArg_16, %44) : (tensor<7xf32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>)
      %46 = func.call @dynamic_update_index_in_dim(%iterArg_17, %45#1, %iterArg_15) : (tensor<5x7xf32>, tensor<7xf32>, tensor<i64>) -> tensor<5x7xf32>
      %47 = func.call @dynamic_update_index_in_dim(%iterArg_18, %45#2, %iterArg_15) : (tensor<5x7xf32>, tensor<7xf32>, tensor<i64>) -> tensor<5x7xf32>
      %48 = func.call @dynamic_update_index_in_dim(%iterArg_19, %45#3, %iterArg_15) : (tensor<5x7xf32>, tensor<7xf32>, tensor<i64>) -> tensor<5x7xf32>
      %c_20 = stablehlo.constant dense<1> : tensor<i64>
      %49 = stablehlo.add %iterArg_15, %c_20 : tensor<i64>
      stablehlo.return %iterArg, %49, %45#0, %46, %47, %48 : tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>
    }
    %16 = stablehlo.multiply %15#3, %15#3 : tensor<5x7xf32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %18 = stablehlo.multiply %17, %15#3 : tensor<5x7xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%16 init: %cst_9) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %21 = stablehlo.multiply %20, %18 : tensor<5x7xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<5x7xf32>
    %c_13 = stablehlo.constant dense<0> : tensor<i64>
    %24:7 = stablehlo.while(%iterArg = %21, %iterArg_15 = %15#4, %iterArg_16 = %arg0, %iterArg_17 = %15#5, %iterArg_18 = %c_13, %iterArg_19 = %22, %iterArg_20 = %23) : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>
    cond {
      %c_21 = stablehlo.constant dense<5> : tensor<i64>
      %44 = stablehlo.compare LT, %iterArg_18, %c_21, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %44 : tensor<i1>
    } do {
      %c_21 = stablehlo.constant dense<5> : tensor<i64>
      %44 = stablehlo.subtract %c_21, %iterArg_18 : tensor<i64>
      %c_22 = stablehlo.constant dense<1> : tensor<i64>
      %45 = stablehlo.subtract %44, %c_22 : tensor<i64>
      %46 = func.call @dynamic_index_in_dim(%iterArg, %45) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %47 = func.call @dynamic_index_in_dim(%iterArg_15, %45) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %48 = func.call @dynamic_index_in_dim(%iterArg_16, %45) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %49 = func.call @dynamic_index_in_dim(%iterArg_17, %45) : (tensor<5x7xf32>, tensor<i64>) -> tensor<7xf32>
      %50:2 = func.call @closed_call_2(%iterArg_19, %46, %47, %48, %49) : (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>)
      %51 = func.call @dynamic_update_index_in_dim(%iterArg_20, %50#1, %45) : (tensor<5x7xf32>, tensor<7xf32>, tensor<i64>) -> tensor<5x7xf32>
      %c_23 = stablehlo.constant dense<1> : tensor<i64>
      %52 = stablehlo.add %iterArg_18, %c_23 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_15, %iterArg_16, %iterArg_17, %52, %50#0, %51 : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<i64>, tensor<7xf32>, tensor<5x7xf32>
    }
    %25 = stablehlo.broadcast_in_dim %24#5, dims = [1] : (tensor<7xf32>) -> tensor<1x7xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.pad %25, %cst_14, low = [0, 0], high = [4, 0], interior = [0, 0] : (tensor<1x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    %27 = stablehlo.add %24#6, %26 : tensor<5x7xf32>
    %28 = stablehlo.slice %arg0 [0:5, 0:1] : (tensor<5x7xf32>) -> tensor<5x1xf32>
    %29 = stablehlo.reshape %28 : (tensor<5x1xf32>) -> tensor<5xf32>
    %30 = stablehlo.slice %arg0 [0:5, 1:2] : (tensor<5x7xf32>) -> tensor<5x1xf32>
    %31 = stablehlo.reshape %30 : (tensor<5x1xf32>) -> tensor<5xf32>
    %32 = stablehlo.iota dim = 0 : tensor<5xi64>
    %33 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i64>
    %34 = stablehlo.broadcast_in_dim %33, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %35 = stablehlo.add %34, %32 : tensor<5xi64>
    %36:3 = "stablehlo.sort"(%29, %31, %35) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<i64>, %arg7: tensor<i64>):
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %44 = stablehlo.compare EQ, %arg2, %cst_15, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %45 = stablehlo.select %44, %cst_16, %arg2 : tensor<i1>, tensor<f32>
      %46 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_17 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %47 = stablehlo.select %46, %cst_17, %45 : tensor<i1>, tensor<f32>
      %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %48 = stablehlo.compare EQ, %arg3, %cst_18, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %49 = stablehlo.select %48, %cst_19, %arg3 : tensor<i1>, tensor<f32>
      %50 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_20 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %51 = stablehlo.select %50, %cst_20, %49 : tensor<i1>, tensor<f32>
      %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %52 = stablehlo.compare EQ, %arg4, %cst_21, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %53 = stablehlo.select %52, %cst_22, %arg4 : tensor<i1>, tensor<f32>
      %54 = stablehlo.compare NE, %arg4, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_23 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %55 = stablehlo.select %54, %cst_23, %53 : tensor<i1>, tensor<f32>
      %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %56 = stablehlo.compare EQ, %arg5, %cst_24, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %57 = stablehlo.select %56, %cst_25, %arg5 : tensor<i1>, tensor<f32>
      %58 = stablehlo.compare NE, %arg5, %arg5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_26 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %59 = stablehlo.select %58, %cst_26, %57 : tensor<i1>, tensor<f32>
      %60 = stablehlo.compare LT, %55, %59, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %61 = stablehlo.compare LT, %47, %51, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %62 = stablehlo.compare EQ, %47, %51, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %63 = stablehlo.and %62, %60 : tensor<i1>
      %64 = stablehlo.or %61, %63 : tensor<i1>
      stablehlo.return %64 : tensor<i1>
    }) : (tensor<5xf32>, tensor<5xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xi64>)
    %values, %indices = chlo.top_k(%arg0, k = 3) : tensor<5x7xf32> -> (tensor<5x3xf32>, tensor<5x3xi32>)
    %37 = call @median(%arg0) : (tensor<5x7xf32>) -> tensor<f32>
    %38 = stablehlo.slice %arg0 [0:1, 0:7] : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %39 = stablehlo.reshape %38 : (tensor<1x7xf32>) -> tensor<7xf32>
    %40 = call @sort(%39) : (tensor<7xf32>) -> tensor<7xf32>
    %41 = stablehlo.slice %arg0 [1:2, 0:7] : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %42 = stablehlo.reshape %41 : (tensor<1x7xf32>) -> tensor<7xf32>
    %43 = call @searchsorted(%40, %42) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi32>
    return %3#0, %3#1, %3#2, %7#2, %7#3, %9, %27, %36#0, %36#1, %36#2, %values, %indices, %37, %43 : tensor<i32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xi64>, tensor<5x3xf32>, tensor<5x3xi32>, tensor<f32>, tensor<7xi32>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i64>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.remainder %arg0, %2 : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare NE, %3, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.compare LT, %3, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %8 = stablehlo.and %7, %4 : tensor<i1>
    %9 = stablehlo.add %3, %2 : tensor<i32>
    %10 = stablehlo.select %8, %9, %3 : tensor<i1>, tensor<i32>
    return %10 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<5x7xf32>, %arg2: tensor<5x7xf32>) -> tensor<5x7xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<5x7xf32>
    return %0 : tensor<5x7xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<5x7xf32>, %arg1: tensor<i64>) -> tensor<7xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 7] : (tensor<5x7xf32>, tensor<i64>, tensor<i64>) -> tensor<1x7xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x7xf32>) -> tensor<7xf32>
    return %1 : tensor<7xf32>
  }
  func.func private @closed_call(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
    %0 = stablehlo.tanh %arg1 : tensor<7xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<7xf32>
    %2 = stablehlo.multiply %arg0, %arg1 : tensor<7xf32>
    return %1, %2 : tensor<7xf32>, tensor<7xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<5x7xf32>, %arg1: tensor<7xf32>, %arg2: tensor<i64>) -> tensor<5x7xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<7xf32>) -> tensor<1x7xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<5x7xf32>, tensor<1x7xf32>, tensor<i64>, tensor<i64>) -> tensor<5x7xf32>
    return %1 : tensor<5x7xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {
    %0 = stablehlo.sine %arg0 : tensor<7xf32>
    %1 = stablehlo.cosine %arg0 : tensor<7xf32>
    %2 = stablehlo.multiply %0, %arg1 : tensor<7xf32>
    return %2, %arg0, %1, %0 : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
  }
  func.func private @closed_call_2(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>, %arg2: tensor<7xf32>, %arg3: tensor<7xf32>, %arg4: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
    %0 = stablehlo.multiply %arg4, %arg0 : tensor<7xf32>
    %1 = stablehlo.multiply %arg0, %arg3 : tensor<7xf32>
    %2 = stablehlo.multiply %1, %arg2 : tensor<7xf32>
    %3 = stablehlo.add %arg1, %2 : tensor<7xf32>
    return %3, %0 : tensor<7xf32>, tensor<7xf32>
  }
  func.func private @median(%arg0: tensor<5x7xf32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f64>
    %0 = call @quantile(%arg0, %cst) : (tensor<5x7xf32>, tensor<f64>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @quantile(%arg0: tensor<5x7xf32>, %arg1: tensor<f64>) -> tensor<f32> {
    %0 = stablehlo.reshape %arg0 : (tensor<5x7xf32>) -> tensor<35xf32>
    %1 = stablehlo.compare NE, %0, %0, FLOAT : (tensor<35xf32>, tensor<35xf32>) -> tensor<35xi1>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.or across dimensions = [0] : (tensor<35xi1>, tensor<i1>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %4 = call @_where_3(%3, %cst, %0) : (tensor<1xi1>, tensor<f64>, tensor<35xf32>) -> tensor<35xf32>
    %5 = "stablehlo.sort"(%4) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %24 = stablehlo.compare EQ, %arg2, %cst_10, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %25 = stablehlo.select %24, %cst_11, %arg2 : tensor<i1>, tensor<f32>
      %26 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_12 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %27 = stablehlo.select %26, %cst_12, %25 : tensor<i1>, tensor<f32>
      %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %28 = stablehlo.compare EQ, %arg3, %cst_13, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %29 = stablehlo.select %28, %cst_14, %arg3 : tensor<i1>, tensor<f32>
      %30 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_15 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %31 = stablehlo.select %30, %cst_15, %29 : tensor<i1>, tensor<f32>
      %32 = stablehlo.compare LT, %27, %31, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %32 : tensor<i1>
    }) : (tensor<35xf32>) -> tensor<35xf32>
    %cst_0 = stablehlo.constant dense<3.500000e+01> : tensor<f64>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %6 = stablehlo.subtract %cst_0, %cst_1 : tensor<f64>
    %7 = stablehlo.multiply %arg1, %6 : tensor<f64>
    %8 = stablehlo.floor %7 : tensor<f64>
    %9 = stablehlo.ceil %7 : tensor<f64>
    %10 = stablehlo.subtract %7, %8 : tensor<f64>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %11 = stablehlo.subtract %cst_2, %10 : tensor<f64>
    %cst_3 = stablehlo.constant dense<3.500000e+01> : tensor<f64>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %12 = stablehlo.subtract %cst_3, %cst_4 : tensor<f64>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %13 = stablehlo.clamp %cst_5, %8, %12 : tensor<f64>
    %cst_6 = stablehlo.constant dense<3.500000e+01> : tensor<f64>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %14 = stablehlo.subtract %cst_6, %cst_7 : tensor<f64>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %15 = stablehlo.clamp %cst_8, %9, %14 : tensor<f64>
    %16 = stablehlo.convert %13 : (tensor<f64>) -> tensor<i64>
    %17 = stablehlo.convert %15 : (tensor<f64>) -> tensor<i64>
    %18 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %19 = "stablehlo.gather"(%5, %18) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<35xf32>, tensor<1xi64>) -> tensor<f32>
    %20 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %21 = "stablehlo.gather"(%5, %20) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<35xf32>, tensor<1xi64>) -> tensor<f32>
    %22 = stablehlo.add %19, %21 : tensor<f32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %23 = stablehlo.multiply %22, %cst_9 : tensor<f32>
    return %23 : tensor<f32>
  }
  func.func private @_where_3(%arg0: tensor<1xi1>, %arg1: tensor<f64>, %arg2: tensor<35xf32>) -> tensor<35xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<f64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<1xi1>) -> tensor<35xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<35xf32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<35xi1>, tensor<35xf32>
    return %3 : tensor<35xf32>
  }
  func.func private @sort(%arg0: tensor<7xf32>) -> tensor<7xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<7xf32>) -> tensor<7xf32>
    return %0 : tensor<7xf32>
  }
  func.func private @searchsorted(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>) -> tensor<7xi32> {
    %0 = call @_searchsorted_scan_impl(%arg0, %arg1) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi32>
    return %0 : tensor<7xi32>
  }
  func.func private @_searchsorted_scan_impl(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>) -> tensor<7xi32> {
    %0 = call @_searchsorted_scan_impl_4(%arg0, %arg1) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi32>
    return %0 : tensor<7xi32>
  }
  func.func private @_searchsorted_scan_impl_4(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>) -> tensor<7xi32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<7xui32>
    %c_0 = stablehlo.constant dense<7> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<7xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %0, %iterArg_5 = %1) : tensor<7xf32>, tensor<7xf32>, tensor<i64>, tensor<7xui32>, tensor<7xui32>
    cond {
      %c_6 = stablehlo.constant dense<3> : tensor<i64>
      %4 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call_5(%iterArg, %iterArg_2, %iterArg_4, %iterArg_5) : (tensor<7xf32>, tensor<7xf32>, tensor<7xui32>, tensor<7xui32>) -> (tensor<7xui32>, tensor<7xui32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i64>
      %5 = stablehlo.add %iterArg_3, %c_6 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %5, %4#0, %4#1 : tensor<7xf32>, tensor<7xf32>, tensor<i64>, tensor<7xui32>, tensor<7xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<7xui32>) -> tensor<7xi32>
    return %3 : tensor<7xi32>
  }
  func.func private @closed_call_5(%arg0: tensor<7xf32>, %arg1: tensor<7xf32>, %arg2: tensor<7xui32>, %arg3: tensor<7xui32>) -> (tensor<7xui32>, tensor<7xui32>) {
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<7xui32>
    %c = stablehlo.constant dense<2> : tensor<i64>
    %1 = call @floor_divide(%0, %c) : (tensor<7xui32>, tensor<i64>) -> tensor<7xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<7xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<7xui32>) -> tensor<7x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<7xf32>, tensor<7x1xui32>) -> tensor<7x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<7x1xf32>) -> tensor<7xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %7 = stablehlo.compare EQ, %arg1, %6, FLOAT : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %9 = stablehlo.select %7, %8, %arg1 : tensor<7xi1>, tensor<7xf32>
    %10 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %12 = stablehlo.select %10, %11, %9 : tensor<7xi1>, tensor<7xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %14 = stablehlo.compare EQ, %5, %13, FLOAT : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %16 = stablehlo.select %14, %15, %5 : tensor<7xi1>, tensor<7xf32>
    %17 = stablehlo.compare NE, %5, %5, FLOAT : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %19 = stablehlo.select %17, %18, %16 : tensor<7xi1>, tensor<7xf32>
    %20 = stablehlo.compare LE, %12, %19, TOTALORDER : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
    %21 = stablehlo.select %20, %arg2, %2 : tensor<7xi1>, tensor<7xui32>
    %22 = stablehlo.select %20, %2, %arg3 : tensor<7xi1>, tensor<7xui32>
    return %21, %22 : tensor<7xui32>, tensor<7xui32>
  }
  func.func private @floor_divide(%arg0: tensor<7xui32>, %arg1: tensor<i64>) -> tensor<7xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<7xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<7xui32>
    return %2 : tensor<7xui32>
  }
}
