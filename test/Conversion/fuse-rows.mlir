// Fusion of rows for a processor. Softmax, layer norm, its gradient and
// cross-entropy become a kernel each. What needs other rows or walks across
// them stays apart, and so do rows that are too short, or too long for their
// number or for a cache. One run compares the kernels, the other the remarks:
// what is fused, and why the rest is not.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops,whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows))' -split-input-file | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops,whale-stablehlo-to-linalg,whale-fuse-kernels,whale-fuse-rows{remarks}))' -split-input-file -verify-diagnostics -o /dev/null

// Softmax: the maximum, the exponentials with their sum, and the quotients. The
// last are written over the operand; the rest is on the stack.
// CHECK-LABEL: @softmax
// CHECK-NOT: linalg.generic
// CHECK: whale.kernel(%arg0) extent 48 {inplace = array<i64: 0>
// CHECK: ^bb0(%[[IN:[^:]*]]: memref<48x256xf32>, %[[OUT:[^:]*]]: memref<48x256xf32>, %[[BEGIN:[^:]*]]: index, %[[END:[^:]*]]: index):
// CHECK-DAG: memref.alloca() {{.*}} : memref<16xf32>
// CHECK-DAG: memref.alloca() {{.*}} : memref<4096xf32>
// CHECK: %[[ROWS:.*]] = arith.constant 16 : index
// CHECK: scf.for %[[BLOCK:.*]] = %[[BEGIN]] to %[[END]] step %[[ROWS]] {
// CHECK:   %[[NEXT:.*]] = arith.addi %[[BLOCK]], %[[ROWS]]
// CHECK:   %[[LAST:.*]] = arith.minui %[[NEXT]], %[[END]]
// CHECK:   scf.for %{{.*}} = %[[BLOCK]] to %[[LAST]]
// CHECK:     arith.maximumf
// CHECK:   scf.for %{{.*}} = %[[BLOCK]] to %[[LAST]]
// CHECK:     math.exp
// CHECK:   scf.for %{{.*}} = %[[BLOCK]] to %[[LAST]]
// CHECK:     arith.divf
// CHECK-NOT: linalg.generic
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
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %y = stablehlo.divide %e, %sb : tensor<48x256xf32>
  return %y : tensor<48x256xf32>
}

// -----

// Layer norm: the mean, which others need, is in a buffer; two row dimensions
// are one loop.
// CHECK-LABEL: @layer_norm
// CHECK: %[[NORM:.*]]:2 = whale.kernel(%arg0, %arg1) extent 12 {inplace = array<i64: -1, 0>
// CHECK-SAME: (tensor<3x4x64xf32>, tensor<64xf32>) -> (tensor<3x4xf32>, tensor<3x4x64xf32>)
// CHECK: return %[[NORM]]#1, %[[NORM]]#0
func.func @layer_norm(%x: tensor<3x4x64xf32>, %g: tensor<64xf32>)
    -> (tensor<3x4x64xf32>, tensor<3x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<64.0> : tensor<3x4xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<3x4x64xf32>, tensor<f32>) -> tensor<3x4xf32>
  %m = stablehlo.divide %s, %n : tensor<3x4xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1]
      : (tensor<3x4xf32>) -> tensor<3x4x64xf32>
  %c = stablehlo.subtract %x, %mb : tensor<3x4x64xf32>
  %q = stablehlo.multiply %c, %c : tensor<3x4x64xf32>
  %v = stablehlo.reduce(%q init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<3x4x64xf32>, tensor<f32>) -> tensor<3x4xf32>
  %r = stablehlo.rsqrt %v : tensor<3x4xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0, 1]
      : (tensor<3x4xf32>) -> tensor<3x4x64xf32>
  %gb = stablehlo.broadcast_in_dim %g, dims = [2]
      : (tensor<64xf32>) -> tensor<3x4x64xf32>
  %y = stablehlo.multiply %c, %rb : tensor<3x4x64xf32>
  // expected-remark @below {{one kernel for 4 loops over rows}}
  %z = stablehlo.multiply %y, %gb : tensor<3x4x64xf32>
  return %z, %m : tensor<3x4x64xf32>, tensor<3x4xf32>
}

// -----

// The sums of columns of a scale's gradient stay apart.
// CHECK-LABEL: @columns
// CHECK-NOT: whale.kernel
func.func @columns(%x: tensor<48x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x64xf32>, tensor<f32>) -> tensor<48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x64xf32>
  %y = stablehlo.subtract %x, %b : tensor<48x64xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: its first loops are not those rows}}
  %columns = stablehlo.reduce(%y init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<48x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %columns : tensor<64xf32>
}

// -----

// The gradient of a layer norm: the row dimensions of a mask that has one of
// them alone are two loops; a reshape and a sum of one term in between disappear.
// CHECK-LABEL: @gradient
// CHECK-NOT: stablehlo.reshape
// CHECK: whale.kernel({{.*}}) extent 3
// CHECK: scf.for %[[OUTER:.*]] = %{{.*}} to %{{.*}} step
// CHECK: scf.for %[[BLOCK:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NOT: linalg.generic
func.func @gradient(%x: tensor<3x4x64xf32>, %mask: tensor<4x64xf32>)
    -> tensor<3x4x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %maskb = stablehlo.broadcast_in_dim %mask, dims = [1, 2]
      : (tensor<4x64xf32>) -> tensor<3x4x64xf32>
  %a = stablehlo.multiply %x, %maskb : tensor<3x4x64xf32>
  %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<3x4x64xf32>, tensor<f32>) -> tensor<3x4xf32>
  %r = stablehlo.reshape %s : (tensor<3x4xf32>) -> tensor<3x4x1xf32>
  %t = stablehlo.reduce(%r init: %zero) applies stablehlo.add
      across dimensions = [2]
      : (tensor<3x4x1xf32>, tensor<f32>) -> tensor<3x4xf32>
  %b = stablehlo.broadcast_in_dim %t, dims = [0, 1]
      : (tensor<3x4xf32>) -> tensor<3x4x64xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %y = stablehlo.subtract %a, %b : tensor<3x4x64xf32>
  return %y : tensor<3x4x64xf32>
}

// -----

// Cross-entropy with a gather: the logit of the label is read where it is, and
// the mean over all rows stays apart.
// CHECK-LABEL: @cross_entropy
// CHECK: whale.kernel({{.*}}) extent 8
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}"reduction"
func.func @cross_entropy(%x: tensor<8x64xf32>, %labels: tensor<8x1xi32>)
    -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<8xf32>) -> tensor<8x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x64xf32>
  %e = stablehlo.exponential %d : tensor<8x64xf32>
  // expected-remark @below {{one kernel for 3 loops over rows}}
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  %l = stablehlo.log %s : tensor<8xf32>
  %g = "stablehlo.gather"(%d, %labels) {
      dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
          operand_batching_dims = [0], start_indices_batching_dims = [0],
          start_index_map = [1], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 1>}
      : (tensor<8x64xf32>, tensor<8x1xi32>) -> tensor<8xf32>
  %n = stablehlo.subtract %l, %g : tensor<8xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: its first loops are not those rows}}
  %loss = stablehlo.reduce(%n init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What needs other rows is not fused.
// CHECK-LABEL: @other_rows
// CHECK-NOT: whale.kernel
func.func @other_rows(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1]
      : (tensor<64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: it needs more than its row of theirs}}
  %y = stablehlo.subtract %x, %b : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// Nor what is read across the rows.
// CHECK-LABEL: @transposed
// CHECK-NOT: whale.kernel
func.func @transposed(%x: tensor<48x64xf32>, %z: tensor<64x48xf32>)
    -> tensor<48x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x64xf32>, tensor<f32>) -> tensor<48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x64xf32>
  %t = stablehlo.transpose %z, dims = [1, 0]
      : (tensor<64x48xf32>) -> tensor<48x64xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: it walks across the rows in memory}}
  %y = stablehlo.subtract %t, %b : tensor<48x64xf32>
  return %y : tensor<48x64xf32>
}

// -----

// Nor short rows.
// CHECK-LABEL: @short
// CHECK-NOT: whale.kernel
func.func @short(%x: tensor<48x31xf32>) -> tensor<48x31xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<48x31xf32>, tensor<f32>) -> tensor<48xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<48xf32>) -> tensor<48x31xf32>
  %y = stablehlo.subtract %x, %b : tensor<48x31xf32>
  return %y : tensor<48x31xf32>
}

// -----

// Long rows are one kernel if there are many, and no more of one is kept on the
// stack than fits.
// CHECK-LABEL: @long
// CHECK: whale.kernel
func.func @long(%x: tensor<128x50257xf32>) -> tensor<128x50257xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x50257xf32>, tensor<f32>) -> tensor<128xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<128xf32>) -> tensor<128x50257xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %y = stablehlo.subtract %x, %b : tensor<128x50257xf32>
  return %y : tensor<128x50257xf32>
}

// -----

// CHECK-LABEL: @few
// CHECK-NOT: whale.kernel
func.func @few(%x: tensor<127x50257xf32>) -> tensor<127x50257xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<127x50257xf32>, tensor<f32>) -> tensor<127xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<127xf32>) -> tensor<127x50257xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: its rows are long, and few}}
  %y = stablehlo.subtract %x, %b : tensor<127x50257xf32>
  return %y : tensor<127x50257xf32>
}

// -----

// Nor rows that do not fit a cache.
// CHECK-LABEL: @longer
// CHECK-NOT: whale.kernel
func.func @longer(%x: tensor<128x600000xf32>) -> tensor<128x600000xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x600000xf32>, tensor<f32>) -> tensor<128xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<128xf32>) -> tensor<128x600000xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: a row does not fit a cache}}
  %y = stablehlo.subtract %x, %b : tensor<128x600000xf32>
  return %y : tensor<128x600000xf32>
}

// -----

// CHECK-LABEL: @stack
// CHECK: whale.kernel
// CHECK: linalg.generic
func.func @stack(%x: tensor<128x300000xf32>) -> tensor<128x300000xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum
      across dimensions = [1]
      : (tensor<128x300000xf32>, tensor<f32>) -> tensor<128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0]
      : (tensor<128xf32>) -> tensor<128x300000xf32>
  %d = stablehlo.subtract %x, %mb : tensor<128x300000xf32>
  %e = stablehlo.exponential %d : tensor<128x300000xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<128x300000xf32>, tensor<f32>) -> tensor<128xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<128xf32>) -> tensor<128x300000xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: a row does not fit the stack}}
  %y = stablehlo.divide %e, %sb : tensor<128x300000xf32>
  return %y : tensor<128x300000xf32>
}

// -----

// What needs a product of the rows comes after it.
// CHECK-LABEL: @product_between
// CHECK: whale.kernel
// CHECK: whale.matmul
// CHECK: linalg.generic
// CHECK-NOT: whale.kernel
func.func @product_between(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{one kernel for 2 loops over rows}}
  %d = stablehlo.subtract %x, %b : tensor<64x64xf32>
  %p = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{not one kernel with the rows that it reads: it needs what another operation makes of theirs}}
  %y = stablehlo.subtract %p, %b : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// Nothing is there to be fused.
// CHECK-LABEL: @empty
// CHECK-NOT: whale.kernel
func.func @empty(%x: tensor<0x64xf32>) -> tensor<0x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [1]
      : (tensor<0x64xf32>, tensor<f32>) -> tensor<0xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0]
      : (tensor<0xf32>) -> tensor<0x64xf32>
  %y = stablehlo.subtract %x, %b : tensor<0x64xf32>
  return %y : tensor<0x64xf32>
}
