//===- Eigenvalues.cpp - Eigenvalues and singular values --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a request with types, shapes and the modes of a LAPACK routine (gesdd,
// syevd, geev, gees). Out: a function that calls it for each matrix of a batch.
// Matrices are column-major: a tensor of [n, m] is an m by n matrix. gesdd and
// syevd are called below LAPACKE's usual interface, to give them at least the
// workspace of Workspace.h. geev's eigenvectors of real matrices, which come as
// real and imaginary columns, are joined to complex ones. A matrix with a NaN
// is not computed; its info says so.
//
// Cost: for each matrix LAPACK's routine, cubic in its extents; before it a
// copy and a pass that looks for NaNs, and an allocation of its workspace (for
// geev two more matrices of vectors). Matrices of a batch are shared out to
// threads.
//
//===----------------------------------------------------------------------===//

#include "library/Lapack.h"
#include "library/Workspace.h"

#include <lapacke_utils.h>

#include <memory>

namespace whale::runtime {

WHALE_LAPACK_PAIR(syevdWork, syevd_work, heevd_work)
WHALE_LAPACK_PAIR(gesddWork, gesdd_work, gesdd_work)

namespace {
/// Uninitialized memory for a call.
template <typename T>
std::unique_ptr<T[]> allocate(int64_t count) {
  return std::make_unique_for_overwrite<T[]>(count);
}

/// Of a triangle: what is in the other is not read.
bool hasNaN(char uplo, Int n, const float *a) {
  return LAPACKE_ssy_nancheck(LAPACK_COL_MAJOR, uplo, n, a, lead(n));
}
bool hasNaN(char uplo, Int n, const double *a) {
  return LAPACKE_dsy_nancheck(LAPACK_COL_MAJOR, uplo, n, a, lead(n));
}
bool hasNaN(char uplo, Int n, const std::complex<float> *a) {
  return LAPACKE_che_nancheck(LAPACK_COL_MAJOR, uplo, n, a, lead(n));
}
bool hasNaN(char uplo, Int n, const std::complex<double> *a) {
  return LAPACKE_zhe_nancheck(LAPACK_COL_MAJOR, uplo, n, a, lead(n));
}

/// The number of LAPACKE's argument with the matrix.
constexpr Int kMatrix = 5;

/// Asks `call(work, count)` for the size of its workspace, by a count of -1,
/// and calls it with that.
template <typename T, typename Call>
Int callWithWorkspace(Workspace least, Call call) {
  T asked = 0;
  if (Int info = call(&asked, -1))
    return info;
  int64_t count = workspaceSize(least.elements, std::real(asked));
  return call(allocate<T>(count).get(), count);
}

template <typename T>
Int callSyevd(Workspace least, char mode, char uplo, Int n, T *a, Real<T> *w) {
  if (hasNaN(uplo, n, a))
    return -kMatrix;
  auto integers = allocate<Int>(least.integers);
  auto reals = allocate<Real<T>>(least.reals);
  auto call = [&](T *work, int64_t count) {
    auto unlessAsked = [&](int64_t size) { return Int(count < 0 ? -1 : size); };
    if constexpr (isComplexType<T>)
      return syevdWork<T>(mode, uplo, n, a, lead(n), w, work, Int(count),
                          reals.get(), unlessAsked(least.reals), integers.get(),
                          unlessAsked(least.integers));
    else
      return syevdWork<T>(mode, uplo, n, a, lead(n), w, work, Int(count),
                          integers.get(), unlessAsked(least.integers));
  };
  return callWithWorkspace<T>(least, call);
}

template <typename T>
Int callGesdd(Workspace least, char mode, Int m, Int n, T *a, Real<T> *s, T *u,
              T *vt, Int leadOfVt) {
  if (std::any_of(a, a + int64_t(m) * n, [](T x) { return x != x; }))
    return -kMatrix;
  auto integers = allocate<Int>(least.integers);
  auto reals = allocate<Real<T>>(least.reals);
  auto call = [&](T *work, int64_t count) {
    if constexpr (isComplexType<T>)
      return gesddWork<T>(mode, m, n, a, lead(m), s, u, lead(m), vt, leadOfVt,
                          work, Int(count), reals.get(), integers.get());
    else
      return gesddWork<T>(mode, m, n, a, lead(m), s, u, lead(m), vt, leadOfVt,
                          work, Int(count), integers.get());
  };
  return callWithWorkspace<T>(least, call);
}

template <typename T>
LibraryFunction prepareGesdd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gesdd");
  int64_t n = batch.extent(0), m = batch.extent(1), k = std::min(m, n);
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
  Workspace least = workspaceOfGesdd(isComplexType<T>, mode, m, n);
  Shape left = sizeOf(2, {columns, m}), right = sizeOf(3, {n, rows});
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<Real<T>>({k});
  batch.output<T>(left);
  batch.output<T>(right);
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    if (mode == 'N') {
      std::fill_n(call.out<T>(2), elementCount(left), T(0));
      std::fill_n(call.out<T>(3), elementCount(right), T(0));
    }
    Int info = callGesdd<T>(least, mode, Int(m), Int(n),
                            copyFirst<T>(call, m * n), call.out<Real<T>>(1),
                            call.out<T>(2), call.out<T>(3), lead(rows));
    *call.out<int32_t>(4) = checkInfo("lapack.gesdd", info, {5});
  });
}

template <typename T>
LibraryFunction prepareSyevd(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.syevd");
  int64_t n = batch.extent(0);
  char mode = batch.letter("mode", "NV"), uplo = batch.letter("uplo", "LU");
  Workspace least = workspaceOfSyevd(isComplexType<T>, mode, n);
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<Real<T>>({n});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    Int info = callSyevd<T>(least, mode, uplo, Int(n),
                            copyFirst<T>(call, n * n), call.out<Real<T>>(1));
    *call.out<int32_t>(2) = checkInfo("lapack.syevd", info, {5});
  });
}

/// Eigenvectors that LAPACK gives as real and imaginary columns.
template <typename T>
void joinPairs(int64_t n, const T *imaginary, const T *packed,
               std::complex<T> *vectors) {
  for (int64_t column = 0; column < n; ++column) {
    bool pair = imaginary[column] != 0 && column + 1 < n;
    const T *re = packed + column * n, *im = re + n;
    std::complex<T> *to = vectors + column * n;
    for (int64_t row = 0; row < n; ++row) {
      to[row] = {re[row], pair ? im[row] : T(0)};
      if (pair)
        to[n + row] = {re[row], -im[row]};
    }
    column += pair;
  }
}

Int callGeev(char l, char r, Int n, std::complex<float> *a,
             std::complex<float> *w, std::complex<float> *vl,
             std::complex<float> *vr) {
  return LAPACKE_cgeev(LAPACK_COL_MAJOR, l, r, n, a, lead(n), w, vl, lead(n),
                       vr, lead(n));
}
Int callGeev(char l, char r, Int n, std::complex<double> *a,
             std::complex<double> *w, std::complex<double> *vl,
             std::complex<double> *vr) {
  return LAPACKE_zgeev(LAPACK_COL_MAJOR, l, r, n, a, lead(n), w, vl, lead(n),
                       vr, lead(n));
}
Int callGeev(char l, char r, Int n, float *a, float *re, float *im, float *vl,
             float *vr) {
  return LAPACKE_sgeev(LAPACK_COL_MAJOR, l, r, n, a, lead(n), re, im, vl,
                       lead(n), vr, lead(n));
}
Int callGeev(char l, char r, Int n, double *a, double *re, double *im,
             double *vl, double *vr) {
  return LAPACKE_dgeev(LAPACK_COL_MAJOR, l, r, n, a, lead(n), re, im, vl,
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
      Int info = callGeev(left, right, Int(n), a.data(), call.out<T>(0),
                          call.out<T>(1), call.out<T>(2));
      *call.out<int32_t>(3) = checkInfo("lapack.geev", info, {5});
    } else {
      std::vector<T> vl(n * n), vr(n * n);
      T *im = call.out<T>(1);
      Int info = callGeev(left, right, Int(n), a.data(), call.out<T>(0), im,
                          vl.data(), vr.data());
      *call.out<int32_t>(4) = checkInfo("lapack.geev", info, {5});
      joinPairs<T>(n, im, vl.data(), call.out<Complex>(2));
      joinPairs<T>(n, im, vr.data(), call.out<Complex>(3));
    }
  });
}

Int callGees(char mode, Int n, std::complex<float> *a, Int *sdim,
             std::complex<float> *w, std::complex<float> *vs) {
  return LAPACKE_cgees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, w, vs, lead(n));
}
Int callGees(char mode, Int n, std::complex<double> *a, Int *sdim,
             std::complex<double> *w, std::complex<double> *vs) {
  return LAPACKE_zgees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, w, vs, lead(n));
}
Int callGees(char mode, Int n, float *a, Int *sdim, float *re, float *im,
             float *vs) {
  return LAPACKE_sgees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a, lead(n),
                       sdim, re, im, vs, lead(n));
}
Int callGees(char mode, Int n, double *a, Int *sdim, double *re, double *im,
             double *vs) {
  return LAPACKE_dgees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, a, lead(n),
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
      *call.out<int32_t>(4) =
          checkInfo("lapack.gees",
                    callGees(mode, Int(n), a, call.out<int32_t>(3),
                             call.out<T>(2), call.out<T>(1)),
                    {6});
    else
      *call.out<int32_t>(5) =
          checkInfo("lapack.gees",
                    callGees(mode, Int(n), a, call.out<int32_t>(4),
                             call.out<T>(2), call.out<T>(3), call.out<T>(1)),
                    {6});
  });
}
} // namespace

WHALE_PREPARE(Gesdd, "lapack.gesdd")
WHALE_PREPARE(Syevd, "lapack.syevd")
WHALE_PREPARE(Geev, "lapack.geev")
WHALE_PREPARE(Gees, "lapack.gees")

std::map<std::string, LibraryFactory> eigenvalueFunctions() {
  return {{"lapack.gesdd", prepareGesddAny},
          {"lapack.syevd", prepareSyevdAny},
          {"lapack.geev", prepareGeevAny},
          {"lapack.gees", prepareGeesAny}};
}

} // namespace whale::runtime
