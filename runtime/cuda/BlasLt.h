//===- BlasLt.h - What we use of cuBLASLt -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Driver.h, for cublasLt.h of CUDA 12 and 13.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_BLASLT_H
#define WHALE_RUNTIME_CUDA_BLASLT_H

#include "cuda/Driver.h"

#include <cstdint>

struct cublasLtContext;

namespace whale::runtime::cuda {

/// cublasStatus_t: 0 if all is well.
using BlasStatus = int;
using BlasHandle = cublasLtContext *;

/// What the library makes; nobody else looks inside.
struct ProductDescription;
struct MatrixLayout;
struct ProductPreference;

/// Which of the library's kernels computes a product, and how.
struct ProductAlgorithm {
  uint64_t data[8];
};

struct ProductChoice {
  ProductAlgorithm algorithm;
  size_t workspaceBytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};

#define WHALE_CUDA_BLASLT_FUNCTIONS(FUNCTION)                                  \
  FUNCTION(getVersion, cublasLtGetVersion, size_t())                           \
  FUNCTION(getStatusString, cublasLtGetStatusString, const char *(BlasStatus)) \
  FUNCTION(create, cublasLtCreate, BlasStatus(BlasHandle *))                   \
  FUNCTION(destroy, cublasLtDestroy, BlasStatus(BlasHandle))                   \
  FUNCTION(descCreate, cublasLtMatmulDescCreate,                               \
           BlasStatus(ProductDescription **, int, int))                        \
  FUNCTION(descDestroy, cublasLtMatmulDescDestroy,                             \
           BlasStatus(ProductDescription *))                                   \
  FUNCTION(descSet, cublasLtMatmulDescSetAttribute,                            \
           BlasStatus(ProductDescription *, int, const void *, size_t))        \
  FUNCTION(layoutCreate, cublasLtMatrixLayoutCreate,                           \
           BlasStatus(MatrixLayout **, int, uint64_t, uint64_t, int64_t))      \
  FUNCTION(layoutDestroy, cublasLtMatrixLayoutDestroy,                         \
           BlasStatus(MatrixLayout *))                                         \
  FUNCTION(layoutSet, cublasLtMatrixLayoutSetAttribute,                        \
           BlasStatus(MatrixLayout *, int, const void *, size_t))              \
  FUNCTION(preferenceCreate, cublasLtMatmulPreferenceCreate,                   \
           BlasStatus(ProductPreference **))                                   \
  FUNCTION(preferenceDestroy, cublasLtMatmulPreferenceDestroy,                 \
           BlasStatus(ProductPreference *))                                    \
  FUNCTION(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                \
           BlasStatus(ProductPreference *, int, const void *, size_t))         \
  FUNCTION(getHeuristic, cublasLtMatmulAlgoGetHeuristic,                       \
           BlasStatus(BlasHandle, ProductDescription *, MatrixLayout *,        \
                      MatrixLayout *, MatrixLayout *, MatrixLayout *,          \
                      ProductPreference *, int, ProductChoice *, int *))       \
  FUNCTION(                                                                    \
      algorithmGet, cublasLtMatmulAlgoConfigGetAttribute,                      \
      BlasStatus(const ProductAlgorithm *, int, void *, size_t, size_t *))     \
  FUNCTION(matmul, cublasLtMatmul,                                             \
           BlasStatus(BlasHandle, ProductDescription *, const void *,          \
                      const void *, MatrixLayout *, const void *,              \
                      MatrixLayout *, const void *, const void *,              \
                      MatrixLayout *, void *, MatrixLayout *,                  \
                      const ProductAlgorithm *, void *, size_t, Stream))

#define WHALE_CUDA_BLASLT_VALUES(VALUE)                                        \
  VALUE(kBlasAllocationFailed, CUBLAS_STATUS_ALLOC_FAILED, 3)                  \
  VALUE(kBlasInvalidValue, CUBLAS_STATUS_INVALID_VALUE, 7)                     \
  VALUE(kBlasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED, 15)                    \
  VALUE(kBlasExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED, 13)              \
  VALUE(kTypeF32, CUDA_R_32F, 0)                                               \
  VALUE(kTypeF64, CUDA_R_64F, 1)                                               \
  VALUE(kTypeI8, CUDA_R_8I, 3)                                                 \
  VALUE(kTypeI32, CUDA_R_32I, 10)                                              \
  VALUE(kTypeF8E4M3, CUDA_R_8F_E4M3, 28)                                       \
  VALUE(kTypeF8E5M2, CUDA_R_8F_E5M2, 29)                                       \
  VALUE(kTypeF16, CUDA_R_16F, 2)                                               \
  VALUE(kTypeC64, CUDA_C_32F, 4)                                               \
  VALUE(kTypeC128, CUDA_C_64F, 5)                                              \
  VALUE(kTypeBF16, CUDA_R_16BF, 14)                                            \
  VALUE(kComputeF32, CUBLAS_COMPUTE_32F, 68)                                   \
  VALUE(kComputeF64, CUBLAS_COMPUTE_64F, 70)                                   \
  VALUE(kComputeI32, CUBLAS_COMPUTE_32I, 72)                                   \
  VALUE(kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                        \
  VALUE(kOrderColumns, CUBLASLT_ORDER_COL, 0)                                  \
  VALUE(kOperationNone, CUBLAS_OP_N, 0)                                        \
  VALUE(kOperationTranspose, CUBLAS_OP_T, 1)                                   \
  VALUE(kLayoutOrder, CUBLASLT_MATRIX_LAYOUT_ORDER, 1)                         \
  VALUE(kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)              \
  VALUE(kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)    \
  VALUE(kProductTransposeA, CUBLASLT_MATMUL_DESC_TRANSA, 3)                    \
  VALUE(kProductTransposeB, CUBLASLT_MATMUL_DESC_TRANSB, 4)                    \
  VALUE(kProductEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                    \
  VALUE(kProductBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                    \
  VALUE(kProductAux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)            \
  VALUE(kProductAuxLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)          \
  VALUE(kEpilogueNone, CUBLASLT_EPILOGUE_DEFAULT, 1)                           \
  VALUE(kEpilogueBias, CUBLASLT_EPILOGUE_BIAS, 4)                              \
  VALUE(kEpilogueGelu, CUBLASLT_EPILOGUE_GELU, 32)                             \
  VALUE(kEpilogueGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS, 36)                    \
  VALUE(kEpilogueGeluAux, CUBLASLT_EPILOGUE_GELU_AUX, 160)                     \
  VALUE(kEpilogueGeluAuxBias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164)            \
  VALUE(kEpilogueGradient, CUBLASLT_EPILOGUE_DGELU, 192)                       \
  VALUE(kEpilogueGradientBias, CUBLASLT_EPILOGUE_DGELU_BGRAD, 208)             \
  VALUE(kPreferWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)         \
  VALUE(kPreferReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)      \
  VALUE(kPreferAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)      \
  VALUE(kPreferAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)      \
  VALUE(kPreferAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)      \
  VALUE(kPreferAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)      \
  VALUE(kAlgorithmNumber, CUBLASLT_ALGO_CONFIG_ID, 0)                          \
  VALUE(kAlgorithmTile, CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                       \
  VALUE(kAlgorithmParts, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                   \
  VALUE(kAlgorithmStages, CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)                   \
  VALUE(kReductionInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)               \
  VALUE(kReductionComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)

WHALE_CUDA_BLASLT_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcublasLt.
struct BlasLt {
  WHALE_CUDA_BLASLT_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_BLASLT_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_BLASLT_H
