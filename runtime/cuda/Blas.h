//===- Blas.h - What we use of cuBLAS ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Driver.h, for cublas_v2.h of CUDA 12 and 13: triangular systems, which
// cuBLASLt does not have.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_BLAS_H
#define WHALE_RUNTIME_CUDA_BLAS_H

#include "cuda/BlasLt.h"

#include <complex>

struct cublasContext;

namespace whale::runtime::cuda {

using TriangularHandle = cublasContext *;

// handle, side, triangle, operation, diagonal, rows and columns of b, factor,
// a and its leading dimension, b and its own.
#define WHALE_CUDA_TRSM(T)                                                     \
  BlasStatus(TriangularHandle, int, int, int, int, int, int, const T *,        \
             const T *, int, T *, int)

#define WHALE_CUDA_BLAS_FUNCTIONS(FUNCTION)                                    \
  FUNCTION(create, cublasCreate_v2, BlasStatus(TriangularHandle *))            \
  FUNCTION(destroy, cublasDestroy_v2, BlasStatus(TriangularHandle))            \
  FUNCTION(setStream, cublasSetStream_v2,                                      \
           BlasStatus(TriangularHandle, Stream))                               \
  FUNCTION(setWorkspace, cublasSetWorkspace_v2,                                \
           BlasStatus(TriangularHandle, void *, size_t))                       \
  FUNCTION(strsm, cublasStrsm_v2, WHALE_CUDA_TRSM(float))                      \
  FUNCTION(dtrsm, cublasDtrsm_v2, WHALE_CUDA_TRSM(double))                     \
  FUNCTION(ctrsm, cublasCtrsm_v2, WHALE_CUDA_TRSM(std::complex<float>))        \
  FUNCTION(ztrsm, cublasZtrsm_v2, WHALE_CUDA_TRSM(std::complex<double>))

#define WHALE_CUDA_BLAS_VALUES(VALUE)                                          \
  VALUE(kSideLeft, CUBLAS_SIDE_LEFT, 0)                                        \
  VALUE(kSideRight, CUBLAS_SIDE_RIGHT, 1)                                      \
  VALUE(kFillLower, CUBLAS_FILL_MODE_LOWER, 0)                                 \
  VALUE(kFillUpper, CUBLAS_FILL_MODE_UPPER, 1)                                 \
  VALUE(kOperationAdjoint, CUBLAS_OP_C, 2)                                     \
  VALUE(kDiagonalGiven, CUBLAS_DIAG_NON_UNIT, 0)                               \
  VALUE(kDiagonalOnes, CUBLAS_DIAG_UNIT, 1)

WHALE_CUDA_BLAS_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcublas.
struct Blas {
  WHALE_CUDA_BLAS_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_BLAS_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_BLAS_H
