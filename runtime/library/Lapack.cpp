//===- Lapack.cpp - Factorizations and eigenvalues --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LAPACK through LAPACKE, on row-major matrices. Operands, results and
// configuration are those of JAX's custom calls `lapack_?NAME_ffi`.
//
//===----------------------------------------------------------------------===//

#include "library/Matrices.h"
#include "whale/Runtime/Error.h"

#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <algorithm>
#include <limits>

namespace whale::runtime {

// One name for the four types of a routine.
#define WHALE_LAPACK(NAME)                                                     \
  template <typename T, typename... Args>                                      \
  static lapack_int NAME(Args... args) {                                       \
    if constexpr (std::is_same_v<T, float>)                                    \
      return LAPACKE_s##NAME(LAPACK_ROW_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, double>)                              \
      return LAPACKE_d##NAME(LAPACK_ROW_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, std::complex<float>>)                 \
      return LAPACKE_c##NAME(LAPACK_ROW_MAJOR, args...);                       \
    else                                                                       \
      return LAPACKE_z##NAME(LAPACK_ROW_MAJOR, args...);                       \
  }
// Routines with other names for real and for complex matrices.
#define WHALE_LAPACK_PAIR(NAME, REAL, COMPLEX)                                 \
  template <typename T, typename... Args>                                      \
  static lapack_int NAME(Args... args) {                                       \
    if constexpr (std::is_same_v<T, float>)                                    \
      return LAPACKE_s##REAL(LAPACK_ROW_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, double>)                              \
      return LAPACKE_d##REAL(LAPACK_ROW_MAJOR, args...);                       \
    else if constexpr (std::is_same_v<T, std::complex<float>>)                 \
      return LAPACKE_c##COMPLEX(LAPACK_ROW_MAJOR, args...);                    \
    else                                                                       \
      return LAPACKE_z##COMPLEX(LAPACK_ROW_MAJOR, args...);                    \
  }
WHALE_LAPACK(potrf)
WHALE_LAPACK(getrf)
WHALE_LAPACK(geqrf)
WHALE_LAPACK(geqp3)
WHALE_LAPACK(gesdd)
WHALE_LAPACK(gehrd)
WHALE_LAPACK(gtsv)
WHALE_LAPACK_PAIR(orgqr, orgqr, ungqr)
WHALE_LAPACK_PAIR(ormqr, ormqr, unmqr)
WHALE_LAPACK_PAIR(syevd, syevd, heevd)
WHALE_LAPACK_PAIR(sytrd, sytrd, hetrd)
#undef WHALE_LAPACK
#undef WHALE_LAPACK_PAIR

namespace {
using Int = lapack_int;

/// Extents as LAPACK wants them: the leading dimension is never 0.
Int lead(int64_t extent) {
  return static_cast<Int>(std::max<int64_t>(extent, 1));
}

/// A routine whose operand becomes its first result.
template <typename T>
T *copyFirst(const MatrixCall &call, int64_t count) {
  std::copy_n(call.in<T>(0), count, call.out<T>(0));
  return call.out<T>(0);
}

template <typename T>
LibraryFunction prepareCholeskyOf(const LibraryRequest &request) {
  MatrixBatch batch(request, "cholesky");
  int64_t n = batch.extent(0);
  bool lower = batch.flag("lower");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  return batch.finish([=](const MatrixCall &call) {
    T *a = copyFirst<T>(call, n * n);
    Int info = potrf<T>(lower ? 'L' : 'U', Int(n), a, lead(n));
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < n; ++column) {
        bool inside = lower ? column <= row : column >= row;
        if (!inside)
          a[row * n + column] = 0;
        else if (info != 0)
          a[row * n + column] = std::numeric_limits<Real<T>>::quiet_NaN();
      }
  });
}

template <typename T>
LibraryFunction preparePotrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.potrf");
  int64_t n = batch.extent(0);
  char uplo = batch.letter("uplo", "LU");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(1) =
        potrf<T>(uplo, Int(n), copyFirst<T>(call, n * n), lead(n));
  });
}

template <typename T>
LibraryFunction prepareGetrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.getrf");
  int64_t m = batch.extent(0), n = batch.extent(1);
  batch.input<T>({m, n});
  batch.output<T>({m, n});
  batch.output<int32_t>({std::min(m, n)});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(2) = getrf<T>(Int(m), Int(n), copyFirst<T>(call, m * n),
                                     lead(n), call.out<int32_t>(1));
  });
}

template <typename T>
LibraryFunction prepareGeqrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.geqrf");
  int64_t m = batch.extent(0), n = batch.extent(1);
  batch.input<T>({m, n});
  batch.output<T>({m, n});
  batch.output<T>({std::min(m, n)});
  return batch.finish([=](const MatrixCall &call) {
    geqrf<T>(Int(m), Int(n), copyFirst<T>(call, m * n), lead(n),
             call.out<T>(1));
  });
}

template <typename T>
LibraryFunction prepareGeqp3(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.geqp3");
  int64_t m = batch.extent(0), n = batch.extent(1);
  batch.input<T>({m, n});
  batch.input<int32_t>({n});
  batch.output<T>({m, n});
  batch.output<int32_t>({n});
  batch.output<T>({std::min(m, n)});
  return batch.finish([=](const MatrixCall &call) {
    std::copy_n(call.in<int32_t>(1), n, call.out<int32_t>(1));
    geqp3<T>(Int(m), Int(n), copyFirst<T>(call, m * n), lead(n),
             call.out<int32_t>(1), call.out<T>(2));
  });
}

template <typename T>
LibraryFunction prepareOrgqr(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.orgqr");
  int64_t m = batch.extent(0), n = batch.extent(1);
  int64_t k = request.inputs.size() > 1 && !request.inputs[1].shape.empty()
                  ? request.inputs[1].shape.back()
                  : 0;
  batch.input<T>({m, n});
  batch.input<T>({k});
  batch.output<T>({m, n});
  return batch.finish([=](const MatrixCall &call) {
    orgqr<T>(Int(m), Int(n), Int(k), copyFirst<T>(call, m * n), lead(n),
             call.in<T>(1));
  });
}

/// The reflectors of the first operand, with the scales of the second, times
/// the third.
template <typename T>
LibraryFunction prepareOrmqr(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.ormqr");
  // What the batch does not say: a missing dimension fails the checks below.
  auto extent = [&](size_t input, size_t fromEnd) -> int64_t {
    if (request.inputs.size() <= input ||
        request.inputs[input].shape.size() < fromEnd)
      return 0;
    const Shape &shape = request.inputs[input].shape;
    return shape[shape.size() - fromEnd];
  };
  int64_t columns = batch.extent(1), k = extent(1, 1);
  int64_t m = extent(2, 2), n = extent(2, 1);
  bool left = batch.flag("left"), transpose = batch.flag("transpose");
  int64_t order = left ? m : n;
  batch.input<T>({order, columns});
  batch.input<T>({k});
  batch.input<T>({m, n});
  batch.output<T>({m, n});
  if (k > std::min(order, columns))
    throw Error("lapack.ormqr has " + std::to_string(k) +
                " reflectors, which a matrix of " + std::to_string(order) +
                " by " + std::to_string(columns) + " does not hold");
  char how = !transpose ? 'N' : isComplexType<T> ? 'C' : 'T';
  return batch.finish([=](const MatrixCall &call) {
    std::copy_n(call.in<T>(2), m * n, call.out<T>(0));
    if (m > 0 && n > 0)
      ormqr<T>(left ? 'L' : 'R', how, Int(m), Int(n), Int(k), call.in<T>(0),
               lead(columns), call.in<T>(1), call.out<T>(0), lead(n));
  });
}

template <typename T>
LibraryFunction prepareGesdd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gesdd");
  int64_t m = batch.extent(0), n = batch.extent(1), k = std::min(m, n);
  char mode = batch.letter("mode", "ASN");
  int64_t columns = mode == 'A' ? m : k, rows = mode == 'A' ? n : k;
  // Without vectors their results have any shape, and nothing in them.
  auto sizeOf = [&](size_t result, Shape usual) {
    if (mode != 'N' || request.outputs.size() <= result ||
        request.outputs[result].shape.size() < 2)
      return usual;
    const Shape &shape = request.outputs[result].shape;
    return Shape(shape.end() - 2, shape.end());
  };
  Shape left = sizeOf(2, {m, columns}), right = sizeOf(3, {rows, n});
  batch.input<T>({m, n});
  batch.output<T>({m, n});
  batch.output<Real<T>>({k});
  batch.output<T>(left);
  batch.output<T>(right);
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    if (mode == 'N') {
      std::fill_n(call.out<T>(2), elementCount(left), T(0));
      std::fill_n(call.out<T>(3), elementCount(right), T(0));
    }
    *call.out<int32_t>(4) =
        gesdd<T>(mode, Int(m), Int(n), copyFirst<T>(call, m * n), lead(n),
                 call.out<Real<T>>(1), call.out<T>(2), lead(columns),
                 call.out<T>(3), lead(n));
  });
}

template <typename T>
LibraryFunction prepareSyevd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.syevd");
  int64_t n = batch.extent(0);
  char mode = batch.letter("mode", "NV"), uplo = batch.letter("uplo", "LU");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<Real<T>>({n});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(2) =
        syevd<T>(mode, uplo, Int(n), copyFirst<T>(call, n * n), lead(n),
                 call.out<Real<T>>(1));
  });
}

template <typename T>
LibraryFunction prepareSytrd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.sytrd");
  int64_t n = batch.extent(0), less = std::max<int64_t>(n - 1, 0);
  char uplo = batch.letter("uplo", "LU");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<Real<T>>({n});
  batch.output<Real<T>>({less});
  batch.output<T>({less});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(4) =
        sytrd<T>(uplo, Int(n), copyFirst<T>(call, n * n), lead(n),
                 call.out<Real<T>>(1), call.out<Real<T>>(2), call.out<T>(3));
  });
}

template <typename T>
LibraryFunction prepareGehrd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gehrd");
  int64_t n = batch.extent(0), less = std::max<int64_t>(n - 1, 0);
  Int low = batch.integer("low", 1, n), high = batch.integer("high", 1, n);
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<T>({less});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(2) = gehrd<T>(
        Int(n), low, high, copyFirst<T>(call, n * n), lead(n), call.out<T>(1));
  });
}

template <typename T>
LibraryFunction prepareGtsv(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gtsv", /*rank=*/1);
  int64_t n = batch.extent(0);
  int64_t columns =
      request.inputs.size() > 3 && !request.inputs[3].shape.empty()
          ? request.inputs[3].shape.back()
          : 0;
  for (int i = 0; i < 3; ++i)
    batch.input<T>({n});
  batch.input<T>({n, columns});
  for (int i = 0; i < 3; ++i)
    batch.output<T>({n});
  batch.output<T>({n, columns});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    for (size_t i = 0; i < 4; ++i)
      std::copy_n(call.in<T>(i), i < 3 ? n : n * columns, call.out<T>(i));
    // The first element of the lower diagonal stands for nothing.
    *call.out<int32_t>(4) =
        n == 0
            ? 0
            : gtsv<T>(Int(n), Int(columns), call.out<T>(0) + 1, call.out<T>(1),
                      call.out<T>(2), call.out<T>(3), lead(columns));
  });
}

/// Eigenvectors that LAPACK gives as real and imaginary columns.
template <typename T>
void joinPairs(int64_t n, const T *imaginary, const T *packed,
               std::complex<T> *vectors) {
  for (int64_t column = 0; column < n; ++column) {
    bool pair = imaginary[column] != 0 && column + 1 < n;
    for (int64_t row = 0; row < n; ++row) {
      T re = packed[row * n + column];
      T im = pair ? packed[row * n + column + 1] : T(0);
      vectors[row * n + column] = {re, im};
      if (pair)
        vectors[row * n + column + 1] = {re, -im};
    }
    column += pair;
  }
}

Int callGeev(char l, char r, Int n, std::complex<float> *a,
             std::complex<float> *w, std::complex<float> *vl,
             std::complex<float> *vr) {
  return LAPACKE_cgeev(LAPACK_ROW_MAJOR, l, r, n, a, lead(n), w, vl, lead(n),
                       vr, lead(n));
}
Int callGeev(char l, char r, Int n, std::complex<double> *a,
             std::complex<double> *w, std::complex<double> *vl,
             std::complex<double> *vr) {
  return LAPACKE_zgeev(LAPACK_ROW_MAJOR, l, r, n, a, lead(n), w, vl, lead(n),
                       vr, lead(n));
}
Int callGeev(char l, char r, Int n, float *a, float *re, float *im, float *vl,
             float *vr) {
  return LAPACKE_sgeev(LAPACK_ROW_MAJOR, l, r, n, a, lead(n), re, im, vl,
                       lead(n), vr, lead(n));
}
Int callGeev(char l, char r, Int n, double *a, double *re, double *im,
             double *vl, double *vr) {
  return LAPACKE_dgeev(LAPACK_ROW_MAJOR, l, r, n, a, lead(n), re, im, vl,
                       lead(n), vr, lead(n));
}

template <typename T>
LibraryFunction prepareGeev(const LibraryRequest &request) {
  using Complex = std::complex<Real<T>>;
  MatrixBatch batch(request, "lapack.geev");
  int64_t n = batch.extent(0);
  char left = batch.letter("compute_left", "NV");
  char right = batch.letter("compute_right", "NV");
  batch.input<T>({n, n});
  batch.output<T>({n});
  if constexpr (!isComplexType<T>)
    batch.output<T>({n});
  batch.output<Complex>({n, n});
  batch.output<Complex>({n, n});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    std::vector<T> a(call.in<T>(0), call.in<T>(0) + n * n);
    if constexpr (isComplexType<T>) {
      *call.out<int32_t>(3) =
          callGeev(left, right, Int(n), a.data(), call.out<T>(0),
                   call.out<T>(1), call.out<T>(2));
    } else {
      std::vector<T> vl(n * n), vr(n * n);
      T *im = call.out<T>(1);
      *call.out<int32_t>(4) =
          callGeev(left, right, Int(n), a.data(), call.out<T>(0), im, vl.data(),
                   vr.data());
      joinPairs<T>(n, im, vl.data(), call.out<Complex>(2));
      joinPairs<T>(n, im, vr.data(), call.out<Complex>(3));
    }
  });
}

Int callGees(char mode, Int n, std::complex<float> *a, Int *sdim,
             std::complex<float> *w, std::complex<float> *vs) {
  return LAPACKE_cgees(LAPACK_ROW_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, w, vs, lead(n));
}
Int callGees(char mode, Int n, std::complex<double> *a, Int *sdim,
             std::complex<double> *w, std::complex<double> *vs) {
  return LAPACKE_zgees(LAPACK_ROW_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, w, vs, lead(n));
}
Int callGees(char mode, Int n, float *a, Int *sdim, float *re, float *im,
             float *vs) {
  return LAPACKE_sgees(LAPACK_ROW_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, re, im, vs, lead(n));
}
Int callGees(char mode, Int n, double *a, Int *sdim, double *re, double *im,
             double *vs) {
  return LAPACKE_dgees(LAPACK_ROW_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, re, im, vs, lead(n));
}

template <typename T>
LibraryFunction prepareGees(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gees");
  int64_t n = batch.extent(0);
  char mode = batch.letter("mode", "NV");
  batch.letter("sort", "N");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<T>({n, n});
  batch.output<T>({n});
  if constexpr (!isComplexType<T>)
    batch.output<T>({n});
  batch.output<int32_t>({});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    T *a = copyFirst<T>(call, n * n);
    std::fill_n(call.out<T>(1), n * n, T(0));
    if constexpr (isComplexType<T>)
      *call.out<int32_t>(4) = callGees(mode, Int(n), a, call.out<int32_t>(3),
                                       call.out<T>(2), call.out<T>(1));
    else
      *call.out<int32_t>(5) =
          callGees(mode, Int(n), a, call.out<int32_t>(4), call.out<T>(2),
                   call.out<T>(3), call.out<T>(1));
  });
}
} // namespace

// A factory for each routine, whatever the elements.
#define WHALE_PREPARE(NAME, FUNCTION)                                          \
  static LibraryFunction prepare##NAME##Any(const LibraryRequest &request) {   \
    return dispatchNumber(request, FUNCTION, [&]<typename T>() {               \
      return prepare##NAME<T>(request);                                        \
    });                                                                        \
  }
WHALE_PREPARE(CholeskyOf, "cholesky")
WHALE_PREPARE(Potrf, "lapack.potrf")
WHALE_PREPARE(Getrf, "lapack.getrf")
WHALE_PREPARE(Geqrf, "lapack.geqrf")
WHALE_PREPARE(Geqp3, "lapack.geqp3")
WHALE_PREPARE(Orgqr, "lapack.orgqr")
WHALE_PREPARE(Ormqr, "lapack.ormqr")
WHALE_PREPARE(Gesdd, "lapack.gesdd")
WHALE_PREPARE(Syevd, "lapack.syevd")
WHALE_PREPARE(Sytrd, "lapack.sytrd")
WHALE_PREPARE(Gehrd, "lapack.gehrd")
WHALE_PREPARE(Gtsv, "lapack.gtsv")
WHALE_PREPARE(Geev, "lapack.geev")
WHALE_PREPARE(Gees, "lapack.gees")
#undef WHALE_PREPARE

std::map<std::string, LibraryFactory> lapackFunctions() {
  return {
      {"cholesky", prepareCholeskyOfAny}, {"lapack.potrf", preparePotrfAny},
      {"lapack.getrf", prepareGetrfAny},  {"lapack.geqrf", prepareGeqrfAny},
      {"lapack.geqp3", prepareGeqp3Any},  {"lapack.orgqr", prepareOrgqrAny},
      {"lapack.gesdd", prepareGesddAny},  {"lapack.syevd", prepareSyevdAny},
      {"lapack.sytrd", prepareSytrdAny},  {"lapack.gehrd", prepareGehrdAny},
      {"lapack.gtsv", prepareGtsvAny},    {"lapack.geev", prepareGeevAny},
      {"lapack.gees", prepareGeesAny},    {"lapack.ormqr", prepareOrmqrAny}};
}

} // namespace whale::runtime
