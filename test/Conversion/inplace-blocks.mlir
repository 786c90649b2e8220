// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels), \
// RUN:   whale-outline-kernels{target=sm_80})" | FileCheck %s

// Threads combine these terms by shuffles, without a barrier: one that is done
// must not store where others may still read.

// CHECK-LABEL: func.func @main_144(
// CHECK: %[[MOST:.*]] = whale.launch @k0(
// CHECK: whale.launch @k1(%{{.*}}, %[[MOST]]) : (
func.func @main_144(%x: tensor<144xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %high = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [0] : (tensor<144xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = []
      : (tensor<f32>) -> tensor<144xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<144xf32>
  %3 = stablehlo.reduce(%2 init: %high) applies stablehlo.minimum
      across dimensions = [0] : (tensor<144xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// With a barrier it may.

// CHECK-LABEL: func.func @main_2000(
// CHECK: %[[MOST:.*]] = whale.launch @k2(
// CHECK: whale.launch @k3(%{{.*}}, %[[MOST]]) {inplace = array<i64: 1>}
func.func @main_2000(%x: tensor<2000xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %high = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [0] : (tensor<2000xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = []
      : (tensor<f32>) -> tensor<2000xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<2000xf32>
  %3 = stablehlo.reduce(%2 init: %high) applies stablehlo.minimum
      across dimensions = [0] : (tensor<2000xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// Partial results have another shape than the number that they are made with.

// CHECK-LABEL: func.func @main_40000(
// CHECK: %[[MOST:.*]] = whale.launch @k5(
// CHECK: whale.launch @k6(%{{.*}}, %[[MOST]]) : ({{.*}}) -> tensor<5xf32>
func.func @main_40000(%x: tensor<40000xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %high = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [0] : (tensor<40000xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = []
      : (tensor<f32>) -> tensor<40000xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<40000xf32>
  %3 = stablehlo.reduce(%2 init: %high) applies stablehlo.minimum
      across dimensions = [0] : (tensor<40000xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
