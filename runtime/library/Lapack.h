//===- Lapack.h - Calls of LAPACK -------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_LAPACK_H
#define WHALE_RUNTIME_LIBRARY_LAPACK_H

#include "library/Matrices.h"

#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <algorithm>
#include <initializer_list>

namespace whale::runtime {

// One name for the four types of a routine.
#define WHALE_LAPACK(NAME)                                                     \
  template <typename T, typename... Args>                                      \
  static lapack_int NAME(Args... args) {                                       \
    if constexpr (std::is_same_v<T, float>)                                    \
      return LAPACKE_s##NAME(LAPACK_COL_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, double>)                              \
      return LAPACKE_d##NAME(LAPACK_COL_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, std::complex<float>>)                 \
      return LAPACKE_c##NAME(LAPACK_COL_MAJOR, args...);                       \
    else                                                                       \
      return LAPACKE_z##NAME(LAPACK_COL_MAJOR, args...);                       \
  }
// Routines with other names for real and for complex matrices.
#define WHALE_LAPACK_PAIR(NAME, REAL, COMPLEX)                                 \
  template <typename T, typename... Args>                                      \
  static lapack_int NAME(Args... args) {                                       \
    if constexpr (std::is_same_v<T, float>)                                    \
      return LAPACKE_s##REAL(LAPACK_COL_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, double>)                              \
      return LAPACKE_d##REAL(LAPACK_COL_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, std::complex<float>>)                 \
      return LAPACKE_c##COMPLEX(LAPACK_COL_MAJOR, args...);                    \
    else                                                                       \
      return LAPACKE_z##COMPLEX(LAPACK_COL_MAJOR, args...);                    \
  }

// A factory for each routine, whatever the elements.
#define WHALE_PREPARE(NAME, FUNCTION)                                          \
  static LibraryFunction prepare##NAME##Any(const LibraryRequest &request) {   \
    return dispatchNumber(request, FUNCTION, [&]<typename T>() {               \
      return prepare##NAME<T>(request);                                        \
    });                                                                        \
  }

using Int = lapack_int;

/// Extents as LAPACK takes them: the leading dimension is never 0.
inline Int lead(int64_t extent) {
  return static_cast<Int>(std::max<int64_t>(extent, 1));
}

/// A routine whose operand becomes its first result.
template <typename T>
T *copyFirst(const MatrixCall &call, int64_t count) {
  std::copy_n(call.in<T>(0), count, call.out<T>(0));
  return call.out<T>(0);
}

/// What LAPACKE returned for `routine`. A negative number is a NaN in one of
/// the `operands` (arguments by number, 1 the layout), and nothing is computed
/// then; for any other argument it is an Error.
Int checkInfo(const char *routine, Int info,
              std::initializer_list<Int> operands);

/// What potrf computes of an n by n matrix of real numbers, in place; as its
/// `info`, NaNs are no positive minor. Quick up to some hundred rows.
template <typename T>
Int factorizeSmall(char uplo, int64_t n, T *a);

/// Singular values and eigenvalues.
std::map<std::string, LibraryFactory> eigenvalueFunctions();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_LAPACK_H
