// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels{target=sm_80}, \
// RUN:   whale-fuse-rows{target=sm_80}),whale-outline-kernels{target=sm_80}, \
// RUN:   whale-check-threads)" -split-input-file | FileCheck %s

// As many blocks for a result as leave each thread 4,096 terms.

// CHECK-LABEL: func.func @rows
// CHECK: %[[PARTS:.*]] = whale.launch @k0(%arg0) {{.*}} -> tensor<3x128xf32>
// CHECK: whale.launch @k1(%[[PARTS]]
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 384 : i64
func.func @rows(%x: tensor<128x6000000xf32>) -> tensor<128xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x6000000xf32>, tensor<f32>) -> tensor<128xf32>
  return %0 : tensor<128xf32>
}

// -----

// CHECK-LABEL: func.func @columns
// CHECK: %[[PARTS:.*]] = whale.launch @k0(%arg0) {{.*}} -> tensor<4x50257xf32>
// CHECK: whale.launch @k1(%[[PARTS]]
func.func @columns(%x: tensor<100000x50257xf32>) -> tensor<50257xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<100000x50257xf32>, tensor<f32>) -> tensor<50257xf32>
  return %0 : tensor<50257xf32>
}

// -----

// No block walks rows of two million elements several times.

// CHECK-LABEL: func.func @fused
// CHECK-COUNT-2: whale.launch
// CHECK-NOT: whale.launch
func.func @fused(%x: tensor<128x2000000xi8>) -> tensor<128x2000000xi8> {
  %low = stablehlo.constant dense<-128> : tensor<i8>
  %high = stablehlo.constant dense<127> : tensor<i8>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<128x2000000xi8>, tensor<i8>) -> tensor<128xi8>
  %1 = stablehlo.reduce(%x init: %high) applies stablehlo.minimum
      across dimensions = [1]
      : (tensor<128x2000000xi8>, tensor<i8>) -> tensor<128xi8>
  %2 = stablehlo.broadcast_in_dim %0, dims = [0]
      : (tensor<128xi8>) -> tensor<128x2000000xi8>
  %3 = stablehlo.broadcast_in_dim %1, dims = [0]
      : (tensor<128xi8>) -> tensor<128x2000000xi8>
  %4 = stablehlo.subtract %x, %2 : tensor<128x2000000xi8>
  %5 = stablehlo.multiply %4, %3 : tensor<128x2000000xi8>
  return %5 : tensor<128x2000000xi8>
}

// -----

// Numbers of four bits are added in several operations: by threads all the same.

// CHECK-LABEL: func.func @narrow
// CHECK: func.func @k0
// CHECK-SAME: whale.threads
func.func @narrow(%x: tensor<128x10000xi4>) -> tensor<128xi4> {
  %zero = stablehlo.constant dense<0> : tensor<i4>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x10000xi4>, tensor<i4>) -> tensor<128xi4>
  return %0 : tensor<128xi4>
}
