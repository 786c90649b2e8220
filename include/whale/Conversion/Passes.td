//===- Passes.td - Whale Conversion passes -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of level 'kernels': from StableHLO on local shapes to library
// calls, linalg and, last, functions of loops over buffers. Rewrites that stay
// within StableHLO are in RewritePasses.td; the order of all is in
// lib/Program/Pipelines.cpp.
//
// All but the last run on one function at a time, schedules and segments alike.
// The last one changes the module, as all functions share `@kernels`. What
// differs by target is asked of their option `target` (Target.h). Each
// description has an example that a test runs. How a pass works is told in the
// file of its name in lib/Conversion.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CONVERSION_PASSES_TD
#define WHALE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"
include "whale/Conversion/RewritePasses.td"

class TargetOptionOf<string default>
    : Option<"target", "target", "::whale::Target", default,
             "What kernels are made for: cpu, or GPUs as sm_90; cpu+i8 "
             "multiplies 8-bit integers by instructions of its own, and on "
             "sm_90+cudnn=BYTES cuDNN computes attention, with as many bytes "
             "besides its tensors; with +plan behind it, kernels of rows and "
             "of attention stay empty, for plans of which no code is "
             "written">;
def TargetOption : TargetOptionOf<"::whale::Target()">;

def LowerLibraryOps
    : InterfacePass<"whale-lower-library-ops",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Makes library calls of contractions and convolutions";
  let description = [{
    A `stablehlo.dot_general` becomes a `whale.matmul`: its dimensions are
    grouped into batches, m, n and k, each with a stride in every buffer, so
    that transposed operands are read where they are and results that are only
    transposed are written so. Dimensions of one group that are not one
    behind the other in an operand need a `stablehlo.transpose` first. A product
    that is added, in f32, to another one or to a sum that a loop carries is
    added to it in its buffer. A `stablehlo.convolution` becomes a
    `whale.convolution`; one of other types stays, and a filter that it reads
    from its end is reversed, as kernels read filters from their start.

    A product of complex numbers of f32 that sums at most 1,024 terms is four
    of their parts, a quotient by a constant without imaginary parts two. A
    product of at most `complex-products` pairs of elements stays whole, as a
    `whale.matmul`.

    Products of i8 and of f8 are kernels, or formed in f32. On a processor that
    multiplies i8 into i32, these become a `whale.matmul`, if oneDNN sums so
    many terms exactly; on a GPU those that cuBLASLt has, whose operands are
    copied where the contracted elements are no neighbours, and a remark says
    why others do not. On a GPU without arithmetic of bf16 (before sm_80)
    products and convolutions of bf16 are computed in f32, between conversions.

    Attention becomes a `whale.library_call` or, for a GPU, kernels that
    hold the scores of one tile at a time; where a tile of its heads does not
    fit into shared memory, it stays a call, and a remark says so. With
    `capability`, what cuDNN computes on such a GPU becomes a call of
    `fused_attention` or `fused_attention_gradient`, if its samples and heads,
    computed one after the other as far as is needed, take at most `workspace`
    bytes; a remark says why others do not.

    Products with vectors and those of few elements stay: as loops they are as
    quick, and their sums more exact.

    Example:
    ```mlir
    func.func @main(%a: tensor<64x80xf32>, %b: tensor<96x80xf32>)
        -> tensor<64x96xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
          : (tensor<64x80xf32>, tensor<96x80xf32>) -> tensor<64x96xf32>
      return %0 : tensor<64x96xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<64x80xf32>, %arg1: tensor<96x80xf32>)
        -> tensor<64x96xf32> {
      %0 = whale.matmul %arg0, %arg1
          {batch = array<i64>, k = array<i64: 80, 1, 1>,
          m = array<i64: 64, 80, 96>, n = array<i64: 96, 80, 1>}
          : (tensor<64x80xf32>, tensor<96x80xf32>) -> tensor<64x96xf32>
      return %0 : tensor<64x96xf32>
    }
    ```
  }];
  let options = [
    Option<"fewProducts", "few-products", "int64_t", "32 * 32 * 32",
           "Largest number of pairs of elements in the products of a batch "
           "that stay for loops; of a single product of it a 32nd of that">,
    Option<"complexProducts", "complex-products", "int64_t", "0",
           "Largest number of pairs of complex numbers of f32 in a product "
           "that the library multiplies as such">,
    TargetOption,
  ];
  let dependentDialects = [
    "::whale::WhaleDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def FormEpilogues
    : InterfacePass<"whale-form-epilogues",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Lets products add biases and take GELU before they write";
  let description = [{
    Libraries of products for GPUs can add a bias to each row of a product, and
    take GELU of it, before they write it; with what GELU was taken of as a
    second result, a product of the backward pass is multiplied by its
    derivative there, and gives its sum over all rows, the gradient of the bias.
    What kernels would write and read in between is never in memory.

    GELU is the form with tanh (`jax.nn.gelu`, which JAX prints as products,
    sums and a hyperbolic tangent), recognized by the numbers that it gives. It
    is replaced together with its gradients, or, with a remark, not at all:
    where something else reads what is in between, as in another function, where
    it is not of a complete product or its gradient not of one, or where the
    product may have no epilogue (other types than f16, bf16 and f32, batches,
    extents that are no multiples of 8). Forward alone it is replaced if no
    kernel reads it, as is a bias without GELU. The program rounds after each
    operation, an epilogue once.

    The configuration `gpu.epilogues = false` leaves all as it is, as does a
    `capability` below 80.

    Example:
    ```mlir
    func.func @main(%a: tensor<64x80xf32>, %b: tensor<80x96xf32>,
                    %bias: tensor<96xf32>) -> tensor<64x96xf32> {
      %0 = whale.matmul %a, %b {batch = array<i64>, k = array<i64: 80, 1, 96>,
          m = array<i64: 64, 80, 96>, n = array<i64: 96, 1, 1>}
          : (tensor<64x80xf32>, tensor<80x96xf32>) -> tensor<64x96xf32>
      %1 = stablehlo.broadcast_in_dim %bias, dims = [1]
          : (tensor<96xf32>) -> tensor<64x96xf32>
      %2 = stablehlo.add %0, %1 : tensor<64x96xf32>
      return %2 : tensor<64x96xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<64x80xf32>, %arg1: tensor<80x96xf32>,
                    %arg2: tensor<96xf32>) -> tensor<64x96xf32> {
      %0 = whale.matmul %arg0, %arg1 bias %arg2 : tensor<96xf32>
          {batch = array<i64>, epilogue = "bias", k = array<i64: 80, 1, 96>,
          m = array<i64: 64, 80, 96>, n = array<i64: 96, 1, 1>}
          : (tensor<64x80xf32>, tensor<80x96xf32>) -> tensor<64x96xf32>
      return %0 : tensor<64x96xf32>
    }
    ```
  }];
  let options = [
    TargetOptionOf<"::whale::Target::forGpu(80)">,
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def StableHLOToLinalg
    : InterfacePass<"whale-stablehlo-to-linalg",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Lowers StableHLO to linalg and hand-built kernels";
  let description = [{
    Elementwise operations, moves of elements and reductions become
    `linalg.generic` on tensors, reads at computed places `tensor.extract` in
    their bodies; operations that write at computed places or walk in an order
    (scatter, sort, windows) become `whale.kernel`; dynamic_update_slice stays.
    Integers lose their sign, with casts where a value meets an operation that
    stays: constants, reshapes, `while` and `case` (whose bodies are lowered),
    collectives, and library operations. A loop that counts from one constant to
    another gets `whale.trips`, how often its body runs. An operation that
    cannot be lowered is an error at its location.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.exponential %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
        %0 = tensor.empty() : tensor<8xf32>
        %1 = linalg.generic
            {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
            ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
        ^bb0(%in: f32, %out: f32):
          %2 = math.exp %in : f32
          linalg.yield %2 : f32
        } -> tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let options = [
    TargetOption,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::complex::ComplexDialect",
    "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::whale::WhaleDialect"
  ];
}

def FuseKernels
    : InterfacePass<"whale-fuse-kernels",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Fuses parallel linalg operations into their consumers";
  let description = [{
    A parallel operation moves into the operation that uses its result, so that
    the value in between is never stored. What is cheap moves into all its
    users; what is not is computed once, in its first user, and kept as one
    more result of it if there are others. Cheap users of it do not count: they
    become a part of their own users, which read what was kept. A value is not
    recomputed for each point of a dimension that it does not have, unless it is
    cheap or that dimension is the inner loop.

    Slices at computed places are read where they are. What is stored in a slice
    of another tensor becomes one more result of the operation that makes it.
    Reshapes that only add or drop dimensions of size one disappear.

    For a GPU more arithmetic is cheap where a user then reads no
    more bytes: the gradient of a ReLU after a batch norm is computed again from
    what the gradient of the norm reads anyway.

    Example: the sum of squares is one loop.
    ```mlir
    #id = affine_map<(i) -> (i)>
    #sum = affine_map<(i) -> ()>
    func.func @main(%x: tensor<8xf32>, %zero: tensor<f32>) -> tensor<f32> {
      %e = tensor.empty() : tensor<8xf32>
      %0 = linalg.generic {indexing_maps = [#id, #id],
                           iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %2 = arith.mulf %a, %a : f32
        linalg.yield %2 : f32
      } -> tensor<8xf32>
      %1 = linalg.generic {indexing_maps = [#id, #sum],
                           iterator_types = ["reduction"]}
          ins(%0 : tensor<8xf32>) outs(%zero : tensor<f32>) {
      ^bb0(%a: f32, %b: f32):
        %2 = arith.addf %a, %b : f32
        linalg.yield %2 : f32
      } -> tensor<f32>
      return %1 : tensor<f32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    #map1 = affine_map<(d0) -> ()>
    module {
      func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<f32>) -> tensor<f32> {
        %0 = linalg.generic
            {indexing_maps = [#map, #map1], iterator_types = ["reduction"]}
            ins(%arg0 : tensor<8xf32>) outs(%arg1 : tensor<f32>) {
        ^bb0(%in: f32, %out: f32):
          %1 = arith.mulf %in, %in : f32
          %2 = arith.addf %1, %out : f32
          linalg.yield %2 : f32
        } -> tensor<f32>
        return %0 : tensor<f32>
      }
    }
    ```
  }];
  let options = [
    TargetOption,
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::affine::AffineDialect"];
}

def FuseRows
    : InterfacePass<"whale-fuse-rows",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Makes one kernel of reductions of rows and what reads them";
  let description = [{
    Linalg operations whose first loops run over the same rows become one
    `whale.kernel`, which takes a block of rows after the other: softmax, layer
    norm, RMS norm, cross-entropy and their gradients then read a row once from
    memory and keep it in the cache. What others need is written as before;
    what only the kernel needs is on the stack, for the rows of one block. Each
    sum is formed in the order in which its operation alone would form it.

    A reduction over the last dimensions begins a group; what reads a result of
    it joins if it

    - has the same first loops, and its operands are in memory row after row;
    - needs of a result of the group the row that it computes, and no other:
      what reduces rows or columns (the gradient of a scale) stays a kernel of
      its own;
    - needs nothing that another operation makes of a result of the group;
    - reduces, if it does, by one operation (adds, multiplies, compares);
    - has rows of one element or at least 32, of which all that the kernel reads
      and writes takes at most 256 KiB, or 4 MiB if there are at least 128 rows,
      and what it keeps on a processor's stack at most 1 MiB;
    - stores nothing in a slice of another tensor.

    A reshape in between that only adds or drops dimensions of size one
    disappears. Groups that walk a row once only stay as they are.

    For a GPU a block of threads owns a row, or some, and what only
    the kernel needs is in shared memory; or, if a power of two of threads can
    share the row evenly, at most 32 elements each, in their registers: a row of
    1,024 is then one warp's. What joins has one result for each row if it
    reduces. What could be shared of a row takes at most 48 KiB; if there are at
    least 128 rows it may take more, and is then computed by each that reads it
    instead, if it follows from operands and from the row's values alone: a
    block reads its row again from the second-level cache.

    With `remarks` each kernel says how many loops it is of, and each operation that
    reads of a group why it is not a part of it.

    Example with `remarks`: a row less its maximum.
    ```mlir
    #row = affine_map<(i, j) -> (i)>
    #all = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<8x64xf32>, %low: tensor<8xf32>)
        -> tensor<8x64xf32> {
      %0 = linalg.generic {indexing_maps = [#all, #row],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x64xf32>) outs(%low : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %2 = arith.maximumf %a, %b : f32
        linalg.yield %2 : f32
      } -> tensor<8xf32>
      %e = tensor.empty() : tensor<8x64xf32>
      %1 = linalg.generic {indexing_maps = [#all, #row, #all],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %0 : tensor<8x64xf32>, tensor<8xf32>)
          outs(%e : tensor<8x64xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %2 = arith.subf %a, %b : f32
        linalg.yield %2 : f32
      } -> tensor<8x64xf32>
      return %1 : tensor<8x64xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8x64xf32>, %arg1: tensor<8xf32>)
        -> tensor<8x64xf32> {
      %0 = whale.kernel(%arg0, %arg1) extent 8
          {inplace = array<i64: 0>, whale.bytes = 4128 : i64, whale.flops = 1024
          : i64, whale.parallel} : (tensor<8x64xf32>, tensor<8xf32>)
          -> tensor<8x64xf32> {
      ^bb0(%arg2: memref<8x64xf32>, %arg3: memref<8xf32>,
          %arg4: memref<8x64xf32>, %arg5: index, %arg6: index):
        %alloca = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
        %reinterpret_cast = memref.reinterpret_cast %arg2 to offset: [0],
            sizes: [512], strides: [1] : memref<8x64xf32> to memref<512xf32>
        %reinterpret_cast_0 = memref.reinterpret_cast %arg4 to offset: [0],
            sizes: [512], strides: [1] : memref<8x64xf32> to memref<512xf32>
        %c8 = arith.constant 8 : index
        scf.for %arg7 = %arg5 to %arg6 step %c8 {
          %1 = arith.addi %arg7, %c8 : index
          %2 = arith.minui %1, %arg6 : index
          %c-1 = arith.constant -1 : index
          %3 = arith.muli %arg7, %c-1 : index
          %c1 = arith.constant 1 : index
          scf.for %arg8 = %arg7 to %2 step %c1 {
            %5 = memref.load %arg3[%arg8] : memref<8xf32>
            %c0 = arith.constant 0 : index
            %c64 = arith.constant 64 : index
            %c1_3 = arith.constant 1 : index
            %6 = scf.for %arg9 = %c0 to %c64 step %c1_3 iter_args(%arg10 = %5)
                -> (f32) {
              %c64_4 = arith.constant 64 : index
              %8 = arith.muli %arg8, %c64_4 : index
              %9 = arith.addi %8, %arg9 : index
              %10 = memref.load %reinterpret_cast[%9] : memref<512xf32>
              %11 = arith.maximumf %10, %arg10 : f32
              scf.yield %11 : f32
            }
            %7 = arith.addi %3, %arg8 : index
            memref.store %6, %alloca[%7] : memref<8xf32>
          }
          %c-1_1 = arith.constant -1 : index
          %4 = arith.muli %arg7, %c-1_1 : index
          %c1_2 = arith.constant 1 : index
          scf.for %arg8 = %arg7 to %2 step %c1_2 {
            %5 = arith.addi %4, %arg8 : index
            %6 = memref.load %alloca[%5] : memref<8xf32>
            %c0 = arith.constant 0 : index
            %c64 = arith.constant 64 : index
            %c1_3 = arith.constant 1 : index
            scf.for %arg9 = %c0 to %c64 step %c1_3 {
              %c64_4 = arith.constant 64 : index
              %7 = arith.muli %arg8, %c64_4 : index
              %8 = arith.addi %7, %arg9 : index
              %9 = memref.load %reinterpret_cast[%8] : memref<512xf32>
              %10 = arith.subf %9, %6 : f32
              %c64_5 = arith.constant 64 : index
              %11 = arith.muli %arg8, %c64_5 : index
              %12 = arith.addi %11, %arg9 : index
              memref.store %10, %reinterpret_cast_0[%12] : memref<512xf32>
            }
          }
        }
      }
      return %0 : tensor<8x64xf32>
    }
    ```
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "Say what is fused and, of what reads a reduction of rows, why not">,
    TargetOption,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::complex::ComplexDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::whale::WhaleDialect"
  ];
}

def OutlineKernels : Pass<"whale-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Makes functions of @kernels and launches of all loops";
  let description = [{
    Each linalg operation becomes a loop nest over buffers, together with the
    operation that fills its initial value and the
    `stablehlo.dynamic_update_slice`s that store its results. Each nest, and
    each `whale.kernel`, moves into a function of the module `@kernels`; the
    same nest is emitted once. In its place stands a `whale.launch`. Casts
    between signed and unsigned integers disappear.

    For a GPU reductions over the same loops that share an operand as large,
    or of which one reads what another one makes at the same point, are one nest
    with the results of all, if none needs a sum of another; so are parallel
    operations of at most 65,536 points.

    Example:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %0 = linalg.generic {indexing_maps = [#id, #id],
                           iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %1 = arith.negf %a : f32
        linalg.yield %1 : f32
      } -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = whale.launch @k0(%arg0) {inplace = array<i64: 0>} : (tensor<8xf32>)
          -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    module @kernels {
      func.func @k0(%arg0: memref<8xf32>, %arg1: memref<8xf32>, %arg2: index,
          %arg3: index)
          attributes {whale.bytes = 64 : i64, whale.extent = 8 : i64,
          whale.flops = 8 : i64, whale.parallel} {
        %c1 = arith.constant 1 : index
        scf.for %arg4 = %arg2 to %arg3 step %c1 {
          %0 = memref.load %arg0[%arg4] : memref<8xf32>
          %1 = arith.negf %0 : f32
          memref.store %1, %arg1[%arg4] : memref<8xf32>
        }
        return
      }
    }
    ```
  }];
  let options = [
    TargetOption,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::complex::ComplexDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::whale::WhaleDialect"
  ];
}

#endif // WHALE_CONVERSION_PASSES_TD
