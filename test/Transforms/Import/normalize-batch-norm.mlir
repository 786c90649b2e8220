// RUN: whale-opt %s -whale-normalize | FileCheck %s

// CHECK-LABEL: func.func @training
// CHECK-NOT:     batch_norm
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [0, 2] : (tensor<4x2x3xf32>, tensor<f32>) -> tensor<2xf32>
// CHECK:         dense<1.200000e+01> : tensor<2xf32>
func.func @training(%x: tensor<4x2x3xf32>, %scale: tensor<2xf32>, %offset: tensor<2xf32>) -> (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>) {
  %y, %mean, %var = "stablehlo.batch_norm_training"(%x, %scale, %offset) {epsilon = 0.01 : f32, feature_index = 1 : i64} : (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return %y, %mean, %var : tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>
}

// Half precision is computed in single and rounded once.
// CHECK-LABEL: func.func @half
// CHECK-NOT:     batch_norm
// CHECK:         stablehlo.convert %arg0 : (tensor<4x2xbf16>) -> tensor<4x2xf32>
// CHECK:         stablehlo.convert {{.*}} : (tensor<4x2xf32>) -> tensor<4x2xbf16>
// CHECK-NOT:     tensor<4x2xbf16>
// CHECK:         return
func.func @half(%x: tensor<4x2xbf16>, %f: tensor<2xbf16>) -> tensor<4x2xbf16> {
  %y = "stablehlo.batch_norm_inference"(%x, %f, %f, %f, %f) {epsilon = 0.01 : f32, feature_index = 1 : i64} : (tensor<4x2xbf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xbf16>) -> tensor<4x2xbf16>
  return %y : tensor<4x2xbf16>
}

// CHECK-LABEL: func.func @dot
// CHECK:         stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
func.func @dot(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  %0 = stablehlo.dot %x, %y, precision = [HIGH, HIGH] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
