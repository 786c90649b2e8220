//===- Lapack.cpp - Factorizations ------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a request with types, shapes and the configuration of a routine of
// LAPACK. Out: a function that calls it for each matrix of a batch, through
// LAPACKE. Operands, results and configuration are those of JAX's custom calls
// `lapack_?NAME_ffi`, with matrices in column-major order: a buffer of shape
// [n, m] holds one of m rows.
//
// Cholesky factors of small real matrices are our own (Cholesky.cpp).
//
// Cost: for each matrix LAPACK's routine, which is cubic in its extents (gtsv:
// linear); before it the operand is copied to the result that it overwrites.
// LAPACKE looks for NaNs and allocates the workspace in each call. Matrices of
// a batch are shared out to threads.
//
//===----------------------------------------------------------------------===//

#include "library/Lapack.h"
#include "whale/Runtime/Types.h"

#include <limits>
#include <numeric>

namespace whale::runtime {

WHALE_LAPACK(potrf)
WHALE_LAPACK(getrf)
WHALE_LAPACK(geqrf)
WHALE_LAPACK(geqp3)
WHALE_LAPACK(gehrd)
WHALE_LAPACK(gtsv)
WHALE_LAPACK_PAIR(orgqr, orgqr, ungqr)
WHALE_LAPACK_PAIR(ormqr, ormqr, unmqr)
WHALE_LAPACK_PAIR(sytrd, sytrd, hetrd)

Int checkInfo(const char *routine, Int info,
              std::initializer_list<Int> operands) {
  if (info >= 0 ||
      std::find(operands.begin(), operands.end(), -info) != operands.end())
    return info;
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
    throw Error(std::string(routine) + ": out of memory for its workspace");
  throw Error(std::string(routine) + ": LAPACK refuses argument " +
              std::to_string(-int64_t(info)));
}

namespace {
/// The results of an operand with NaNs, of a routine that gives no `info`.
template <typename T>
void fillNaN(T *result, int64_t count) {
  std::fill_n(result, count, T(std::numeric_limits<Real<T>>::quiet_NaN()));
}

/// Extents that no operand's check bounds.
void requireInt(const char *routine, std::initializer_list<int64_t> extents) {
  if (std::max(extents) > std::numeric_limits<Int>::max())
    throw Error(std::string(routine) + ": the matrix is too large");
}

template <typename T>
LibraryFunction preparePotrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.potrf");
  int64_t n = batch.extent(0);
  char uplo = batch.letter("uplo", "LU");
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<int32_t>({});
  if constexpr (!isComplexType<T>)
    if (constexpr int64_t mostRows = 128; n <= mostRows)
      return batch.finish([=](const MatrixCall &call) {
        *call.out<int32_t>(1) =
            factorizeSmall(uplo, n, copyFirst<T>(call, n * n));
      });
  return batch.finish([=](const MatrixCall &call) {
    *call.out<int32_t>(1) = checkInfo(
        "lapack.potrf",
        potrf<T>(uplo, Int(n), copyFirst<T>(call, n * n), lead(n)), {4});
  });
}

template <typename T>
LibraryFunction prepareGetrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.getrf");
  int64_t n = batch.extent(0), m = batch.extent(1);
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<int32_t>({std::min(m, n)});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    Int *pivots = call.out<int32_t>(1);
    Int info =
        getrf<T>(Int(m), Int(n), copyFirst<T>(call, m * n), lead(m), pivots);
    if (checkInfo("lapack.getrf", info, {4}) < 0)
      std::iota(pivots, pivots + std::min(m, n), 1);
    *call.out<int32_t>(2) = info;
  });
}

template <typename T>
LibraryFunction prepareGeqrf(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.geqrf");
  int64_t n = batch.extent(0), m = batch.extent(1);
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<T>({std::min(m, n)});
  return batch.finish([=](const MatrixCall &call) {
    Int info = geqrf<T>(Int(m), Int(n), copyFirst<T>(call, m * n), lead(m),
                        call.out<T>(1));
    if (checkInfo("lapack.geqrf", info, {4}) < 0) {
      fillNaN(call.out<T>(0), m * n);
      fillNaN(call.out<T>(1), std::min(m, n));
    }
  });
}

template <typename T>
LibraryFunction prepareGeqp3(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.geqp3");
  int64_t n = batch.extent(0), m = batch.extent(1);
  batch.input<T>({n, m});
  batch.input<int32_t>({n});
  batch.output<T>({n, m});
  batch.output<int32_t>({n});
  batch.output<T>({std::min(m, n)});
  return batch.finish([=](const MatrixCall &call) {
    std::copy_n(call.in<int32_t>(1), n, call.out<int32_t>(1));
    Int *pivots = call.out<int32_t>(1);
    Int info = geqp3<T>(Int(m), Int(n), copyFirst<T>(call, m * n), lead(m),
                        pivots, call.out<T>(2));
    if (checkInfo("lapack.geqp3", info, {4}) < 0) {
      fillNaN(call.out<T>(0), m * n);
      std::iota(pivots, pivots + n, 1);
      fillNaN(call.out<T>(2), std::min(m, n));
    }
  });
}

template <typename T>
LibraryFunction prepareOrgqr(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.orgqr");
  int64_t n = batch.extent(0), m = batch.extent(1);
  int64_t k = request.inputs.size() > 1 && !request.inputs[1].shape.empty()
                  ? request.inputs[1].shape.back()
                  : 0;
  requireInt("lapack.orgqr", {k});
  batch.input<T>({n, m});
  batch.input<T>({k});
  batch.output<T>({n, m});
  return batch.finish([=](const MatrixCall &call) {
    Int info = orgqr<T>(Int(m), Int(n), Int(k), copyFirst<T>(call, m * n),
                        lead(m), call.in<T>(1));
    if (checkInfo("lapack.orgqr", info, {5, 7}) < 0)
      fillNaN(call.out<T>(0), m * n);
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
  int64_t columns = batch.extent(0), k = extent(1, 1);
  int64_t n = extent(2, 2), m = extent(2, 1);
  bool left = batch.flag("left"), transpose = batch.flag("transpose");
  int64_t order = left ? m : n;
  requireInt("lapack.ormqr", {m, n, k});
  batch.input<T>({columns, order});
  batch.input<T>({k});
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  if (k > std::min(order, columns))
    throw Error("lapack.ormqr has " + std::to_string(k) +
                " reflectors, which a matrix of " + std::to_string(order) +
                " by " + std::to_string(columns) + " does not hold");
  char how = !transpose ? 'N' : isComplexType<T> ? 'C' : 'T';
  return batch.finish([=](const MatrixCall &call) {
    std::copy_n(call.in<T>(2), m * n, call.out<T>(0));
    if (m == 0 || n == 0)
      return;
    Int info =
        ormqr<T>(left ? 'L' : 'R', how, Int(m), Int(n), Int(k), call.in<T>(0),
                 lead(order), call.in<T>(1), call.out<T>(0), lead(m));
    if (checkInfo("lapack.ormqr", info, {7, 9, 10}) < 0)
      fillNaN(call.out<T>(0), m * n);
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
    Int info =
        sytrd<T>(uplo, Int(n), copyFirst<T>(call, n * n), lead(n),
                 call.out<Real<T>>(1), call.out<Real<T>>(2), call.out<T>(3));
    *call.out<int32_t>(4) = checkInfo("lapack.sytrd", info, {4});
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
    Int info = gehrd<T>(Int(n), low, high, copyFirst<T>(call, n * n), lead(n),
                        call.out<T>(1));
    *call.out<int32_t>(2) = checkInfo("lapack.gehrd", info, {5});
  });
}

template <typename T>
LibraryFunction prepareGtsv(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.gtsv", /*rank=*/1);
  int64_t n = batch.extent(0);
  int64_t columns = 0;
  if (request.inputs.size() > 3)
    if (const Shape &shape = request.inputs[3].shape; shape.size() >= 2)
      columns = shape[shape.size() - 2];
  requireInt("lapack.gtsv", {columns});
  for (int i = 0; i < 3; ++i)
    batch.input<T>({n});
  batch.input<T>({columns, n});
  for (int i = 0; i < 3; ++i)
    batch.output<T>({n});
  batch.output<T>({columns, n});
  batch.output<int32_t>({});
  return batch.finish([=](const MatrixCall &call) {
    for (size_t i = 0; i < 4; ++i)
      std::copy_n(call.in<T>(i), i < 3 ? n : n * columns, call.out<T>(i));
    // The first element of the lower diagonal stands for nothing.
    Int info = n == 0 ? 0
                      : gtsv<T>(Int(n), Int(columns), call.out<T>(0) + 1,
                                call.out<T>(1), call.out<T>(2), call.out<T>(3),
                                lead(n));
    *call.out<int32_t>(4) = checkInfo("lapack.gtsv", info, {4, 5, 6, 7});
  });
}

} // namespace

WHALE_PREPARE(Potrf, "lapack.potrf")
WHALE_PREPARE(Getrf, "lapack.getrf")
WHALE_PREPARE(Geqrf, "lapack.geqrf")
WHALE_PREPARE(Geqp3, "lapack.geqp3")
WHALE_PREPARE(Orgqr, "lapack.orgqr")
WHALE_PREPARE(Ormqr, "lapack.ormqr")
WHALE_PREPARE(Sytrd, "lapack.sytrd")
WHALE_PREPARE(Gehrd, "lapack.gehrd")
WHALE_PREPARE(Gtsv, "lapack.gtsv")

std::map<std::string, LibraryFactory> lapackFunctions() {
  std::map<std::string, LibraryFactory> functions = eigenvalueFunctions();
  functions.insert({{"lapack.potrf", preparePotrfAny},
                    {"lapack.getrf", prepareGetrfAny},
                    {"lapack.geqrf", prepareGeqrfAny},
                    {"lapack.geqp3", prepareGeqp3Any},
                    {"lapack.orgqr", prepareOrgqrAny},
                    {"lapack.ormqr", prepareOrmqrAny},
                    {"lapack.sytrd", prepareSytrdAny},
                    {"lapack.gehrd", prepareGehrdAny},
                    {"lapack.gtsv", prepareGtsvAny}});
  return functions;
}

} // namespace whale::runtime
