//===- RewritePasses.td - Passes within StableHLO ----------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that replace operations by others of StableHLO, which have a kernel or
// a function of a library. In: functions and schedules of StableHLO on local
// shapes. Out: the same, without operations that no kernel or library has, or
// that are slow as they are: convolutions in the form of the libraries or as
// products, scatters and windows in parts of a limited size.
//
// Cost: each pass is a walk over a function. What it adds is computed when the
// program runs: transposes and reversals read and write a tensor once, loops of
// scatters and windows in several steps keep what is between them in memory.
// Each description has an example that a test runs. How a pass works is told in
// the file of its name in lib/Conversion.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CONVERSION_REWRITEPASSES_TD
#define WHALE_CONVERSION_REWRITEPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvolutionsToProducts
    : InterfacePass<"whale-convolutions-to-products",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Makes products of convolutions that are products";
  let description = [{
    Where a filter has one element in each channel, a convolution is a product
    of the channels, of all pixels of all images. So are its gradients: that of
    the filter is summed over all pixels, its window is the whole image. A GPU's
    library of products has more, and quicker, ways to form exact and
    deterministic sums than that of convolutions. Strides, padding and groups
    are left to the latter.

    Example:
    ```mlir
    func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<1x1x3x4xf32>)
        -> tensor<2x8x8x4xf32> {
      %0 = stablehlo.convolution(%x, %w)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x8x8x3xf32>, tensor<1x1x3x4xf32>) -> tensor<2x8x8x4xf32>
      return %0 : tensor<2x8x8x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<2x8x8x3xf32>, %arg1: tensor<1x1x3x4xf32>)
        -> tensor<2x8x8x4xf32> {
      %0 = stablehlo.reshape %arg1 : (tensor<1x1x3x4xf32>) -> tensor<3x4xf32>
      %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [3] x [0]
          : (tensor<2x8x8x3xf32>, tensor<3x4xf32>) -> tensor<2x8x8x4xf32>
      return %1 : tensor<2x8x8x4xf32>
    }
    ```
  }];
}

def ConvolutionGradients
    : InterfacePass<"whale-convolution-gradients",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Puts gradients of convolutions into the form of libraries";
  let description = [{
    The gradient of a strided convolution's image is a convolution of what is
    spread, zeros between its elements, with the kernel reversed. Libraries have
    it as a convolution of its own, which reads the kernel as it is and does not
    multiply by the zeros. JAX reverses the kernel ahead: that becomes part of
    the convolution. Of a transposed convolution, which reads it from its start,
    the kernel is reversed for it.

    Where what is spread is met by a window that is larger than the result, it
    is the gradient of a transposed convolution's kernel. With the operands
    exchanged it is that of a convolution's kernel, reversed.

    Example:
    ```mlir
    func.func @main(%y: tensor<2x4x5xf32>, %w: tensor<3x4x5xf32>)
        -> tensor<2x8x4xf32> {
      %0 = stablehlo.reverse %w, dims = [0] : tensor<3x4x5xf32>
      %1 = stablehlo.convolution(%y, %0)
          dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f],
          window = {pad = [[2, 1]], lhs_dilate = [2]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x4x5xf32>, tensor<3x4x5xf32>) -> tensor<2x8x4xf32>
      return %1 : tensor<2x8x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<2x4x5xf32>, %arg1: tensor<3x4x5xf32>)
        -> tensor<2x8x4xf32> {
      %0 = stablehlo.convolution(%arg0, %arg1)
          dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f],
          window = {pad = [[2, 1]], lhs_dilate = [2], reverse = [true]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x4x5xf32>, tensor<3x4x5xf32>) -> tensor<2x8x4xf32>
      return %0 : tensor<2x8x4xf32>
    }
    ```
  }];
}

def UnrollLoops
    : InterfacePass<"whale-unroll-loops", "::mlir::FunctionOpInterface"> {
  let summary = "Writes out short loops of elementwise operations";
  let description = [{
    A counted loop of at most 8 turns, whose body has elementwise operations and
    moves of elements alone, becomes the operations of all turns, as long as
    these are at most 512: one kernel then computes what several would in each
    turn. So it is with the rounds of the cipher that JAX draws random bits
    with. The counter is a constant in each turn, as are slices of constants.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8xf32>
      cond {
        %two = stablehlo.constant dense<2> : tensor<i32>
        %1 = stablehlo.compare LT, %i, %two, SIGNED
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %1 = stablehlo.add %i, %one : tensor<i32>
        %2 = stablehlo.sine %y : tensor<8xf32>
        stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
      }
      return %0#1 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.sine %arg0 : tensor<8xf32>
      %1 = stablehlo.sine %0 : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    ```
  }];
}

def DivideScatters
    : InterfacePass<"whale-divide-scatters",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Makes loops of scatters with many updates";
  let description = [{
    The kernels of a scatter on a GPU take 16,384,000 updates, or elements of
    windows that are moved, where updates can be combined first (sums, maxima
    and the like, the last one), and 256,000 where several operations make of an
    element and an update the next element. With more, a scatter becomes a
    counted loop over parts of the outermost dimension of its indices that has
    no batches; what is left of it is a scatter behind the loop. A part may be
    divided again, along the next dimension. Scatters to unique places stay.
    `most` is another number of updates.

    Example with `most=4`:
    ```mlir
    func.func @main(%x: tensor<3xf32>, %i: tensor<7x1xi32>, %u: tensor<7xf32>)
        -> tensor<3xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{
          scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
              index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<3xf32>, tensor<7x1xi32>, tensor<7xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<7x1xi32>,
        %arg2: tensor<7xf32>) -> tensor<3xf32> {
      %c = stablehlo.constant dense<0> : tensor<i64>
      %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i64>,
          tensor<3xf32>
      cond {
        %c_1 = stablehlo.constant dense<1> : tensor<i64>
        %4 = stablehlo.compare LT, %iterArg, %c_1 : (tensor<i64>, tensor<i64>)
            -> tensor<i1>
        stablehlo.return %4 : tensor<i1>
      } do {
        %c_1 = stablehlo.constant dense<4> : tensor<i64>
        %4 = stablehlo.multiply %iterArg, %c_1 : tensor<i64>
        %c_2 = stablehlo.constant dense<1> : tensor<i64>
        %5 = stablehlo.add %iterArg, %c_2 : tensor<i64>
        %6 = stablehlo.dynamic_slice %arg1, %4, %c, sizes = [4, 1]
            : (tensor<7x1xi32>, tensor<i64>, tensor<i64>) -> tensor<4x1xi32>
        %7 = stablehlo.dynamic_slice %arg2, %4, sizes = [4]
            : (tensor<7xf32>, tensor<i64>) -> tensor<4xf32>
        %8 = "stablehlo.scatter"(%iterArg_0, %6, %7)
            <{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
            index_vector_dim = 1>}> ({
        ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
          %9 = stablehlo.add %arg3, %arg4 : tensor<f32>
          stablehlo.return %9 : tensor<f32>
        }) : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>
        stablehlo.return %5, %8 : tensor<i64>, tensor<3xf32>
      }
      %1 = stablehlo.slice %arg1 [4:7, 0:1] : (tensor<7x1xi32>)
          -> tensor<3x1xi32>
      %2 = stablehlo.slice %arg2 [4:7] : (tensor<7xf32>) -> tensor<3xf32>
      %3 = "stablehlo.scatter"(%0#1, %1, %2)
          <{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
            index_vector_dim = 1>}> ({
      ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
        %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      }) : (tensor<3xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<3xf32>
      return %3 : tensor<3xf32>
    }
    ```
  }];
  let options = [
    Option<"most", "most", "int64_t", "0",
           "Updates that a scatter may have; 0: those that the kernels take">
  ];
}

def DivideWindows
    : InterfacePass<"whale-divide-windows",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Makes several windows of one that has many terms";
  let description = [{
    A thread of a GPU reduces the terms of a window one after the other, and at
    most 4,096 of them. A `reduce_window` of more than 1,024 terms becomes
    several: along the last dimension first; along a dimension of more than 64
    terms, of neighbours, then of such results that are as far apart, and of
    what is left behind these. Sums of 16 bits and less are formed in f32. Left
    alone are running reductions, and sums and the like of windows without
    padding, which several threads share.

    A `select_and_scatter` of such windows becomes a reduction of the elements
    and their numbers, and a `scatter` of the source.

    Example: windows of 64 * 32 terms.
    ```mlir
    func.func @main(%x: tensor<64x32xf32>, %low: tensor<f32>)
        -> tensor<64x32xf32> {
      %0 = "stablehlo.reduce_window"(%x, %low) <{
          window_dimensions = array<i64: 64, 32>,
          padding = dense<[[31, 32], [15, 16]]> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }) : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<64x32xf32>, %arg1: tensor<f32>)
        -> tensor<64x32xf32> {
      %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{
          base_dilations = array<i64: 1, 1>,
          padding = dense<[[0, 0], [15, 16]]> : tensor<2x2xi64>,
          window_dilations = array<i64: 1, 1>,
          window_dimensions = array<i64: 1, 32>,
          window_strides = array<i64: 1, 1>}> ({
        ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
          %2 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
          stablehlo.return %2 : tensor<f32>
      }) : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
      %1 = "stablehlo.reduce_window"(%0, %arg1) <{
          base_dilations = array<i64: 1, 1>,
          padding = dense<[[31, 32], [0, 0]]> : tensor<2x2xi64>,
          window_dilations = array<i64: 1, 1>,
          window_dimensions = array<i64: 64, 1>,
          window_strides = array<i64: 1, 1>}> ({
        ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
          %2 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
          stablehlo.return %2 : tensor<f32>
      }) : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
      return %1 : tensor<64x32xf32>
    }
    ```
  }];
}

def NormalizeConvolutions
    : InterfacePass<"whale-normalize-convolutions",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Puts convolutions into the form that a GPU library has";
  let description = [{
    cuDNN reads images and filters with channels last (NHWC and OHWI), or all of
    them with channels behind the batch. Of a convolution in another order what
    differs is transposed before it, or behind it. JAX's filters are HWIO: their
    transposition becomes part of the kernel that makes them, if there is one.
    And it pads both sides alike. Where that makes too many windows or too few,
    as of a strided "SAME" one, the image gets the zeros that are missing, or
    the gradient of an image loses the rows that are too many.

    Example:
    ```mlir
    func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>)
        -> tensor<2x6x6x4xf32> {
      %0 = stablehlo.convolution(%x, %w)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
      return %0 : tensor<2x6x6x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<2x8x8x3xf32>, %arg1: tensor<3x3x3x4xf32>)
        -> tensor<2x6x6x4xf32> {
      %0 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2]
          : (tensor<3x3x3x4xf32>) -> tensor<4x3x3x3xf32>
      %1 = stablehlo.convolution(%arg0, %0)
          dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<2x6x6x4xf32>
      return %1 : tensor<2x6x6x4xf32>
    }
    ```
  }];
}

#endif // WHALE_CONVERSION_REWRITEPASSES_TD
