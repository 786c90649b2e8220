//===- Products.h - Matrix products and convolutions ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instructions of a program that devices compute with libraries
// (docs/program-format.md): matrix products with their epilogues, and
// convolutions. The types and shapes are those of the buffers, so a device
// needs nothing else to prepare an instruction. Functions say whether and in
// which form libraries for GPUs have one. Cost: each instruction is plain data
// of a few numbers for each dimension; each function is linear in these.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PRODUCTS_H
#define WHALE_PROGRAMFORMAT_PRODUCTS_H

#include "whale/ProgramFormat/DType.h"
#include "whale/ProgramFormat/Layout.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace whale::format {

/// A buffer of a rank class or a function, by its index.
using BufferIndex = int64_t;

/// What is done to a product before it is stored, as libraries for GPUs do it
/// in the kernel of the product. "gelu" is x/2 (1 + tanh(u)), where u is
/// sqrt(2/pi) (x + 0.044715 x^3); x is the product, with the bias if there is
/// one.
enum class Epilogue {
  None,
  Bias,
  Gelu,
  GeluBias,
  /// With x as a second result.
  GeluAux,
  GeluAuxBias,
  /// The product times the derivative of gelu at `aux`.
  GeluGradient,
  /// And the sums of that over all rows, the gradient of a bias.
  GeluGradientBias,
};

/// "gelu_aux_bias"; empty for none.
const char *name(Epilogue epilogue);
std::optional<Epilogue> parseEpilogue(std::string_view name);

constexpr bool readsBias(Epilogue e) {
  return e == Epilogue::Bias || e == Epilogue::GeluBias ||
         e == Epilogue::GeluAuxBias;
}
constexpr bool writesBias(Epilogue e) {
  return e == Epilogue::GeluGradientBias;
}
constexpr bool readsAux(Epilogue e) {
  return e == Epilogue::GeluGradient || e == Epilogue::GeluGradientBias;
}
constexpr bool writesAux(Epilogue e) {
  return e == Epilogue::GeluAux || e == Epilogue::GeluAuxBias;
}

constexpr bool usesBias(Epilogue e) { return readsBias(e) || writesBias(e); }
constexpr bool usesAux(Epilogue e) { return readsAux(e) || writesAux(e); }

/// So many terms of a product of i8 into i32 oneDNN sums exactly, on processors
/// with VNNI. It multiplies unsigned by signed elements, lhs + 128 by rhs, and
/// takes 128 times the sum of rhs from that in f32, which has all integers
/// below 2^24.
constexpr int64_t mostExactTerms = (int64_t(1) << 24) / (255 * 128);

/// A batched matrix product. Strides are in elements.
struct Matmul {
  struct Batch {
    int64_t size, lhs, rhs, out;
    bool operator==(const Batch &) const = default;
  };
  BufferIndex lhs = 0, rhs = 0, out = 0;
  DType lhsType = {}, rhsType = {}, outType = {};
  std::vector<Batch> batch;
  int64_t m = 0, mLhs = 0, mOut = 0;
  int64_t n = 0, nRhs = 0, nOut = 0;
  int64_t k = 0, kLhs = 0, kRhs = 0;
  /// Whether the product is added to the contents of `out`.
  bool accumulate = false;
  /// Whether a GPU may round f32 operands to TF32.
  bool tf32 = false;
  Epilogue epilogue = Epilogue::None;
  /// Buffers of the epilogue, where it has them: a bias or its gradient, an
  /// element for each column, and as many elements as `out` has.
  BufferIndex bias = 0, aux = 0;
  bool operator==(const Matmul &) const = default;
};

/// A result as an epilogue takes it: `rows` of neighbouring elements, one
/// behind the other, with an element of the bias for each of `columns`. They
/// are columns or rows of the product, whichever are neighbours.
struct EpilogueShape {
  int64_t rows, columns;
};
/// Nothing where the product may have no epilogue; then `why` says it, if
/// given. It has one if its matrices are of one type, f16, bf16 or f32, and
/// there is one of each, their extents and strides are multiples of 8 and the
/// result is dense: what cublasLt.h asks for, and what its kernels with tensor
/// cores do.
std::optional<EpilogueShape> shapeForEpilogue(const Matmul &matmul,
                                              const char **why = nullptr);

/// Whether both operands are i8, or of the kinds of f8 that cuBLASLt knows: it
/// takes such products in one layout only.
bool isOfBytes(const Matmul &matmul);
/// Of a product of bytes: of how many bytes addresses, the contracted extent
/// and the distances between rows of its operands must be multiples.
int64_t stepOfBytes(const Matmul &matmul);
/// Why cuBLASLt has no such product of bytes on GPUs of this compute capability
/// (90 for sm_90); null if it has. It has sums in i32 of i8, and in f32, bf16
/// or f16 of f8 unless both are f8E5M2, from sm_89 on: "cublasLtMatmul()" in
/// NVIDIA's documentation of cuBLAS.
const char *findLackOfBytes(const Matmul &matmul, int capability);

struct Convolution {
  /// The positions of the logical dimensions in a tensor: batch and feature of
  /// the operand or result, input and output feature of the kernel.
  struct Dimensions {
    int64_t first = 0, second = 0;
    std::vector<int64_t> spatial;
    bool operator==(const Dimensions &) const = default;
  };
  struct Window {
    int64_t stride = 1, low = 0, high = 0, lhsDilation = 1, rhsDilation = 1;
    bool reversed = false;
    bool operator==(const Window &) const = default;
  };
  BufferIndex lhs = 0, rhs = 0, out = 0;
  DType lhsType = {}, rhsType = {}, outType = {};
  Shape lhsShape, rhsShape, outShape;
  Dimensions lhsDims, rhsDims, outDims;
  std::vector<Window> windows;
  int64_t featureGroups = 1, batchGroups = 1;
  /// As of a product.
  bool tf32 = false;
  bool operator==(const Convolution &) const = default;
};

/// What a library for GPUs computes a convolution as, if it has it at all. A
/// program says all three alike.
enum class ConvolutionForm { Forward, ImageGradient, FilterGradient };
ConvolutionForm formOf(const Convolution &op);

/// How many places its window has, or its result where these are fewer: of the
/// gradient of a filter those of the filter.
int64_t windowPlaces(const Convolution &op);

/// A spatial dimension of a convolution in its form: y[p] is the sum over q of
/// x[p * stride + q * dilation - before] w[q], or a gradient of that. `x`, `w`
/// and `y` are extents.
struct ConvolutionWindow {
  int64_t x, w, y, before, stride, dilation;
};
ConvolutionWindow windowOf(const Convolution &op, size_t spatialDim);
/// How many zeros x needs in front and behind so that what is padded on both
/// sides can be equal: a library may take other paddings, and compute something
/// else.
struct ConvolutionZeros {
  int64_t inFront = 0, behind = 0;
};
ConvolutionZeros zerosForEvenPadding(const ConvolutionWindow &window);

/// For each dimension of an operand or the result, the one that goes there if
/// such a library is to read it with channels last: images as NHWC, filters as
/// OHWI, each in the place that it has in the form. (It takes other orders of a
/// filter, and computes something else.)
struct ConvolutionOrder {
  std::vector<int64_t> lhs, rhs, out;
};
ConvolutionOrder channelsLastOrder(const Convolution &op);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PRODUCTS_H
