//===- Solver.cpp - cuSOLVER and cuBLAS of a test machine -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come routines on column-major matrices, out goes an operation of a stream
// for each, which LAPACK computes. Sizes of workspace, leading dimensions and
// the shapes that cuSOLVER has are checked as its documentation states them.
// Its routines may wait for the stream: during a capture they are a fault.
//
// Cost: that of LAPACK on the processor, under the machine's lock.
//
//===----------------------------------------------------------------------===//

#include "cuda/Gpu.h"
#include "cuda/test/DriverCalls.h"
#include "library/Lapack.h"

// What the libraries keep to themselves.
struct cusolverDnContext {
  whale::runtime::cuda::Stream stream = nullptr;
};
struct cublasContext {
  whale::runtime::cuda::Stream stream = nullptr;
  void *workspace = nullptr;
  size_t bytes = 0;
};

namespace whale::runtime {
WHALE_LAPACK(potrf)
WHALE_LAPACK(getrf)
WHALE_LAPACK(geqrf)
WHALE_LAPACK(gesdd)
WHALE_LAPACK_PAIR(orgqr, orgqr, ungqr)
WHALE_LAPACK_PAIR(ormqr, ormqr, unmqr)
WHALE_LAPACK_PAIR(syevd, syevd, heevd)
} // namespace whale::runtime

namespace whale::runtime::cuda::test {
namespace {

template <typename T>
Access access(const T *data, int64_t count, bool writes) {
  return {addressOf(data), count * int64_t(sizeof(T)), writes};
}

/// Puts an operation on a stream. Returns whether it could.
bool put(Stream handle, const std::string &what, std::vector<Access> accesses,
         std::function<void()> run) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  auto stream = machine.streams.find(handle);
  if (stream == machine.streams.end()) {
    machine.fault(currentGpu(), what + ": an unknown stream");
    return false;
  }
  if (machine.gpus[currentGpu()].error)
    return false;
  machine.put(*stream->second, {what, std::move(accesses), std::move(run)});
  return !machine.gpus[currentGpu()].error;
}

SolverStatus refuse(const std::string &what) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  return machine.fault(currentGpu(), "cuSOLVER: " + what, kSolverInvalidValue);
}

SolverStatus putSolver(SolverHandle handle, const std::string &what,
                       std::vector<Access> accesses,
                       std::function<void()> run) {
  {
    Machine &machine = Machine::get();
    Lock lock(machine.mutex);
    if (machine.isCapturing(currentGpu()))
      return refuse(what + " during a capture");
  }
  return put(handle->stream, what, std::move(accesses), std::move(run))
             ? 0
             : kSolverExecutionFailed;
}

SolverStatus create(SolverHandle *handle) {
  *handle = new cusolverDnContext;
  return 0;
}
SolverStatus destroy(SolverHandle handle) {
  delete handle;
  return 0;
}
SolverStatus setStream(SolverHandle handle, Stream stream) {
  handle->stream = stream;
  return 0;
}

// What a routine wants differs by routine, so that a mix-up is noticed.
constexpr int potrfWork = 3, getrfWork = 5, geqrfWork = 7, orgqrWork = 11,
              ormqrWork = 13, syevdWork = 17, gesvdWork = 19;

/// Faults where a matrix or a workspace is not as a routine wants it.
SolverStatus check(int rows, int leading, int given, int wanted) {
  if (leading < std::max(rows, 1))
    return refuse("a leading dimension of " + std::to_string(leading) +
                  " for " + std::to_string(rows) + " rows");
  if (given < wanted)
    return refuse("a workspace of " + std::to_string(given) + " elements, " +
                  std::to_string(wanted) + " are needed");
  return 0;
}

char letterOf(int fill) { return fill == kFillLower ? 'L' : 'U'; }

template <typename T>
SolverStatus potrfSize(SolverHandle, int, int, T *, int, int *count) {
  *count = potrfWork;
  return 0;
}
template <typename T>
SolverStatus potrf(SolverHandle handle, int fill, int n, T *a, int lead,
                   T *work, int count, int *info) {
  if (SolverStatus status = check(n, lead, count, potrfWork))
    return status;
  return putSolver(
      handle, "potrf",
      {access(a, int64_t(lead) * n, true), access(work, count, true),
       access(info, 1, true)},
      [=] { *info = runtime::potrf<T>(letterOf(fill), n, a, lead); });
}

template <typename T>
SolverStatus getrfSize(SolverHandle, int, int, T *, int, int *count) {
  *count = getrfWork;
  return 0;
}
template <typename T>
SolverStatus getrf(SolverHandle handle, int m, int n, T *a, int lead, T *work,
                   int *pivots, int *info) {
  if (SolverStatus status = check(m, lead, getrfWork, getrfWork))
    return status;
  return putSolver(
      handle, "getrf",
      {access(a, int64_t(lead) * n, true), access(work, getrfWork, true),
       access(pivots, std::min(m, n), true), access(info, 1, true)},
      [=] { *info = runtime::getrf<T>(m, n, a, lead, pivots); });
}

template <typename T>
SolverStatus geqrfSize(SolverHandle, int, int, T *, int, int *count) {
  *count = geqrfWork;
  return 0;
}
template <typename T>
SolverStatus geqrf(SolverHandle handle, int m, int n, T *a, int lead, T *tau,
                   T *work, int count, int *info) {
  if (SolverStatus status = check(m, lead, count, geqrfWork))
    return status;
  return putSolver(handle, "geqrf",
                   {access(a, int64_t(lead) * n, true),
                    access(tau, std::min(m, n), true),
                    access(work, count, true), access(info, 1, true)},
                   [=] { *info = runtime::geqrf<T>(m, n, a, lead, tau); });
}

template <typename T>
SolverStatus orgqrSize(SolverHandle, int, int, int, const T *, int, const T *,
                       int *count) {
  *count = orgqrWork;
  return 0;
}
template <typename T>
SolverStatus orgqr(SolverHandle handle, int m, int n, int k, T *a, int lead,
                   const T *tau, T *work, int count, int *info) {
  if (SolverStatus status = check(m, lead, count, orgqrWork))
    return status;
  if (n > m || k > n)
    return refuse("orgqr of more columns than rows");
  return putSolver(handle, "orgqr",
                   {access(a, int64_t(lead) * n, true), access(tau, k, false),
                    access(work, count, true), access(info, 1, true)},
                   [=] { *info = runtime::orgqr<T>(m, n, k, a, lead, tau); });
}

template <typename T>
SolverStatus ormqrSize(SolverHandle, int, int, int, int, int, const T *, int,
                       const T *, const T *, int, int *count) {
  *count = ormqrWork;
  return 0;
}
template <typename T>
SolverStatus ormqr(SolverHandle handle, int side, int operation, int m, int n,
                   int k, const T *a, int leadA, const T *tau, T *c, int leadC,
                   T *work, int count, int *info) {
  bool isLeft = side == kSideLeft;
  if (SolverStatus status = check(m, leadC, count, ormqrWork))
    return status;
  if (SolverStatus status = check(isLeft ? m : n, leadA, count, ormqrWork))
    return status;
  if (operation == (isComplexType<T> ? kOperationTranspose : kOperationAdjoint))
    return refuse("ormqr with an operation that it has not");
  char how = "NTC"[operation];
  return putSolver(handle, "ormqr",
                   {access(a, int64_t(leadA) * k, false), access(tau, k, false),
                    access(c, int64_t(leadC) * n, true),
                    access(work, count, true), access(info, 1, true)},
                   [=] {
                     *info = runtime::ormqr<T>(isLeft ? 'L' : 'R', how, m, n, k,
                                               a, leadA, tau, c, leadC);
                   });
}

template <typename T>
SolverStatus syevdSize(SolverHandle, int, int, int, const T *, int,
                       const Real<T> *, int *count) {
  *count = syevdWork;
  return 0;
}
template <typename T>
SolverStatus syevd(SolverHandle handle, int mode, int fill, int n, T *a,
                   int lead, Real<T> *w, T *work, int count, int *info) {
  if (SolverStatus status = check(n, lead, count, syevdWork))
    return status;
  return putSolver(handle, "syevd",
                   {access(a, int64_t(lead) * n, true), access(w, n, true),
                    access(work, count, true), access(info, 1, true)},
                   [=] {
                     *info =
                         runtime::syevd<T>(mode == kSolverVectors ? 'V' : 'N',
                                           letterOf(fill), n, a, lead, w);
                   });
}

template <typename T>
SolverStatus gesvdSize(SolverHandle, int, int, int *count) {
  *count = gesvdWork;
  return 0;
}
template <typename T>
SolverStatus gesvd(SolverHandle handle, signed char left, signed char right,
                   int m, int n, T *a, int lead, Real<T> *s, T *u, int leadU,
                   T *vt, int leadVt, T *work, int count, Real<T> *,
                   int *info) {
  if (SolverStatus status = check(m, lead, count, gesvdWork))
    return status;
  if (m < n)
    return refuse("gesvd of a matrix with more columns than rows");
  if (left != right || (left != 'A' && left != 'S'))
    return refuse("gesvd without one of the sides");
  if (SolverStatus status = check(m, leadU, count, gesvdWork))
    return status;
  if (SolverStatus status = check(n, leadVt, count, gesvdWork))
    return status;
  return putSolver(handle, "gesvd",
                   {access(a, int64_t(lead) * n, true), access(s, n, true),
                    access(u, int64_t(leadU) * (left == 'A' ? m : n), true),
                    access(vt, int64_t(leadVt) * n, true),
                    access(work, count, true), access(info, 1, true)},
                   [=] {
                     *info = runtime::gesdd<T>(char(left), m, n, a, lead, s, u,
                                               leadU, vt, leadVt);
                   });
}

BlasStatus createBlas(TriangularHandle *handle) {
  *handle = new cublasContext;
  return 0;
}
BlasStatus destroyBlas(TriangularHandle handle) {
  delete handle;
  return 0;
}
/// As the library does, it forgets the workspace.
BlasStatus setBlasStream(TriangularHandle handle, Stream stream) {
  *handle = {stream};
  return 0;
}
BlasStatus setWorkspace(TriangularHandle handle, void *workspace,
                        size_t bytes) {
  handle->workspace = workspace;
  handle->bytes = bytes;
  return 0;
}

/// Element (row, column) of op(a).
template <typename T>
T elementOf(int operation, const T *a, int lead, int row, int column) {
  if (operation == kOperationNone)
    return a[row + int64_t(column) * lead];
  T value = a[column + int64_t(row) * lead];
  if constexpr (isComplexType<T>)
    if (operation == kOperationAdjoint)
      value = std::conj(value);
  return value;
}

template <typename T>
BlasStatus trsm(TriangularHandle handle, int side, int fill, int operation,
                int diagonal, int m, int n, const T *alpha, const T *a,
                int leadA, T *b, int leadB) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  bool isLeft = side == kSideLeft;
  int size = isLeft ? m : n, others = isLeft ? n : m;
  auto fail = [&](const char *what) {
    return machine.fault(currentGpu(), std::string("trsm: ") + what,
                         kBlasInvalidValue);
  };
  if (leadA < std::max(size, 1) || leadB < std::max(m, 1))
    return fail("a leading dimension is too small");
  if (!handle->workspace)
    return fail("it would allocate a workspace");
  if (*alpha != T(1))
    return fail("it is scaled");
  bool isPut =
      put(handle->stream, "trsm",
          {access(a, int64_t(leadA) * size, false),
           access(b, int64_t(leadB) * n, true),
           {addressOf(handle->workspace), int64_t(handle->bytes), true}},
          [=] {
            // x op(a) = b is op(a)' x' = b', whose triangle is the other one.
            bool appliesLower = ((fill == kFillLower) ==
                                 (operation == kOperationNone)) == isLeft;
            for (int other = 0; other < others; ++other)
              for (int step = 0; step < size; ++step) {
                int i = appliesLower ? step : size - 1 - step;
                auto x = [&](int k) -> T & {
                  return isLeft ? b[k + int64_t(other) * leadB]
                                : b[other + int64_t(k) * leadB];
                };
                auto coefficient = [&](int k) {
                  return isLeft ? elementOf(operation, a, leadA, i, k)
                                : elementOf(operation, a, leadA, k, i);
                };
                for (int k = appliesLower ? 0 : i + 1;
                     k < (appliesLower ? i : size); ++k)
                  x(i) -= coefficient(k) * x(k);
                if (diagonal == kDiagonalGiven)
                  x(i) /= coefficient(i);
              }
          });
  return isPut ? 0 : kBlasExecutionFailed;
}

} // namespace

void fillSolver(Solver &solver, Blas &blas) {
  solver.create.function = create;
  solver.destroy.function = destroy;
  solver.setStream.function = setStream;
  blas.create.function = createBlas;
  blas.destroy.function = destroyBlas;
  blas.setStream.function = setBlasStream;
  blas.setWorkspace.function = setWorkspace;
#define WHALE_CUDA_FILL_SOLVER(s, T)                                           \
  solver.s##potrfSize.function = potrfSize<T>;                                 \
  solver.s##potrf.function = potrf<T>;                                         \
  solver.s##getrfSize.function = getrfSize<T>;                                 \
  solver.s##getrf.function = getrf<T>;                                         \
  solver.s##geqrfSize.function = geqrfSize<T>;                                 \
  solver.s##geqrf.function = geqrf<T>;                                         \
  solver.s##orgqrSize.function = orgqrSize<T>;                                 \
  solver.s##orgqr.function = orgqr<T>;                                         \
  solver.s##ormqrSize.function = ormqrSize<T>;                                 \
  solver.s##ormqr.function = ormqr<T>;                                         \
  solver.s##syevdSize.function = syevdSize<T>;                                 \
  solver.s##syevd.function = syevd<T>;                                         \
  solver.s##gesvdSize.function = gesvdSize<T>;                                 \
  solver.s##gesvd.function = gesvd<T>;                                         \
  blas.s##trsm.function = trsm<T>;
  WHALE_CUDA_FILL_SOLVER(s, float)
  WHALE_CUDA_FILL_SOLVER(d, double)
  WHALE_CUDA_FILL_SOLVER(c, std::complex<float>)
  WHALE_CUDA_FILL_SOLVER(z, std::complex<double>)
}

} // namespace whale::runtime::cuda::test
