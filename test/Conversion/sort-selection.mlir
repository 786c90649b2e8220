// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg),whale-outline-kernels)' -split-input-file | FileCheck %s

// The first 5 of 1000, and of the positions the first 3: the kernel gives 5 of
// both, keeps 10 positions and reads no positions.

// CHECK-LABEL: func.func @top
// CHECK-SAME: (%[[X:.*]]: tensor<64x1000xf32>)
// CHECK: %[[R:.*]]:2 = whale.launch @k0(%[[X]]) {{.*}} -> (tensor<64x5xf32>, tensor<64x5xi32>)
// CHECK-LABEL: func.func @k0(%{{[^:]*}}: memref<64x1000xf32>, %{{[^:]*}}: memref<64x5xf32>, %{{[^:]*}}: memref<64x5xi32>
// CHECK-COUNT-2: memref.alloc() : memref<10xindex>
func.func @top(%x: tensor<64x1000xf32>)
    -> (tensor<64x5xf32>, tensor<64x3xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<64x1000xi32>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.compare GT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<64x1000xf32>, tensor<64x1000xi32>)
      -> (tensor<64x1000xf32>, tensor<64x1000xi32>)
  %values = stablehlo.slice %0#0 [0:64, 0:5]
      : (tensor<64x1000xf32>) -> tensor<64x5xf32>
  %indices = stablehlo.slice %0#1 [0:64, 0:3]
      : (tensor<64x1000xi32>) -> tensor<64x3xi32>
  return %values, %indices : tensor<64x5xf32>, tensor<64x3xi32>
}

// -----

// More than a quarter, the last ones, or some lines: the whole sort.

// CHECK-LABEL: func.func @whole
// CHECK: whale.launch {{.*}} -> tensor<4x20xf32>
// CHECK: whale.launch {{.*}} -> tensor<4x20xf32>
// CHECK: whale.launch {{.*}} -> tensor<4x20xf32>
func.func @whole(%x: tensor<4x20xf32>, %y: tensor<4x20xf32>,
                 %z: tensor<4x20xf32>)
    -> (tensor<4x6xf32>, tensor<4x2xf32>, tensor<2x2xf32>) {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x20xf32>) -> tensor<4x20xf32>
  %2 = "stablehlo.sort"(%y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x20xf32>) -> tensor<4x20xf32>
  %3 = "stablehlo.sort"(%z) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x20xf32>) -> tensor<4x20xf32>
  %4 = stablehlo.slice %0 [0:4, 0:6] : (tensor<4x20xf32>) -> tensor<4x6xf32>
  %5 = stablehlo.slice %2 [0:4, 18:20] : (tensor<4x20xf32>) -> tensor<4x2xf32>
  %6 = stablehlo.slice %3 [0:2, 0:2] : (tensor<4x20xf32>) -> tensor<2x2xf32>
  return %4, %5, %6 : tensor<4x6xf32>, tensor<4x2xf32>, tensor<2x2xf32>
}

// -----

// Without a dimension it is the last one.

// CHECK-LABEL: func.func @last
// CHECK: whale.launch {{.*}} -> tensor<4x20xf32>
// CHECK: whale.launch {{.*}} -> tensor<4x3xf32>
func.func @last(%x: tensor<4x20xf32>, %y: tensor<4x20xf32>)
    -> (tensor<4x20xf32>, tensor<4x3xf32>) {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x20xf32>) -> tensor<4x20xf32>
  %2 = "stablehlo.sort"(%y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x20xf32>) -> tensor<4x20xf32>
  %3 = stablehlo.slice %2 [0:4, 0:3] : (tensor<4x20xf32>) -> tensor<4x3xf32>
  return %0, %3 : tensor<4x20xf32>, tensor<4x3xf32>
}
