// The loop nests that become kernels, and their launches. Equal nests have to
// be one kernel. Judged by the order in which a nest visits memory and forms
// its sums, and by which operands a launch may overwrite: one too many would
// destroy a value that is still needed.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels),whale-outline-kernels)' -split-input-file | FileCheck %s

// The same loop is one kernel.
// CHECK-LABEL: @twice
// CHECK: whale.launch @k0(%arg0) {inplace = array<i64: 0>}
// CHECK: whale.launch @k0(%arg1) {inplace = array<i64: 0>}
// CHECK: module @kernels
// CHECK: func.func @k0(%arg0: memref<4x8xf32>, %arg1: memref<4x8xf32>, %arg2: index, %arg3: index)
// CHECK-SAME: whale.extent = 32 : i64
// CHECK: scf.for {{.*}} = %arg2 to %arg3
// CHECK-NOT: func.func @k1
func.func @twice(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.negate %a : tensor<4x8xf32>
  %1 = stablehlo.negate %b : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A sum along lines is carried in a register.
// CHECK-LABEL: @row_sum
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 4 : i64
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.store
func.func @row_sum(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A sum of lines is added line by line, so that the inner loop is contiguous.
// CHECK-LABEL: @column_sum
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 8 : i64
// CHECK: scf.for {{.*}} = %arg2 to %arg3
// CHECK: scf.for
// CHECK: scf.for {{.*}} = %arg2 to %arg3
func.func @column_sum(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What flows between launches keeps the sign that others see; i1 is a byte.
// CHECK-LABEL: @types
// CHECK-NOT: unrealized_conversion_cast
// CHECK: whale.launch @k0({{.*}}) {{.*}}: (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
// CHECK: func.func @k0(%arg0: memref<8xi8>, %arg1: memref<8xi8>, %arg2: memref<8xi8>
func.func @types(%a: tensor<8xui8>, %b: tensor<8xui8>) -> tensor<8xi1> {
  %0 = stablehlo.compare LT, %a, %b, UNSIGNED
      : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}

// -----

// A transposition walks tiles of a line of memory each way, copied line by line
// to where their columns are near.
// CHECK-LABEL: @transposition
// CHECK: func.func @k0(%[[IN:.*]]: memref<48x130xf32>, %[[OUT:.*]]: memref<130x48xf32>
// Tiles of 16 rows of the result, of which the last is smaller.
// CHECK-SAME: whale.extent = 9 : i64
// CHECK: %[[TILE:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: scf.for {{.*}} = %arg2 to %arg3
// CHECK: arith.minui
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store {{.*}}, %[[TILE]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load %[[TILE]]
// CHECK: arith.negf
// CHECK: memref.store
func.func @transposition(%x: tensor<48x130xf32>) -> tensor<130x48xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<48x130xf32>) -> tensor<130x48xf32>
  %1 = stablehlo.negate %0 : tensor<130x48xf32>
  return %1 : tensor<130x48xf32>
}

// -----

// A sum of many terms is formed in blocks of 16, the sums of 16 blocks in
// blocks again; its elements are four vectors that are added in turn, of which
// halves are added in the end.
// CHECK-LABEL: @long_sum
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 1 : i64
// CHECK-COUNT-4: memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c4
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c16
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c16
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c64
// CHECK-COUNT-8: arith.addf
// CHECK: vector.load {{.*}} : memref<64xf32>, vector<64xf32>
// CHECK-COUNT-6: arith.addf {{.*}} vector
func.func @long_sum(%x: tensor<1048576xf32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [0] : (tensor<1048576xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Where one of the results is no sum, none is summed in an order of its own.
// CHECK-LABEL: @sum_and_difference
// CHECK: func.func @k0
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c32{{.*}} iter_args
// CHECK: arith.addf
// CHECK: arith.subi
func.func @sum_and_difference(%x: tensor<4x32xf32>, %y: tensor<4x32xi32>)
    -> (tensor<4xf32>, tensor<4xi32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = [1]
      : (tensor<4x32xf32>, tensor<4x32xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<4xf32>, tensor<4xi32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>)
             (%p: tensor<i32>, %q: tensor<i32>) {
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.subtract %p, %q : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// Terms of an operand that lacks a dimension are computed line by line, and
// added in the order of the sum without it.
// CHECK-LABEL: @broadcast_sum
// CHECK: func.func @k0
// CHECK: %[[TERMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: arith.mulf
// CHECK: memref.store {{.*}}, %[[TERMS]]
// CHECK: memref.load %[[TERMS]]
// CHECK: arith.addf
func.func @broadcast_sum(%x: tensor<500x10xf32>, %b: tensor<10xf32>)
    -> tensor<f32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %b, dims = [1]
      : (tensor<10xf32>) -> tensor<500x10xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<500x10xf32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add
      across dimensions = [0, 1] : (tensor<500x10xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Beside a sum of lines, what is kept of each element is stored on the way.
// CHECK-LABEL: @kept_column_sum
// CHECK: whale.launch @k0(%arg0) {inplace = array<i64: 0, -1>}
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 8 : i64
// CHECK: %[[BLOCK:.*]] = memref.alloca() {{.*}} : memref<8xf32>
// CHECK: scf.for {{.*}} = %arg3 to %arg4
// CHECK: math.absf
// CHECK: memref.store {{.*}} : memref<3200xf32>
// CHECK: memref.store {{.*}}, %[[BLOCK]]
func.func @kept_column_sum(%x: tensor<400x8xf32>)
    -> (tensor<8xf32>, tensor<400x8xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<400x8xf32>
  %1 = stablehlo.abs %0 : tensor<400x8xf32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add
      across dimensions = [0]
      : (tensor<400x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %2, %1 : tensor<8xf32>, tensor<400x8xf32>
}

// -----

// The next value of an argument reuses its buffer, not whichever operand
// comes first.
// CHECK-LABEL: @state
// CHECK: whale.launch @k0(%arg1, %arg0) {inplace = array<i64: 1>}
func.func @state(%w: tensor<8xf32> {whale.donated, whale.fed_by = 0 : i64},
                 %g: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %g, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A small operand does not decide what the inner loop of a sum is.
// CHECK-LABEL: @votes
// CHECK: func.func @k0
// CHECK-SAME: whale.extent = 8 : i64
// CHECK: scf.for {{.*}} = %{{.*}} to %c64
// CHECK: memref.store
func.func @votes(%x: tensor<16x8x64xf32>, %a: tensor<16x8xf32>,
                 %b: tensor<16x8xf32>, %c: tensor<16x8xf32>)
    -> tensor<8x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1]
      : (tensor<16x8xf32>) -> tensor<16x8x64xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0, 1]
      : (tensor<16x8xf32>) -> tensor<16x8x64xf32>
  %2 = stablehlo.add %x, %0 : tensor<16x8x64xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<16x8x64xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<16x8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  return %4 : tensor<8x64xf32>
}

// -----

// A large constant of one value is written into the buffers that want it; a
// small one is stored.
// CHECK-LABEL: @large_constant
// CHECK-DAG: %[[FILL:.*]] = whale.launch @{{.*}}() : () -> tensor<64x128xf32>
// CHECK-DAG: %[[FILL2:.*]] = whale.launch @{{.*}}() : () -> tensor<64x128xf32>
// CHECK-DAG: %[[SMALL:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK: return
func.func @large_constant()
    -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<64x128xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<8xf32>
  return %0, %0, %1 : tensor<64x128xf32>, tensor<64x128xf32>, tensor<8xf32>
}

// -----

// The same of complex and unsigned numbers.
// CHECK-LABEL: @large_others
// CHECK: %[[C:.*]] = whale.launch @{{.*}}() : () -> tensor<64x128xcomplex<f32>>
// CHECK: %[[U:.*]] = whale.launch @{{.*}}() : () -> tensor<64x1024xui8>
// CHECK: return %[[C]], %[[U]]
// CHECK: complex.create
// CHECK: arith.constant -1 : i8
func.func @large_others()
    -> (tensor<64x128xcomplex<f32>>, tensor<64x1024xui8>) {
  %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<64x128xcomplex<f32>>
  %1 = stablehlo.constant dense<255> : tensor<64x1024xui8>
  return %0, %1 : tensor<64x128xcomplex<f32>>, tensor<64x1024xui8>
}

// -----

// A loop writes a slice into the tensor that is updated, at a place that is
// forced to be inside; a constant place needs no operand.
// CHECK-LABEL: @store_slice
// CHECK: whale.launch @k0(%arg0, %arg1, %arg2)
// CHECK-SAME: updates = array<i64: 1>
// CHECK: func.func @k0(%arg0: memref<1x8xf32>, %arg1: memref<4x16xf32>, %arg2: memref<i32>
// CHECK: arith.constant 8 : index
// CHECK: %[[C3:.*]] = arith.constant 3 : index
// CHECK: arith.minsi %{{.*}}, %[[C3]]
// CHECK: math.exp
// CHECK-NOT: func.func @k1
func.func @store_slice(%x: tensor<1x8xf32>, %stack: tensor<4x16xf32>,
    %i: tensor<ui32>) -> tensor<4x16xf32> {
  %c = stablehlo.constant dense<9> : tensor<ui32>
  %0 = stablehlo.exponential %x : tensor<1x8xf32>
  %1 = stablehlo.dynamic_update_slice %stack, %0, %i, %c
      : (tensor<4x16xf32>, tensor<1x8xf32>, tensor<ui32>, tensor<ui32>)
      -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

// -----

// One value is stored in two tensors by one loop.
// CHECK-LABEL: @store_twice
// CHECK: whale.launch @k0(%arg0, %arg1, %arg3, %arg2) {updates = array<i64: 1, 3>}
// CHECK-NOT: whale.launch
// CHECK: return
func.func @store_twice(%x: tensor<1x8xf32>, %a: tensor<4x8xf32>,
    %b: tensor<4x8xf32>, %i: tensor<i32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %a, %x, %i, %c
      : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
      -> tensor<4x8xf32>
  %2 = stablehlo.dynamic_update_slice %b, %x, %i, %c
      : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>)
      -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Of a tensor of which only a slice is read, that counts as bytes moved.
// CHECK-LABEL: @slice_bytes
// CHECK: func.func @k0(%arg0: memref<i32>, %arg1: memref<100x8xf32>
// CHECK-SAME: whale.bytes = 68
func.func @slice_bytes(%x: tensor<100x8xf32>, %i: tensor<i32>)
    -> tensor<1x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, %c, sizes = [1, 8]
      : (tensor<100x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  %1 = stablehlo.negate %0 : tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}

// -----

// The sum of nothing is a constant, with the sign that others want of it.
// CHECK-LABEL: @unsigned_sum_of_nothing
// CHECK: %[[C:.*]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK: return %[[C]] : tensor<ui32>
func.func @unsigned_sum_of_nothing(%x: tensor<0xui32>) -> tensor<ui32> {
  %c = stablehlo.constant dense<0> : tensor<ui32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [0] : (tensor<0xui32>, tensor<ui32>) -> tensor<ui32>
  return %0 : tensor<ui32>
}

// -----

// The sum starts from an element of a tensor that is read at a place that is
// computed: so no result overwrites that tensor, though it is read elementwise
// too.
// CHECK-LABEL: @start_captured
// CHECK: whale.launch @k0(%arg0, %arg1, %arg2) :
func.func @start_captured(%x: tensor<4x8xf32>, %y: tensor<4xf32>,
    %i: tensor<i32>) -> tensor<4xf32> {
  %s = stablehlo.dynamic_slice %y, %i, sizes = [1]
      : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
  %start = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %y, dims = [0]
      : (tensor<4xf32>) -> tensor<4x8xf32>
  %p = stablehlo.multiply %x, %b : tensor<4x8xf32>
  %0 = stablehlo.reduce(%p init: %start) across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    reducer(%a: tensor<f32>, %e: tensor<f32>) {
    %n = stablehlo.negate %a : tensor<f32>
    %m = stablehlo.maximum %n, %e : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Columns that are across memory are summed few at a time, so that each line of
// the cache is read once.
// CHECK-LABEL: @sums_across
// CHECK-COUNT-2: memref.alloca() {alignment = 64 : i64} : memref<32xf32>
// CHECK-COUNT-2: memref.alloca() {alignment = 64 : i64} : memref<256xf32>
func.func @sums_across(%x: tensor<256x64xf32>) -> tensor<256xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<256x64xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add
      across dimensions = [0]
      : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %1 : tensor<256xf32>
}
func.func @sums_along(%x: tensor<64x256xf32>) -> tensor<256xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [0]
      : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %1 : tensor<256xf32>
}

// -----

// Functions of what has come so far are computed for neighbouring rows at a
// time, along which no order matters.
// CHECK-LABEL: @chains(
// CHECK: func.func @k0(%{{.*}}: memref<96x200xf32>
// CHECK: scf.for
// CHECK: memref.store
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c200{{.*}} step
// CHECK: scf.for %{{.*}} = %arg2 to %arg3 step
// CHECK: math.log1p
// CHECK: memref.store
func.func @chains(%x: tensor<96x200xf32>) -> tensor<96xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) across dimensions = [1]
      : (tensor<96x200xf32>, tensor<f32>) -> tensor<96xf32>
      reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.subtract %a, %b : tensor<f32>
    %2 = stablehlo.log_plus_one %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<96xf32>
}
