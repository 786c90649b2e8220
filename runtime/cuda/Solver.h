//===- Solver.h - What we use of cuSOLVER -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Driver.h, for cusolverDn.h of CUDA 12 and 13. Each routine has a function
// that says how many elements of workspace it wants.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_SOLVER_H
#define WHALE_RUNTIME_CUDA_SOLVER_H

#include "cuda/Driver.h"

#include <complex>

struct cusolverDnContext;

namespace whale::runtime::cuda {

/// cusolverStatus_t: 0 if all is well.
using SolverStatus = int;
using SolverHandle = cusolverDnContext *;

// Of elements T, whose magnitudes are R; names begin with a letter, and some
// routines have other names for complex elements.
#define WHALE_CUDA_SOLVER_ROUTINES(FUNCTION, s, S, T, R, ORGQR, ORMQR, SYEVD)  \
  FUNCTION(s##potrfSize, cusolverDn##S##potrf_bufferSize,                      \
           SolverStatus(SolverHandle, int, int, T *, int, int *))              \
  FUNCTION(s##potrf, cusolverDn##S##potrf,                                     \
           SolverStatus(SolverHandle, int, int, T *, int, T *, int, int *))    \
  FUNCTION(s##getrfSize, cusolverDn##S##getrf_bufferSize,                      \
           SolverStatus(SolverHandle, int, int, T *, int, int *))              \
  FUNCTION(s##getrf, cusolverDn##S##getrf,                                     \
           SolverStatus(SolverHandle, int, int, T *, int, T *, int *, int *))  \
  FUNCTION(s##geqrfSize, cusolverDn##S##geqrf_bufferSize,                      \
           SolverStatus(SolverHandle, int, int, T *, int, int *))              \
  FUNCTION(                                                                    \
      s##geqrf, cusolverDn##S##geqrf,                                          \
      SolverStatus(SolverHandle, int, int, T *, int, T *, T *, int, int *))    \
  FUNCTION(s##orgqrSize, cusolverDn##S##ORGQR##_bufferSize,                    \
           SolverStatus(SolverHandle, int, int, int, const T *, int,           \
                        const T *, int *))                                     \
  FUNCTION(s##orgqr, cusolverDn##S##ORGQR,                                     \
           SolverStatus(SolverHandle, int, int, int, T *, int, const T *, T *, \
                        int, int *))                                           \
  FUNCTION(s##ormqrSize, cusolverDn##S##ORMQR##_bufferSize,                    \
           SolverStatus(SolverHandle, int, int, int, int, int, const T *, int, \
                        const T *, const T *, int, int *))                     \
  FUNCTION(s##ormqr, cusolverDn##S##ORMQR,                                     \
           SolverStatus(SolverHandle, int, int, int, int, int, const T *, int, \
                        const T *, T *, int, T *, int, int *))                 \
  FUNCTION(s##syevdSize, cusolverDn##S##SYEVD##_bufferSize,                    \
           SolverStatus(SolverHandle, int, int, int, const T *, int,           \
                        const R *, int *))                                     \
  FUNCTION(s##syevd, cusolverDn##S##SYEVD,                                     \
           SolverStatus(SolverHandle, int, int, int, T *, int, R *, T *, int,  \
                        int *))                                                \
  FUNCTION(s##gesvdSize, cusolverDn##S##gesvd_bufferSize,                      \
           SolverStatus(SolverHandle, int, int, int *))                        \
  FUNCTION(s##gesvd, cusolverDn##S##gesvd,                                     \
           SolverStatus(SolverHandle, signed char, signed char, int, int, T *, \
                        int, R *, T *, int, T *, int, T *, int, R *, int *))

#define WHALE_CUDA_SOLVER_FUNCTIONS(FUNCTION)                                  \
  FUNCTION(create, cusolverDnCreate, SolverStatus(SolverHandle *))             \
  FUNCTION(destroy, cusolverDnDestroy, SolverStatus(SolverHandle))             \
  FUNCTION(setStream, cusolverDnSetStream, SolverStatus(SolverHandle, Stream)) \
  WHALE_CUDA_SOLVER_ROUTINES(FUNCTION, s, S, float, float, orgqr, ormqr,       \
                             syevd)                                            \
  WHALE_CUDA_SOLVER_ROUTINES(FUNCTION, d, D, double, double, orgqr, ormqr,     \
                             syevd)                                            \
  WHALE_CUDA_SOLVER_ROUTINES(FUNCTION, c, C, std::complex<float>, float,       \
                             ungqr, unmqr, heevd)                              \
  WHALE_CUDA_SOLVER_ROUTINES(FUNCTION, z, Z, std::complex<double>, double,     \
                             ungqr, unmqr, heevd)

#define WHALE_CUDA_SOLVER_VALUES(VALUE)                                        \
  VALUE(kSolverInvalidValue, CUSOLVER_STATUS_INVALID_VALUE, 3)                 \
  VALUE(kSolverExecutionFailed, CUSOLVER_STATUS_EXECUTION_FAILED, 6)           \
  VALUE(kSolverValuesOnly, CUSOLVER_EIG_MODE_NOVECTOR, 0)                      \
  VALUE(kSolverVectors, CUSOLVER_EIG_MODE_VECTOR, 1)

WHALE_CUDA_SOLVER_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcusolver.
struct Solver {
  WHALE_CUDA_SOLVER_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_SOLVER_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_SOLVER_H
