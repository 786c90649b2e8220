// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_80}),whale-outline-kernels{target=sm_80},whale-check-threads)' \
// RUN:   -split-input-file | FileCheck %s

// Totals of 16 steps of 100, what is before each of the 7, the results.

// CHECK-LABEL: func.func @sum
// CHECK: %[[TOTALS:.*]] = whale.launch @k0(%arg0) {{.*}} -> tensor<3x7x2xf64>
// CHECK: %[[BEFORE:.*]] = whale.launch @k1(%[[TOTALS]], %{{.*}}) {{.*}} -> tensor<3x7x2xf64>
// CHECK: whale.launch @k2(%arg0, %[[BEFORE]]) {{.*}} -> tensor<3x100x2xf32>
// CHECK: func.func @k0{{.*}}whale.extent = 42 : i64
// CHECK: func.func @k1{{.*}}whale.extent = 6 : i64
// CHECK: func.func @k2{{.*}}whale.extent = 42 : i64
func.func @sum(%x: tensor<3x100x2xf32>) -> tensor<3x100x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{
      padding = dense<[[0, 0], [99, 0], [0, 0]]> : tensor<3x2xi64>,
      window_dimensions = array<i64: 1, 100, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x100x2xf32>, tensor<f32>) -> tensor<3x100x2xf32>
  return %0 : tensor<3x100x2xf32>
}

// -----

// Windows that overlap: a thread for each of 3 x 9 elements.

// CHECK-LABEL: func.func @pool
// CHECK: %[[CHOSEN:.*]] = whale.launch @k0(%arg0) {{.*}} -> tensor<
// CHECK: whale.launch @k1(%[[CHOSEN]], %arg1
// CHECK: func.func @k1{{.*}}whale.extent = 27 : i64
func.func @pool(%x: tensor<3x9xf32>, %y: tensor<3x4xf32>) -> tensor<3x9xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %y, %zero) <{
      window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x9xf32>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x9xf32>
  return %0 : tensor<3x9xf32>
}
