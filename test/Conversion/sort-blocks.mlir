// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_80}),whale-outline-kernels{target=sm_80})' -split-input-file | FileCheck %s

// A line of a block: runs are merged in shared memory, between barriers.

// CHECK-LABEL: func.func @short
// CHECK: whale.launch @k0(%arg0)
// CHECK-LABEL: func.func @k0
// CHECK-SAME: whale.extent = 64 : i64, {{.*}}whale.threads = 256 : i64
// CHECK: memref.alloca() : memref<2048xi32, #gpu.address_space<workgroup>>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c10
// CHECK: gpu.barrier
// CHECK-NOT: memref.alloc()
func.func @short(%x: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// -----

// A longer line: parts of 1024, then a kernel for runs of 1024 and one for runs
// of 2048, the last of which writes the values.

// CHECK-LABEL: func.func @long
// CHECK: %[[A:.*]] = whale.launch @k0(%arg0, %arg1) {{.*}} -> tensor<2x3000xi32>
// CHECK: %[[B:.*]] = whale.launch @k1(%arg0, %arg1, %[[A]]) {{.*}} -> tensor<2x3000xi32>
// CHECK: whale.launch @k2(%arg0, %arg1, %[[B]]) {{.*}} -> (tensor<3000x2xf32>, tensor<3000x2xi8>)
// CHECK-LABEL: func.func @k0
// CHECK-SAME: whale.extent = 6 : i64, {{.*}}whale.threads = 256 : i64
// CHECK-LABEL: func.func @k1
// CHECK-SAME: whale.extent = 6000 : i64, whale.flops = 6000 : i64}
// CHECK-LABEL: func.func @k2
// CHECK-SAME: whale.extent = 6000 : i64, whale.flops = 6000 : i64}
func.func @long(%x: tensor<3000x2xf32>, %y: tensor<3000x2xi8>)
    -> (tensor<3000x2xf32>, tensor<3000x2xi8>) {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i8>, %d: tensor<i8>):
    %1 = stablehlo.compare LT, %a, %b
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<3000x2xf32>, tensor<3000x2xi8>)
      -> (tensor<3000x2xf32>, tensor<3000x2xi8>)
  return %0#0, %0#1 : tensor<3000x2xf32>, tensor<3000x2xi8>
}
