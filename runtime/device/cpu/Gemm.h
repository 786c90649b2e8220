//===- Gemm.h - Products of dense matrices ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C = A * B for dense row-major matrices of the types in which products are
// computed; what has other types or strides is converted to these first.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_GEMM_H
#define WHALE_RUNTIME_DEVICE_CPU_GEMM_H

#include "Numeric.h"

#include <type_traits>

namespace whale::runtime {

/// `base` moved by `count` elements; the memory of an empty buffer is null and
/// stays so.
template <typename T>
T *moved(T *base, int64_t count) {
  return base ? base + count : nullptr;
}

/// A: m x k, B: k x n, C: m x n, all dense. Sums run over k in a fixed order.
/// T: float, double, uint64_t or a complex type.
template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, const T *a, const T *b, T *c,
          int64_t threads);

/// Calls `function.template operator()<T>()` with the type in which a product
/// of `lhs` and `rhs` into `out` is computed: integers modulo 2^64 (hence also
/// modulo the width of the result), half precision and f8 in float.
template <typename Function>
void dispatchProduct(DType lhs, DType rhs, DType out, Function &&function) {
  bool wide = false, complex = false, floating = false;
  for (DType dtype : {lhs, rhs, out}) {
    wide |= dtype == DType::F64 || dtype == DType::C128;
    complex |= isComplex(dtype);
    floating |= isFloat(dtype);
  }
  if (complex && wide)
    function.template operator()<std::complex<double>>();
  else if (complex)
    function.template operator()<std::complex<float>>();
  else if (wide)
    function.template operator()<double>();
  else if (floating)
    function.template operator()<float>();
  else
    function.template operator()<uint64_t>();
}

/// Converts an element to the type of a product.
template <typename T, typename Storage>
T toProduct(Storage value) {
  auto loaded = Element<Storage>::load(value);
  using Compute = decltype(loaded);
  if constexpr (std::is_same_v<T, std::complex<float>> ||
                std::is_same_v<T, std::complex<double>>) {
    using Real = typename T::value_type;
    if constexpr (std::is_arithmetic_v<Compute>)
      return T(static_cast<Real>(loaded));
    else
      return T(static_cast<Real>(loaded.real()),
               static_cast<Real>(loaded.imag()));
  } else if constexpr (std::is_arithmetic_v<Compute>) {
    // Integers are widened with their sign, then wrap.
    if constexpr (std::is_integral_v<Compute> && std::is_signed_v<Compute>)
      return static_cast<T>(static_cast<int64_t>(loaded));
    else
      return static_cast<T>(loaded);
  } else {
    return T(); // complex into real: refused when the program is read
  }
}

/// Converts a product to an element, rounding once.
template <typename Storage, typename T>
Storage fromProduct(T value) {
  using Compute = typename Element<Storage>::Compute;
  if constexpr (std::is_arithmetic_v<T>) {
    return Element<Storage>::store(static_cast<Compute>(value));
  } else if constexpr (!std::is_arithmetic_v<Compute>) {
    using Real = typename Compute::value_type;
    return Element<Storage>::store(Compute(static_cast<Real>(value.real()),
                                           static_cast<Real>(value.imag())));
  } else {
    return Storage();
  }
}

/// Converts a strided matrix to a dense one, and back.
template <typename T>
void packMatrix(DType dtype, const void *src, int64_t rows, int64_t rowStride,
                int64_t columns, int64_t columnStride, T *dst, int64_t threads);
template <typename T>
void unpackMatrix(DType dtype, void *dst, int64_t rows, int64_t rowStride,
                  int64_t columns, int64_t columnStride, const T *src,
                  int64_t threads);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_GEMM_H
