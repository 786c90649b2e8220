// With +plan, of which no code is written, a kernel of rows is the same but for
// its body, which stays empty: what it takes, gives, overwrites and costs is
// there.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=cpu+plan},whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows{target=cpu+plan}))' | FileCheck %s --check-prefixes=CHECK,EMPTY
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops,whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows))' | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: not whale-opt %s -pass-pipeline='builtin.module(func.func(whale-fuse-rows{target=cpu+plan+plan}))' 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: 'cpu+plan+plan' is no target

// CHECK: whale.kernel(%arg0) extent 48 {inplace = array<i64: 0>, whale.bytes = 98304 : i64, whale.class = "reduction", whale.flops = 61440 : i64, whale.parallel}
// EMPTY: ^bb0
// EMPTY-NEXT: }
// FULL: scf.for
func.func @softmax(%x: tensor<48x256xf32>) -> tensor<48x256xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  %d = stablehlo.subtract %x, %mb : tensor<48x256xf32>
  %e = stablehlo.exponential %d : tensor<48x256xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x256xf32>, tensor<f32>) -> tensor<48xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x256xf32>
  %y = stablehlo.divide %e, %sb : tensor<48x256xf32>
  return %y : tensor<48x256xf32>
}
