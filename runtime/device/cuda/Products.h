//===- Products.h - Matrix products by cuBLASLt -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_PRODUCTS_H
#define WHALE_RUNTIME_DEVICE_CUDA_PRODUCTS_H

#include "cuda/Gpu.h"
#include "program/Format.h"

#include <memory>

namespace whale::runtime::cuda {

/// Element types and strides that cuBLASLt multiplies, in f32 or wider:
/// matrices with rows or columns of neighbours, half precision (bf16 where the
/// GPU has arithmetic of it), f32, f64 and complex numbers. f32 is rounded to
/// TF32 only where the product allows it. On a GPU of this capability also
/// products of bytes, if the addresses of their matrices are so aligned; it may
/// lack an algorithm for one of these.
bool isForBlas(const Matmul &matmul, int capability, uint32_t alignment);

/// A product made ready: its algorithm is chosen once, for the alignments of
/// its first operands. It has the same bits in each run.
class Product {
public:
  /// The workspace of a stream, of so many bytes. `bias` and `aux` are those of
  /// the epilogue, for their alignment.
  Product(const Gpu &gpu, BlasHandle handle, const Matmul &matmul,
          uint32_t alignment, int64_t workspaceBytes, const void *bias,
          const void *aux);
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;

  /// Whether `run` does what the epilogue says; else the library has no
  /// algorithm that does, and the product alone is formed.
  bool doesEpilogue() const { return epilogue != Epilogue::None; }
  /// Whether the library has an algorithm, as it has but for bytes.
  bool isThere() const { return isChosen; }
  void run(const void *lhs, const void *rhs, void *out, const void *bias,
           const void *aux, void *workspace, Stream stream) const;

  /// "cuBLASLt 66, tile 20, stages 8, 2 parts of the sum, gelu_aux".
  std::string algorithm() const;

private:
  void check(const char *function, BlasStatus status) const;
  template <typename Value>
  void describe(int attribute, const Value &value) const;
  /// Whether the library has an algorithm.
  bool choose(ProductPreference *preference);

  const Gpu &gpu;
  BlasHandle handle;
  bool isTransposed = false, accumulates = false, isChosen = false;
  /// The type of what the product and the addend are multiplied by.
  int scale;
  int64_t lhsBytes, outBytes;
  /// That the library does.
  Epilogue epilogue = Epilogue::None;
  /// The dimensions of the batch, but for the one that the library does.
  std::vector<Matmul::Batch> outer;
  template <typename Object>
  using Owned = std::unique_ptr<Object, BlasStatus (*)(Object *)>;
  Owned<ProductDescription> description;
  Owned<MatrixLayout> a, b, d;
  ProductChoice choice = {};
};

/// The largest power of two, at most 256, that divides the addresses of all
/// matrices of the batch, and of what the epilogue uses, or null.
uint32_t alignmentOf(const Matmul &matmul, const void *lhs, const void *rhs,
                     const void *out, const void *bias, const void *aux);

/// What a rank on a GPU of this compute capability (90 for sm_90) takes for its
/// products besides their buffers, in bytes.
int64_t workspaceOfProducts(int capability);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_PRODUCTS_H
