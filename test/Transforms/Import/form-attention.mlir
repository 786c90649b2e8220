// Attention and its gradient as JAX writes them become one operation each, with
// the right operands, scale, bias and mask: causal, in groups of heads, with a
// constant mask or a window. Of @causal_gradient and @grouped_gradient nothing
// of the size of the scores may be left. In the second run rows have fewer keys
// than least-keys: all stays as it is.

// RUN: whale-opt %s --whale-form-attention=least-keys=1 | FileCheck %s
// RUN: whale-opt %s --whale-form-attention=least-keys=7 \
// RUN:   | FileCheck %s --check-prefix=FEW

// Fewer keys than are asked for.
// FEW-NOT: whale.attention

// As JAX writes the gradient of einsum, mask, softmax and einsum: nothing of the
// size of the scores is left.
// CHECK-LABEL: @causal_gradient
// CHECK-NOT: 5x5x
// CHECK: %[[O:.*]] = whale.attention query "bqhd" %arg0 key "bkhd" %arg1 value "bkhe" %arg2 to "bqhe" scale 5.000000e-01 {causal = 0 : i64, fill = -1.000000e+09 : f64}
// CHECK-NOT: 5x5x
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = whale.attention_gradient query "bqhd" %arg0 key "bkhd" %arg1 value "bkhe" %arg2 cotangent "bqhe" %arg3 to "bqhd", "bkhd", "bkhe" scale 5.000000e-01 {causal = 0 : i64, fill = -1.000000e+09 : f64}
// CHECK-NOT: 5x5x
// CHECK: return %[[O]], %[[DQ]], %[[DK]], %[[DV]]
func.func @causal_gradient(%arg0: tensor<2x5x4x3xf32>, %arg1: tensor<2x5x4x3xf32>, %arg2: tensor<2x5x4x3xf32>, %arg3: tensor<2x5x4x3xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>) -> tensor<2x4x5x5xf32>
  %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
  %1 = stablehlo.sqrt %cst : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x5x5xf32>
  %3 = stablehlo.divide %0, %2 : tensor<2x4x5x5xf32>
  %c = stablehlo.constant dense<true> : tensor<5x5xi1>
  %4 = stablehlo.iota dim = 0 : tensor<5x5xi32>
  %c_0 = stablehlo.constant dense<0> : tensor<5x5xi32>
  %5 = stablehlo.add %4, %c_0 : tensor<5x5xi32>
  %6 = stablehlo.iota dim = 1 : tensor<5x5xi32>
  %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
  %c_1 = stablehlo.constant dense<false> : tensor<5x5xi1>
  %8 = stablehlo.select %7, %c, %c_1 : tensor<5x5xi1>, tensor<5x5xi1>
  %9 = stablehlo.broadcast_in_dim %8, dims = [2, 3] : (tensor<5x5xi1>) -> tensor<2x4x5x5xi1>
  %cst_2 = stablehlo.constant dense<-1.000000e+09> : tensor<2x4x5x5xf32>
  %10 = stablehlo.select %9, %3, %cst_2 : tensor<2x4x5x5xi1>, tensor<2x4x5x5xf32>
  %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %11 = stablehlo.reduce(%10 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x5x5xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<2x4x5xf32>
  %12 = stablehlo.maximum %11, %cst_4 : tensor<2x4x5xf32>
  %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x5xf32>
  %14 = stablehlo.subtract %10, %13 : tensor<2x4x5x5xf32>
  %15 = stablehlo.exponential %14 : tensor<2x4x5x5xf32>
  %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %16 = stablehlo.reduce(%15 init: %cst_5) applies stablehlo.add across dimensions = [3] : (tensor<2x4x5x5xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x1xf32>
  %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x5xf32>
  %19 = stablehlo.divide %15, %18 : tensor<2x4x5x5xf32>
  %20 = stablehlo.multiply %17, %17 : tensor<2x4x5x1xf32>
  %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<2x4x5x1xf32>
  %21 = stablehlo.divide %cst_6, %20 : tensor<2x4x5x1xf32>
  %22 = stablehlo.dot_general %arg2, %19, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<2x5x4x3xf32>, tensor<2x4x5x5xf32>) -> tensor<2x4x3x5xf32>
  %23 = stablehlo.transpose %22, dims = [0, 3, 1, 2] : (tensor<2x4x3x5xf32>) -> tensor<2x5x4x3xf32>
  %24 = stablehlo.transpose %arg3, dims = [0, 2, 3, 1] : (tensor<2x5x4x3xf32>) -> tensor<2x4x3x5xf32>
  %25 = stablehlo.dot_general %24, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<2x4x3x5xf32>, tensor<2x5x4x3xf32>) -> tensor<2x4x5x5xf32>
  %26 = stablehlo.dot_general %24, %19, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x3x5xf32>, tensor<2x4x5x5xf32>) -> tensor<2x4x3x5xf32>
  %27 = stablehlo.transpose %26, dims = [0, 3, 1, 2] : (tensor<2x4x3x5xf32>) -> tensor<2x5x4x3xf32>
  %28 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x4x5x1xf32>) -> tensor<2x4x5x5xf32>
  %29 = stablehlo.multiply %25, %28 : tensor<2x4x5x5xf32>
  %30 = stablehlo.multiply %29, %15 : tensor<2x4x5x5xf32>
  %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %31 = stablehlo.reduce(%30 init: %cst_7) applies stablehlo.add across dimensions = [3] : (tensor<2x4x5x5xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %32 = stablehlo.reshape %31 : (tensor<2x4x5xf32>) -> tensor<2x4x5x1xf32>
  %33 = stablehlo.negate %32 : tensor<2x4x5x1xf32>
  %34 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x5xf32>
  %35 = stablehlo.divide %25, %34 : tensor<2x4x5x5xf32>
  %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %36 = stablehlo.reduce(%33 init: %cst_8) applies stablehlo.add across dimensions = [3] : (tensor<2x4x5x1xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x5xf32>
  %38 = stablehlo.add %35, %37 : tensor<2x4x5x5xf32>
  %39 = stablehlo.multiply %38, %15 : tensor<2x4x5x5xf32>
  %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<2x4x5x5xf32>
  %40 = stablehlo.select %9, %39, %cst_9 : tensor<2x4x5x5xi1>, tensor<2x4x5x5xf32>
  %41 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x5x5xf32>
  %42 = stablehlo.divide %40, %41 : tensor<2x4x5x5xf32>
  %43 = stablehlo.dot_general %42, %arg0, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<2x4x5x5xf32>, tensor<2x5x4x3xf32>) -> tensor<2x4x5x3xf32>
  %44 = stablehlo.transpose %43, dims = [0, 2, 1, 3] : (tensor<2x4x5x3xf32>) -> tensor<2x5x4x3xf32>
  %45 = stablehlo.dot_general %42, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x4x5x5xf32>, tensor<2x5x4x3xf32>) -> tensor<2x4x5x3xf32>
  %46 = stablehlo.transpose %45, dims = [0, 2, 1, 3] : (tensor<2x4x5x3xf32>) -> tensor<2x5x4x3xf32>
  return %23, %46, %44, %27 : tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>, tensor<2x5x4x3xf32>
}

// jax.nn.dot_product_attention with two heads of queries for each of keys, in
// bf16: the heads' gradients are summed in f32 after it.
// CHECK-LABEL: @grouped_gradient
// CHECK-NOT: 5x5x
// CHECK: %[[Q:.*]] = stablehlo.reshape %arg0
// CHECK: whale.attention query "hqgbd" %[[Q]] key "hkgd" %arg1 value "hkge" %arg2 mask "h11k" %arg4 to "hqgbe" scale 0.57735{{.*}} {causal = 0 : i64, fill = -2.38{{.*}}E+38 : f64}
// CHECK-NOT: 5x5x
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = whale.attention_gradient query "hqgbd" %[[Q]] key "hkgd" %arg1 value "hkge" %arg2 mask "h11k" %arg4 cotangent "hqgbe" %{{.*}} to "hqgbd", "bhkgd", "bhkge" scale 0.57735{{.*}} {causal = 0 : i64, fill = -2.38{{.*}}E+38 : f64}
// CHECK: stablehlo.reduce(%[[DK]] {{.*}} across dimensions = [0]
// CHECK: stablehlo.reduce(%[[DV]] {{.*}} across dimensions = [0]
// CHECK-NOT: 5x5x
// CHECK: return
func.func @grouped_gradient(%arg0: tensor<2x5x4x3xbf16>, %arg1: tensor<2x5x2x3xbf16>, %arg2: tensor<2x5x2x3xbf16>, %arg3: tensor<2x5x4x3xbf16>, %arg4: tensor<2x1x1x5xi1>) -> (tensor<2x5x4x3xbf16>, tensor<2x5x4x3xbf16>, tensor<2x5x2x3xbf16>, tensor<2x5x2x3xbf16>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x5x4x3xbf16>) -> tensor<2x5x2x2x3xbf16>
  %1 = stablehlo.broadcast_in_dim %arg4, dims = [0, 1, 3, 4] : (tensor<2x1x1x5xi1>) -> tensor<2x1x2x1x5xi1>
  %2 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x5x2x2x3xbf16>, tensor<2x5x2x3xbf16>) -> tensor<2x2x5x2x5xf32>
  %cst = stablehlo.constant dense<0.577350259> : tensor<2x2x5x2x5xf32>
  %3 = stablehlo.multiply %2, %cst : tensor<2x2x5x2x5xf32>
  %4 = stablehlo.transpose %1, dims = [2, 0, 1, 3, 4] : (tensor<2x1x2x1x5xi1>) -> tensor<2x2x1x1x5xi1>
  %c = stablehlo.constant dense<true> : tensor<2x2x2x5x5xi1>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x1x5xi1>) -> tensor<2x2x2x5x5xi1>
  %6 = stablehlo.and %5, %c : tensor<2x2x2x5x5xi1>
  %c_0 = stablehlo.constant dense<true> : tensor<5x5xi1>
  %7 = stablehlo.iota dim = 0 : tensor<5x5xi32>
  %c_1 = stablehlo.constant dense<0> : tensor<5x5xi32>
  %8 = stablehlo.add %7, %c_1 : tensor<5x5xi32>
  %9 = stablehlo.iota dim = 1 : tensor<5x5xi32>
  %10 = stablehlo.compare GE, %8, %9, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
  %c_2 = stablehlo.constant dense<false> : tensor<5x5xi1>
  %11 = stablehlo.select %10, %c_0, %c_2 : tensor<5x5xi1>, tensor<5x5xi1>
  %12 = stablehlo.broadcast_in_dim %11, dims = [3, 4] : (tensor<5x5xi1>) -> tensor<2x2x2x5x5xi1>
  %13 = stablehlo.and %6, %12 : tensor<2x2x2x5x5xi1>
  %cst_3 = stablehlo.constant dense<-2.38197633E+38> : tensor<2x2x2x5x5xf32>
  %14 = stablehlo.transpose %3, dims = [3, 0, 1, 2, 4] : (tensor<2x2x5x2x5xf32>) -> tensor<2x2x2x5x5xf32>
  %15 = stablehlo.select %13, %14, %cst_3 : tensor<2x2x2x5x5xi1>, tensor<2x2x2x5x5xf32>
  %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %16 = stablehlo.reduce(%15 init: %cst_4) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x2x5xf32>
  %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<2x2x2x5xf32>
  %17 = stablehlo.maximum %16, %cst_5 : tensor<2x2x2x5xf32>
  %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x5xf32>
  %19 = stablehlo.subtract %15, %18 : tensor<2x2x2x5x5xf32>
  %20 = stablehlo.exponential %19 : tensor<2x2x2x5x5xf32>
  %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %21 = stablehlo.reduce(%20 init: %cst_6) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x2x5xf32>
  %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x1xf32>
  %23 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x5xf32>
  %24 = stablehlo.divide %20, %23 : tensor<2x2x2x5x5xf32>
  %25 = stablehlo.multiply %22, %22 : tensor<2x2x2x5x1xf32>
  %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<2x2x2x5x1xf32>
  %26 = stablehlo.divide %cst_7, %25 : tensor<2x2x2x5x1xf32>
  %27 = stablehlo.convert %24 : (tensor<2x2x2x5x5xf32>) -> tensor<2x2x2x5x5xbf16>
  %28 = stablehlo.dot_general %arg2, %27, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<2x5x2x3xbf16>, tensor<2x2x2x5x5xbf16>) -> tensor<2x2x3x2x5xbf16>
  %29 = stablehlo.transpose %28, dims = [0, 4, 1, 3, 2] : (tensor<2x2x3x2x5xbf16>) -> tensor<2x5x2x2x3xbf16>
  %30 = stablehlo.reshape %29 : (tensor<2x5x2x2x3xbf16>) -> tensor<2x5x4x3xbf16>
  %31 = stablehlo.reshape %arg3 : (tensor<2x5x4x3xbf16>) -> tensor<2x5x2x2x3xbf16>
  %32 = stablehlo.transpose %31, dims = [0, 2, 4, 3, 1] : (tensor<2x5x2x2x3xbf16>) -> tensor<2x2x3x2x5xbf16>
  %33 = stablehlo.dot_general %32, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<2x2x3x2x5xbf16>, tensor<2x5x2x3xbf16>) -> tensor<2x2x2x5x5xbf16>
  %34 = stablehlo.transpose %33, dims = [2, 0, 1, 3, 4] : (tensor<2x2x2x5x5xbf16>) -> tensor<2x2x2x5x5xbf16>
  %35 = stablehlo.dot_general %32, %27, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3] : (tensor<2x2x3x2x5xbf16>, tensor<2x2x2x5x5xbf16>) -> tensor<2x2x3x5xbf16>
  %36 = stablehlo.transpose %35, dims = [0, 3, 1, 2] : (tensor<2x2x3x5xbf16>) -> tensor<2x5x2x3xbf16>
  %37 = stablehlo.convert %34 : (tensor<2x2x2x5x5xbf16>) -> tensor<2x2x2x5x5xf32>
  %38 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x5x1xf32>) -> tensor<2x2x2x5x5xf32>
  %39 = stablehlo.multiply %37, %38 : tensor<2x2x2x5x5xf32>
  %40 = stablehlo.multiply %39, %20 : tensor<2x2x2x5x5xf32>
  %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %41 = stablehlo.reduce(%40 init: %cst_8) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x5x5xf32>, tensor<f32>) -> tensor<2x2x2x5xf32>
  %42 = stablehlo.reshape %41 : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x1xf32>
  %43 = stablehlo.negate %42 : tensor<2x2x2x5x1xf32>
  %44 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x5xf32>
  %45 = stablehlo.divide %37, %44 : tensor<2x2x2x5x5xf32>
  %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %46 = stablehlo.reduce(%43 init: %cst_9) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x5x1xf32>, tensor<f32>) -> tensor<2x2x2x5xf32>
  %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2, 3] : (tensor<2x2x2x5xf32>) -> tensor<2x2x2x5x5xf32>
  %48 = stablehlo.add %45, %47 : tensor<2x2x2x5x5xf32>
  %49 = stablehlo.multiply %48, %20 : tensor<2x2x2x5x5xf32>
  %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<2x2x2x5x5xf32>
  %50 = stablehlo.select %13, %49, %cst_10 : tensor<2x2x2x5x5xi1>, tensor<2x2x2x5x5xf32>
  %51 = stablehlo.transpose %50, dims = [1, 2, 3, 0, 4] : (tensor<2x2x2x5x5xf32>) -> tensor<2x2x5x2x5xf32>
  %cst_11 = stablehlo.constant dense<0.577350259> : tensor<2x2x5x2x5xf32>
  %52 = stablehlo.multiply %51, %cst_11 : tensor<2x2x5x2x5xf32>
  %53 = stablehlo.dot_general %52, %0, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3] : (tensor<2x2x5x2x5xf32>, tensor<2x5x2x2x3xbf16>) -> tensor<2x2x5x3xf32>
  %54 = stablehlo.transpose %53, dims = [0, 2, 1, 3] : (tensor<2x2x5x3xf32>) -> tensor<2x5x2x3xf32>
  %55 = stablehlo.convert %54 : (tensor<2x5x2x3xf32>) -> tensor<2x5x2x3xbf16>
  %56 = stablehlo.dot_general %52, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1] : (tensor<2x2x5x2x5xf32>, tensor<2x5x2x3xbf16>) -> tensor<2x2x5x2x3xf32>
  %57 = stablehlo.transpose %56, dims = [0, 2, 1, 3, 4] : (tensor<2x2x5x2x3xf32>) -> tensor<2x5x2x2x3xf32>
  %58 = stablehlo.convert %57 : (tensor<2x5x2x2x3xf32>) -> tensor<2x5x2x2x3xbf16>
  %59 = stablehlo.reshape %58 : (tensor<2x5x2x2x3xbf16>) -> tensor<2x5x4x3xbf16>
  return %30, %59, %55, %36 : tensor<2x5x4x3xbf16>, tensor<2x5x4x3xbf16>, tensor<2x5x2x3xbf16>, tensor<2x5x2x3xbf16>
}

// A bias that is added, one that is subtracted.
// CHECK-LABEL: @bias
// CHECK: whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 bias "k" %arg3 to "qe" scale 1.000000e+00 :
func.func @bias(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<6xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %bs = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
  %s = stablehlo.add %bs, %s0 : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// CHECK-LABEL: @subtracted_bias
// CHECK: %[[B:.*]] = stablehlo.negate %arg3
// CHECK: whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 bias "qk" %[[B]] to "qe"
func.func @subtracted_bias(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = stablehlo.subtract %s0, %b : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// What is masked, instead of what is kept; without a finite number.
// CHECK-LABEL: @masked
// CHECK: %[[KEPT:.*]] = stablehlo.not %arg3
// CHECK: whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 mask "qk" %[[KEPT]] to "qe" scale 1.000000e+00 :
func.func @masked(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xi1>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %fill = stablehlo.constant dense<0xFF800000> : tensor<4x6xf32>
  %s = stablehlo.select %b, %fill, %s0 : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// A constant whose rows keep one key more each.
// CHECK-LABEL: @constant_mask
// CHECK: whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 to "qe" scale 2.000000e+00 {causal = 1 : i64, fill = -6.000000e+00 : f64}
func.func @constant_mask(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %b = stablehlo.constant dense<[[true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false]]> : tensor<4x6xi1>
  %fill = stablehlo.constant dense<-3.0> : tensor<4x6xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4x6xf32>
  %s1 = stablehlo.select %b, %s0, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %s = stablehlo.multiply %s1, %two : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// One whose rows do not is a mask like any other.
// CHECK-LABEL: @irregular_mask
// CHECK: whale.attention {{.*}} mask "qk"
// CHECK-NOT: causal
// CHECK: return
func.func @irregular_mask(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %b = stablehlo.constant dense<[[true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, true]]> : tensor<4x6xi1>
  %fill = stablehlo.constant dense<-3.0> : tensor<4x6xf32>
  %s = stablehlo.select %b, %s0, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// Where only the values have a gradient, nothing is multiplied by them.
// CHECK-LABEL: func.func @values_alone
// CHECK: %{{.*}}, %{{.*}}, %[[DV:.*]] = whale.attention_gradient query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 cotangent "qe" %arg3 to "qd", "kd", "ke"
// CHECK: return %{{.*}}, %[[DV]] :
func.func @values_alone(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %d: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<6x5xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  %dv = stablehlo.dot_general %p, %d, contracting_dims = [0] x [0] : (tensor<4x6xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  return %o, %dv : tensor<4x5xf32>, tensor<6x5xf32>
}

// A comparison the other way round is a mask like others; of two, one that
// keeps earlier keys is `causal`.
// CHECK-LABEL: func.func @window
// CHECK: %[[MASK:.*]] = stablehlo.compare GT
// CHECK: whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 mask "qk" %[[MASK]] to "qe" scale 1.000000e+00 {causal = 0 : i64}
func.func @window(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %lows = stablehlo.constant dense<0xFF800000> : tensor<4x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %reach = stablehlo.constant dense<2> : tensor<4x6xi32>
  %i = stablehlo.iota dim = 0 : tensor<4x6xi32>
  %j = stablehlo.iota dim = 1 : tensor<4x6xi32>
  %first = stablehlo.subtract %i, %reach : tensor<4x6xi32>
  %after = stablehlo.compare GT, %j, %first : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
  %before = stablehlo.compare LE, %j, %i : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
  %kept = stablehlo.and %before, %after : tensor<4x6xi1>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = stablehlo.select %kept, %s0, %lows : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}
