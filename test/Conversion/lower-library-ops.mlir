// Which products and convolutions become calls of a library, with which
// strides, and which copies and additions are left around them. A call with a
// wrong stride would read other elements; a copy that is not needed costs time.
// The first run makes calls of small products too; in the second they stay
// loops. In the third, as on a processor, few stay, and complex ones are whole.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{few-products=0}))' -split-input-file | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops))' -split-input-file | FileCheck %s --check-prefix=FEW
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{few-products=128 complex-products=4096}))' -split-input-file | FileCheck %s --check-prefix=WHOLE

// A transposed operand is read with other strides.
// CHECK-LABEL: @transposed
// CHECK-NOT: transpose
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: batch = array<i64>
// CHECK-SAME: k = array<i64: 8, 1, 1>
// CHECK-SAME: m = array<i64: 4, 8, 16>
// CHECK-SAME: n = array<i64: 16, 8, 1>
func.func @transposed(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>)
    -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// Where a copy follows that has the rows innermost, columns are written first:
// lines of memory stay lines.
// CHECK-LABEL: @rows_innermost
// CHECK: %[[OUT:.*]] = whale.matmul %arg0, %arg1
// CHECK-SAME: m = array<i64: 32, 8, 1>
// CHECK-SAME: n = array<i64: 32, 8, 32>
// CHECK-SAME: -> tensor<8x4x2x16xf32>
// CHECK: stablehlo.transpose %[[OUT]], dims = [2, 1, 0, 3]
func.func @rows_innermost(%a: tensor<2x16x8xf32>, %b: tensor<8x4x8xf32>)
    -> tensor<2x4x8x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [2] x [2]
      : (tensor<2x16x8xf32>, tensor<8x4x8xf32>) -> tensor<2x16x8x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 3, 2, 1]
      : (tensor<2x16x8x4xf32>) -> tensor<2x4x8x16xf32>
  return %1 : tensor<2x4x8x16xf32>
}

// -----

// Two batch dimensions that are nested are one.
// CHECK-LABEL: @batch
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: batch = array<i64: 6, 20, 35, 28>
func.func @batch(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x7xf32>)
    -> tensor<2x3x4x7xf32> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1],
      contracting_dims = [3] x [2]
      : (tensor<2x3x4x5xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x4x7xf32>
  return %0 : tensor<2x3x4x7xf32>
}

// -----

// The contracted dimensions have no single stride in the left operand.
// CHECK-LABEL: @gathered
// CHECK: stablehlo.transpose %arg0, dims = [1, 0, 2]
// CHECK: whale.matmul
// CHECK-SAME: k = array<i64: 10, 1, 7>
func.func @gathered(%a: tensor<2x4x5xf32>, %b: tensor<2x5x7xf32>)
    -> tensor<4x7xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 2] x [0, 1]
      : (tensor<2x4x5xf32>, tensor<2x5x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

// The library does not multiply integers.
// CHECK-LABEL: @integers
// CHECK: stablehlo.dot_general
func.func @integers(%a: tensor<4x8xi32>, %b: tensor<8x2xi32>)
    -> tensor<4x2xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xi32>, tensor<8x2xi32>) -> tensor<4x2xi32>
  return %0 : tensor<4x2xi32>
}

// -----

// A sum of nothing.
// CHECK-LABEL: @nothing
// CHECK: stablehlo.constant dense<0.000000e+00> : tensor<4x2xf32>
func.func @nothing(%a: tensor<4x0xf32>, %b: tensor<0x2xf32>)
    -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x0xf32>, tensor<0x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: @convolution
// CHECK: whale.convolution %arg0, %arg1
// CHECK-SAME: padding = array<i64: 1, 1, 1, 1>
func.func @convolution(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>)
    -> tensor<2x8x8x4xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
  return %0 : tensor<2x8x8x4xf32>
}

// -----

// A result that is only transposed is written as its user wants it.
// CHECK-LABEL: @transposed_result
// CHECK-NOT: transpose
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: m = array<i64: 4, 8, 1>
// CHECK-SAME: n = array<i64: 16, 1, 4>
// CHECK-SAME: -> tensor<16x4xf32>
func.func @transposed_result(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>)
    -> tensor<16x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0]
      : (tensor<4x16xf32>) -> tensor<16x4xf32>
  return %1 : tensor<16x4xf32>
}

// -----

// Not where others read it as it was.
// CHECK-LABEL: @shared_result
// CHECK: whale.matmul
// CHECK-SAME: -> tensor<4x16xf32>
// CHECK: stablehlo.transpose
func.func @shared_result(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>)
    -> (tensor<4x16xf32>, tensor<16x4xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0]
      : (tensor<4x16xf32>) -> tensor<16x4xf32>
  return %0, %1 : tensor<4x16xf32>, tensor<16x4xf32>
}

// -----

// Nor where it would cut one product into many small ones: the rows (a, b) of
// the result are no longer one behind the other.
// CHECK-LABEL: @scattered_result
// CHECK: whale.matmul
// CHECK-SAME: m = array<i64: 256, 8, 16>
// CHECK: stablehlo.transpose
func.func @scattered_result(%a: tensor<4x64x8xf32>, %b: tensor<8x16xf32>)
    -> tensor<64x4x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [2] x [0]
      : (tensor<4x64x8xf32>, tensor<8x16xf32>) -> tensor<4x64x16xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2]
      : (tensor<4x64x16xf32>) -> tensor<64x4x16xf32>
  return %1 : tensor<64x4x16xf32>
}

// -----

// A transposed operand is read from where it was.
// CHECK-LABEL: @transposed_operand
// CHECK-NOT: transpose
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: k = array<i64: 8, 4, 16>
// CHECK-SAME: m = array<i64: 4, 1, 16>
func.func @transposed_operand(%a: tensor<8x4xf32>, %b: tensor<8x16xf32>)
    -> tensor<4x16xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0]
      : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

// -----

// Heads are batches where they are, and so is what is written behind them.
// CHECK-LABEL: @heads
// CHECK-NOT: transpose
// CHECK: whale.matmul %arg0, %arg1
// CHECK-SAME: batch = array<i64: 2, 4096, 4096, 4096, 4, 32, 32, 1024>
// CHECK-SAME: k = array<i64: 32, 1, 1>
// CHECK-SAME: m = array<i64: 32, 128, 32>
func.func @heads(%q: tensor<2x32x4x32xf32>, %k: tensor<2x32x4x32xf32>)
    -> tensor<2x4x32x32xf32> {
  %0 = stablehlo.transpose %q, dims = [0, 2, 1, 3]
      : (tensor<2x32x4x32xf32>) -> tensor<2x4x32x32xf32>
  %1 = stablehlo.transpose %k, dims = [0, 2, 1, 3]
      : (tensor<2x32x4x32xf32>) -> tensor<2x4x32x32xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1],
      contracting_dims = [3] x [3]
      : (tensor<2x4x32x32xf32>, tensor<2x4x32x32xf32>)
      -> tensor<2x4x32x32xf32>
  return %2 : tensor<2x4x32x32xf32>
}

// -----

// What must be copied keeps its lines: (b, c) are brought together, d stays
// the last dimension. The transposition before it is not done at all.
// CHECK-LABEL: @copied_lines
// CHECK: %[[COPY:.*]] = stablehlo.transpose %arg0, dims = [1, 0, 2, 3]
// CHECK-SAME: (tensor<4x2x5x64xf32>) -> tensor<2x4x5x64xf32>
// CHECK-NOT: stablehlo.transpose
// CHECK: whale.matmul %[[COPY]], %arg1
// CHECK-SAME: k = array<i64: 20, 64, 32>
// CHECK-SAME: m = array<i64: 64, 1, 32>
func.func @copied_lines(%x: tensor<4x2x5x64xf32>, %y: tensor<2x4x5x32xf32>)
    -> tensor<2x64x32xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 3, 0, 2]
      : (tensor<4x2x5x64xf32>) -> tensor<2x64x4x5xf32>
  %1 = stablehlo.dot_general %0, %y, batching_dims = [0] x [0],
      contracting_dims = [2, 3] x [1, 2]
      : (tensor<2x64x4x5xf32>, tensor<2x4x5x32xf32>) -> tensor<2x64x32xf32>
  return %1 : tensor<2x64x32xf32>
}

// -----

// Products add to one another, and to what a loop carries.
// CHECK-LABEL: @sums
// CHECK: %[[A:.*]] = whale.matmul %arg0, %arg1 {
// CHECK: %[[B:.*]] = whale.matmul %arg0, %arg1 plus %[[A]]
// CHECK-NOT: stablehlo.add %[[A]]
// CHECK: } do {
// CHECK: whale.matmul %arg0, %arg1 plus %iterArg_0
// CHECK-NOT: stablehlo.add %iterArg_0
func.func @sums(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %n: tensor<i32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = stablehlo.add %a, %b : tensor<4x4xf32>
  %0:2 = stablehlo.while(%i = %n, %c = %s) : tensor<i32>, tensor<4x4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
        : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %t = stablehlo.add %c, %d : tensor<4x4xf32>
    %j = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %j, %t : tensor<i32>, tensor<4x4xf32>
  }
  return %s, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Not where the other addend is needed again, or is the caller's, or where the
// product would not be rounded.
// CHECK-LABEL: @other_sums
// CHECK-NOT: plus
// CHECK: return
func.func @other_sums(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>,
    %h: tensor<4x4xbf16>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>) {
  %a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = stablehlo.add %a, %b : tensor<4x4xf32>
  %c = stablehlo.dot_general %y, %x, contracting_dims = [0] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = stablehlo.add %c, %x : tensor<4x4xf32>
  %d = stablehlo.dot_general %h, %h, contracting_dims = [0] x [0]
      : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %e = stablehlo.dot_general %h, %h, contracting_dims = [0] x [1]
      : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %u = stablehlo.add %d, %e : tensor<4x4xbf16>
  %v = stablehlo.multiply %a, %b : tensor<4x4xf32>
  return %s, %v, %t, %u
      : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>
}

// -----

// So is one that is added to a sum over the micro-batches before, if nothing
// else reads that.
// CHECK-LABEL: @micro_batch
// CHECK: %[[SUM:.*]] = whale.matmul %arg0, %arg1 plus %arg2
// CHECK: %[[PRODUCT:.*]] = whale.matmul %arg0, %arg1
// CHECK-NOT: plus
// CHECK: %[[OTHER:.*]] = stablehlo.add %arg3, %[[PRODUCT]]
// CHECK: return %[[SUM]], %[[OTHER]]
func.func private @micro_batch(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>,
    %sum: tensor<4x16xf32> {whale.last_use}, %other: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.add %sum, %0 : tensor<4x16xf32>
  %2 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %3 = stablehlo.add %other, %2 : tensor<4x16xf32>
  return %1, %3 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// The runtime takes numbers of windows up to 2^40.
// CHECK-LABEL: @far_windows
// CHECK-NOT: whale.convolution
// CHECK: stablehlo.convolution
func.func @far_windows(%x: tensor<1x8x2xf32>, %k: tensor<3x2x3xf32>)
    -> tensor<1x1x3xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {stride = [4611686018427387904]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x8x2xf32>, tensor<3x2x3xf32>) -> tensor<1x1x3xf32>
  return %0 : tensor<1x1x3xf32>
}

// -----

// Loops are as quick for products with a vector, however long, and for those
// with few elements; these sums are more exact.
// CHECK-LABEL: @vectors
// CHECK-COUNT-2: stablehlo.dot_general
// FEW-LABEL: @vectors
// FEW-COUNT-2: stablehlo.dot_general
func.func @vectors(%a: tensor<512x256xf32>, %v: tensor<256xf32>,
                   %b: tensor<4x256x512xf32>, %w: tensor<4x1x256xf32>)
    -> (tensor<512xf32>, tensor<4x1x512xf32>) {
  %0 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0]
      : (tensor<512x256xf32>, tensor<256xf32>) -> tensor<512xf32>
  %1 = stablehlo.dot_general %w, %b, batching_dims = [0] x [0],
      contracting_dims = [2] x [1]
      : (tensor<4x1x256xf32>, tensor<4x256x512xf32>) -> tensor<4x1x512xf32>
  return %0, %1 : tensor<512xf32>, tensor<4x1x512xf32>
}

// -----

// CHECK-LABEL: @few
// CHECK-COUNT-3: whale.matmul
// FEW-LABEL: @few
// FEW: stablehlo.dot_general
// FEW: whale.matmul
// FEW: stablehlo.dot_general
func.func @few(%a: tensor<8x8x16xf32>, %b: tensor<8x16x32xf32>,
               %c: tensor<8x16x33xf32>, %d: tensor<512x8x4xf32>,
               %e: tensor<512x4x8xf32>)
    -> (tensor<8x8x32xf32>, tensor<8x8x33xf32>, tensor<512x8x8xf32>) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],
      contracting_dims = [2] x [1]
      : (tensor<8x8x16xf32>, tensor<8x16x32xf32>) -> tensor<8x8x32xf32>
  %1 = stablehlo.dot_general %a, %c, batching_dims = [0] x [0],
      contracting_dims = [2] x [1]
      : (tensor<8x8x16xf32>, tensor<8x16x33xf32>) -> tensor<8x8x33xf32>
  %2 = stablehlo.dot_general %d, %e, batching_dims = [0] x [0],
      contracting_dims = [2] x [1]
      : (tensor<512x8x4xf32>, tensor<512x4x8xf32>) -> tensor<512x8x8xf32>
  return %0, %1, %2 : tensor<8x8x32xf32>, tensor<8x8x33xf32>,
      tensor<512x8x8xf32>
}

// -----

// Both products read one copy, in which the last dimension stays last: the
// transposition asked for would write the elements of a line far apart.
// CHECK-LABEL: @lines_stay_lines
// CHECK: %[[COPY:.*]] = stablehlo.transpose %arg0, dims = [1, 2, 0, 3]
// CHECK-SAME: -> tensor<4x32x3x64xf32>
// CHECK-NOT: stablehlo.transpose
// CHECK: whale.matmul %[[COPY]], %arg1 {{.*}} m = array<i64: 128, 192, 256>
// CHECK: whale.matmul %[[COPY]], %arg2 {{.*}} m = array<i64: 192, 1, 256>
func.func @lines_stay_lines(
    %x: tensor<3x4x32x64xf32>, %w: tensor<256x3x64xf32>,
    %y: tensor<4x32x256xf32>)
    -> (tensor<4x32x256xf32>, tensor<3x64x256xf32>) {
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2]
      : (tensor<3x4x32x64xf32>) -> tensor<3x64x4x32xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [0, 1] x [1, 2]
      : (tensor<3x64x4x32xf32>, tensor<256x3x64xf32>) -> tensor<4x32x256xf32>
  %2 = stablehlo.dot_general %0, %y, contracting_dims = [2, 3] x [0, 1]
      : (tensor<3x64x4x32xf32>, tensor<4x32x256xf32>) -> tensor<3x64x256xf32>
  return %1, %2 : tensor<4x32x256xf32>, tensor<3x64x256xf32>
}

// -----

// Of what the library has not, kernels read filters from their start.
// CHECK-LABEL: @reversed_integers
// CHECK: %[[FILTER:.*]] = stablehlo.reverse %arg1, dims = [1]
// CHECK: stablehlo.convolution(%arg0, %[[FILTER]])
// CHECK-NOT: reverse = [
func.func @reversed_integers(%x: tensor<1x5x6x2xi32>, %w: tensor<3x2x2x4xi32>)
    -> tensor<1x3x5x4xi32> {
  %0 = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {reverse = [false, true]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x5x6x2xi32>, tensor<3x2x2x4xi32>) -> tensor<1x3x5x4xi32>
  return %0 : tensor<1x3x5x4xi32>
}

// -----

// Four products of parts, of which the last is added to the one before it; what
// is made of two parts is taken apart without operations. (Few elements and
// vectors stay.)

// CHECK-LABEL: func.func @complex
// CHECK-SAME: (%[[A:[^:]*]]: tensor<{{[^,]*}}, %[[RE:[^:]*]]: tensor<8x16xf32>, %[[IM:[^:]*]]: tensor<8x16xf32>)
// CHECK: %[[ARE:.*]] = stablehlo.real %[[A]]
// CHECK: %[[AIM:.*]] = stablehlo.imag %[[A]]
// CHECK-DAG: %[[RR:.*]] = whale.matmul %[[ARE]], %[[RE]]
// CHECK-DAG: %[[II:.*]] = whale.matmul %[[AIM]], %[[IM]]
// CHECK: %[[R:.*]] = stablehlo.subtract %[[RR]], %[[II]]
// CHECK-DAG: whale.matmul %[[ARE]], %[[IM]]
// CHECK-DAG: whale.matmul %[[AIM]], %[[RE]]
// CHECK: stablehlo.complex %[[R]],
// FEW-LABEL: func.func @complex
// FEW: stablehlo.dot_general {{.*}}complex<f32>
// WHOLE-LABEL: func.func @complex
// WHOLE: %[[B:.*]] = stablehlo.complex
// WHOLE: whale.matmul %{{.*}}, %[[B]] {batch = array<i64>,
// WHOLE-SAME: k = array<i64: 8, 1, 16>, m = array<i64: 8, 8, 16>,
// WHOLE-SAME: n = array<i64: 16, 1, 1>
// WHOLE-SAME: complex<f32>
func.func @complex(%a: tensor<2x4x8xcomplex<f32>>, %re: tensor<8x16xf32>,
                   %im: tensor<8x16xf32>) -> tensor<2x4x16xcomplex<f32>> {
  %b = stablehlo.complex %re, %im : tensor<8x16xcomplex<f32>>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [2] x [0]
      : (tensor<2x4x8xcomplex<f32>>, tensor<8x16xcomplex<f32>>)
      -> tensor<2x4x16xcomplex<f32>>
  return %0 : tensor<2x4x16xcomplex<f32>>
}

// -----

// A divisor without imaginary parts divides the parts; zeros and numbers that
// are not finite stay what complex division makes of them.

// CHECK-LABEL: func.func @real_divisors
// CHECK-DAG: %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<2xf32>
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
// CHECK: %[[C:.*]] = stablehlo.dynamic_update_slice %[[TWO]], %[[ONE]]
// CHECK: %[[D:.*]] = stablehlo.broadcast_in_dim %[[C]]
// CHECK: %[[RE:.*]] = stablehlo.real
// CHECK: %[[IM:.*]] = stablehlo.imag
// CHECK: %[[NONE:.*]] = stablehlo.multiply %[[D]], %{{.*}} : tensor<4x2xf32>
// CHECK-DAG: %[[A:.*]] = stablehlo.divide %[[RE]], %[[D]]
// CHECK-DAG: %[[B:.*]] = stablehlo.divide %[[IM]], %[[D]]
// CHECK-DAG: %[[NO_IM:.*]] = stablehlo.multiply %[[IM]], %[[NONE]]
// CHECK-DAG: %[[NO_RE:.*]] = stablehlo.multiply %[[RE]], %[[NONE]]
// CHECK-DAG: %[[C:.*]] = stablehlo.subtract %[[A]], %[[NO_IM]]
// CHECK-DAG: %[[E:.*]] = stablehlo.add %[[B]], %[[NO_RE]]
// CHECK: stablehlo.complex %[[C]], %[[E]]
// CHECK: stablehlo.divide {{.*}}complex<f32>
// CHECK: stablehlo.divide {{.*}}complex<f32>
func.func @real_divisors(%x: tensor<4x2xcomplex<f32>>)
    -> (tensor<4x2xcomplex<f32>>, tensor<4x2xcomplex<f32>>,
        tensor<4x2xcomplex<f32>>) {
  %two = stablehlo.constant dense<(2.0, 0.0)> : tensor<2xcomplex<f32>>
  %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<1xcomplex<f32>>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %c = stablehlo.dynamic_update_slice %two, %one, %n
      : (tensor<2xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<i32>)
      -> tensor<2xcomplex<f32>>
  %d = stablehlo.broadcast_in_dim %c, dims = [1]
      : (tensor<2xcomplex<f32>>) -> tensor<4x2xcomplex<f32>>
  %0 = stablehlo.divide %x, %d : tensor<4x2xcomplex<f32>>
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<4x2xcomplex<f32>>
  %1 = stablehlo.divide %x, %zero : tensor<4x2xcomplex<f32>>
  %i = stablehlo.constant dense<(1.0, 1.0)> : tensor<4x2xcomplex<f32>>
  %2 = stablehlo.divide %x, %i : tensor<4x2xcomplex<f32>>
  return %0, %1, %2 : tensor<4x2xcomplex<f32>>, tensor<4x2xcomplex<f32>>,
      tensor<4x2xcomplex<f32>>
}

// -----

// So does one that is real where it is not zero, and a constant elsewhere; with
// another constant there, or where others than zeros are replaced, it does not.

// CHECK-LABEL: func.func @real_but_zero
// CHECK-SAME: , %[[R:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK: %[[D:.*]] = stablehlo.select %{{.*}}, %[[ONE]], %[[R]]
// CHECK: %[[SIGN:.*]] = stablehlo.sign %[[D]]
// CHECK: stablehlo.multiply %[[SIGN]], %{{.*}} : tensor<4xf32>
// CHECK-COUNT-2: stablehlo.divide %{{.*}}, %[[D]] : tensor<4xf32>
// CHECK: stablehlo.complex
// CHECK-COUNT-3: stablehlo.divide {{.*}}complex<f32>
func.func @real_but_zero(%x: tensor<4xcomplex<f32>>, %r: tensor<4xf32>)
    -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>,
        tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %none = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %zero = stablehlo.broadcast_in_dim %none, dims = []
      : (tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<4xcomplex<f32>>
  %i = stablehlo.constant dense<(0.0, 1.0)> : tensor<4xcomplex<f32>>
  %y = stablehlo.convert %r : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %is = stablehlo.compare EQ, %y, %zero
      : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  %d = stablehlo.select %is, %one, %y : tensor<4xi1>, tensor<4xcomplex<f32>>
  %0 = stablehlo.divide %x, %d : tensor<4xcomplex<f32>>
  %e = stablehlo.select %is, %i, %y : tensor<4xi1>, tensor<4xcomplex<f32>>
  %1 = stablehlo.divide %x, %e : tensor<4xcomplex<f32>>
  %isnt = stablehlo.compare NE, %y, %zero
      : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  %f = stablehlo.select %isnt, %one, %y
      : tensor<4xi1>, tensor<4xcomplex<f32>>
  %2 = stablehlo.divide %x, %f : tensor<4xcomplex<f32>>
  %is1 = stablehlo.compare EQ, %y, %one
      : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  %g = stablehlo.select %is1, %one, %y : tensor<4xi1>, tensor<4xcomplex<f32>>
  %3 = stablehlo.divide %x, %g : tensor<4xcomplex<f32>>
  return %0, %1, %2, %3 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>,
      tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
}
