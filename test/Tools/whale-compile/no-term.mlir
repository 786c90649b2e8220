// RUN: whale-compile %s --cluster=4 --target=none -o %t.whale --dump-phases-to=%t.phases
// RUN: FileCheck %s --input-file=%t.phases/04-partitioned.mlir

// Two micro-batches of one sample are those of two devices; the others have
// none of the terms of the sum, and give zero, of a complex number too.

// CHECK: whale.schedule {{.*}}@rank_class_1
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<4xcomplex<f32>>
// CHECK: whale.all_reduce %[[ZERO]]
module attributes {whale.config = {num_micro_batch = 2 : i64},
                   whale.default_strategy = #whale.replicate} {
  func.func @main(%x: tensor<2x8xcomplex<f32>> {whale.batch_dim = 0 : i64},
                  %w: tensor<8x4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
    %ones = stablehlo.constant dense<(1.0, 0.0)> : tensor<2xcomplex<f32>>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<2x8xcomplex<f32>>, tensor<8x4xcomplex<f32>>)
        -> tensor<2x4xcomplex<f32>>
    %1 = stablehlo.dot_general %ones, %0, contracting_dims = [0] x [0]
        : (tensor<2xcomplex<f32>>, tensor<2x4xcomplex<f32>>)
        -> tensor<4xcomplex<f32>>
    return %1 : tensor<4xcomplex<f32>>
  }
}
