// RUN: whale-opt %s "-pass-pipeline=builtin.module(func.func( \
// RUN:   whale-stablehlo-to-linalg{target=sm_80},whale-fuse-kernels), \
// RUN:   whale-outline-kernels{target=sm_80})" | FileCheck %s

// Sums of columns that read the same tensor are one kernel, which also stores
// what the second of them reads; then the partial sums of both are one more.
// CHECK-LABEL: func.func @main(
// CHECK: %[[MADE:.*]]:3 = whale.launch @{{.*}}(%arg1, %arg0, %arg2)
// CHECK-SAME: -> (tensor<4096x128xf32>, tensor<[[CHUNKS:[0-9]+]]x128xf32>, tensor<[[CHUNKS]]x128xf32>)
// CHECK: whale.launch @{{.*}}(%[[MADE]]#1, %[[MADE]]#2) : {{.*}} -> (tensor<128xf32>, tensor<128xf32>)
// CHECK-NOT: whale.launch
// CHECK: return
func.func @main(%dy: tensor<4096x128xf32>, %x: tensor<4096x128xf32>,
                %mean: tensor<128xf32>)
    -> (tensor<128xf32>, tensor<128xf32>, tensor<4096x128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4096x128xf32>
  %c = stablehlo.compare GT, %x, %zeros
      : (tensor<4096x128xf32>, tensor<4096x128xf32>) -> tensor<4096x128xi1>
  %d = stablehlo.select %c, %dy, %zeros
      : tensor<4096x128xi1>, tensor<4096x128xf32>
  %0 = stablehlo.reduce(%d init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<4096x128xf32>, tensor<f32>) -> tensor<128xf32>
  %m = stablehlo.broadcast_in_dim %mean, dims = [1]
      : (tensor<128xf32>) -> tensor<4096x128xf32>
  %1 = stablehlo.subtract %x, %m : tensor<4096x128xf32>
  %2 = stablehlo.multiply %d, %1 : tensor<4096x128xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<4096x128xf32>, tensor<f32>) -> tensor<128xf32>
  return %0, %3, %d
      : tensor<128xf32>, tensor<128xf32>, tensor<4096x128xf32>
}

// A variance about the mean needs the mean first.
// CHECK-LABEL: func.func @main_variance(
// CHECK-COUNT-4: whale.launch
func.func @main_variance(%x: tensor<4096x128xf32>)
    -> (tensor<128xf32>, tensor<128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<4096x128xf32>, tensor<f32>) -> tensor<128xf32>
  %m = stablehlo.broadcast_in_dim %0, dims = [1]
      : (tensor<128xf32>) -> tensor<4096x128xf32>
  %1 = stablehlo.subtract %x, %m : tensor<4096x128xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<4096x128xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<4096x128xf32>, tensor<f32>) -> tensor<128xf32>
  return %0, %3 : tensor<128xf32>, tensor<128xf32>
}

// An update of a parameter joins what reads its gradient, unless the parameter
// is read later: its result could not be stored in the parameter's place.
// CHECK-LABEL: func.func @main_update(
// CHECK: %[[BOTH:.*]]:2 = whale.launch @{{.*}}(%arg2, %arg0)
// CHECK: return %{{.*}}, %[[BOTH]]#1
func.func @main_update(%p: tensor<4096x8xf32>, %x: tensor<4096x8xf32>,
                       %g: tensor<4096x8xf32>)
    -> (tensor<4096x8xf32>, tensor<4096x8xf32>) {
  %0 = stablehlo.exponential %g : tensor<4096x8xf32>
  %1 = stablehlo.subtract %p, %g : tensor<4096x8xf32>
  %2 = stablehlo.dot_general %0, %x, contracting_dims = [0] x [0]
      : (tensor<4096x8xf32>, tensor<4096x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0]
      : (tensor<4096x8xf32>, tensor<8x8xf32>) -> tensor<4096x8xf32>
  return %3, %1 : tensor<4096x8xf32>, tensor<4096x8xf32>
}

// CHECK-LABEL: func.func @main_read_later(
// CHECK: whale.launch @{{.*}}(%arg2) {{.*}} : (tensor<4096x8xf32>) -> tensor<4096x8xf32>
// CHECK: %[[UPDATE:.*]] = whale.launch @{{.*}}(%arg0, %arg2)
// CHECK: return %{{.*}}, %[[UPDATE]]
func.func @main_read_later(%p: tensor<4096x8xf32>, %x: tensor<4096x8xf32>,
                           %g: tensor<4096x8xf32>)
    -> (tensor<4096x8xf32>, tensor<4096x8xf32>) {
  %0 = stablehlo.exponential %g : tensor<4096x8xf32>
  %1 = stablehlo.subtract %p, %g : tensor<4096x8xf32>
  %2 = stablehlo.dot_general %0, %x, contracting_dims = [0] x [0]
      : (tensor<4096x8xf32>, tensor<4096x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.dot_general %p, %2, contracting_dims = [1] x [0]
      : (tensor<4096x8xf32>, tensor<8x8xf32>) -> tensor<4096x8xf32>
  return %3, %1 : tensor<4096x8xf32>, tensor<4096x8xf32>
}
