//===- Matrices.h - Batches of matrices for library calls -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linear algebra works on the last dimensions of its operands, once for each
// element of the others. The batch checks shapes when a program is loaded and
// walks through the buffers when it runs.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_MATRICES_H
#define WHALE_RUNTIME_LIBRARY_MATRICES_H

#include "library/Library.h"

#include <complex>
#include <cstdint>
#include <type_traits>

namespace whale::runtime {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
/// The type of the magnitude of T.
template <typename T>
using Real = typename RealOf<T>::type;
template <typename T>
inline constexpr bool isComplexType = !std::is_same_v<T, Real<T>>;

template <typename T>
constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return DType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::F64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::C64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::C128;
  else
    return DType::I32;
}

/// One element of a batch: the places of its operands and results.
struct MatrixCall {
  std::vector<const void *> inputs;
  std::vector<void *> outputs;

  template <typename T>
  const T *in(size_t i) const {
    return static_cast<const T *>(inputs[i]);
  }
  template <typename T>
  T *out(size_t i) const {
    return static_cast<T *>(outputs[i]);
  }
};

class MatrixBatch {
public:
  /// The batch of the first operand; each element of it has `rank` dimensions.
  /// Throws Error where it has fewer.
  MatrixBatch(const LibraryRequest &request, std::string name, size_t rank = 2);

  /// An extent of an element of the first operand.
  int64_t extent(size_t dim) const;

  /// Checks that the next operand, or result, is of this type and shape.
  /// Throws Error.
  template <typename T>
  void input(Shape tail) {
    check(request->inputs, inputBytes, dtypeOf<T>(), tail, "input");
  }
  template <typename T>
  void output(Shape tail) {
    check(request->outputs, outputBytes, dtypeOf<T>(), tail, "result");
  }

  /// A letter of LAPACK in the configuration, one of `allowed`. Throws Error.
  char letter(const char *key, std::string_view allowed) const;
  bool flag(const char *key) const;
  int32_t integer(const char *key, int64_t least, int64_t most) const;

  /// The function that runs `body` for each element, on at most so many threads
  /// at once. Throws Error if operands are left over.
  LibraryFunction finish(std::function<void(const MatrixCall &)> body,
                         int64_t mostThreads = INT64_MAX) const;

private:
  void check(const std::vector<LibraryRequest::Tensor> &tensors,
             std::vector<int64_t> &bytes, DType dtype, const Shape &tail,
             const char *what) const;

  const LibraryRequest *request;
  std::string name;
  Shape batch, element;
  std::vector<int64_t> inputBytes, outputBytes;
};

[[noreturn]] void failElementType(const std::string &name);

/// Calls `function.template operator()<T>()` with the type of the elements.
/// Throws Error where linear algebra has none.
template <typename Function>
decltype(auto) dispatchNumber(const LibraryRequest &request,
                              const std::string &name, Function &&function) {
  switch (request.inputs.empty() ? DType::I1 : request.inputs[0].dtype) {
  case DType::F32:
    return function.template operator()<float>();
  case DType::F64:
    return function.template operator()<double>();
  case DType::C64:
    return function.template operator()<std::complex<float>>();
  case DType::C128:
    return function.template operator()<std::complex<double>>();
  default:
    failElementType(name);
  }
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_MATRICES_H
