//===- Fft.h - What we use of cuFFT -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Driver.h, for cufft.h and cufftXt.h of CUDA 12 and 13.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_FFT_H
#define WHALE_RUNTIME_CUDA_FFT_H

#include "cuda/Driver.h"

namespace whale::runtime::cuda {

/// cufftResult: 0 if all is well.
using FftStatus = int;
using FftPlan = int;

#define WHALE_CUDA_FFT_FUNCTIONS(FUNCTION)                                     \
  FUNCTION(create, cufftCreate, FftStatus(FftPlan *))                          \
  FUNCTION(destroy, cufftDestroy, FftStatus(FftPlan))                          \
  FUNCTION(setAutoAllocation, cufftSetAutoAllocation, FftStatus(FftPlan, int)) \
  FUNCTION(makePlan, cufftMakePlanMany64,                                      \
           FftStatus(FftPlan, int, long long *, long long *, long long,        \
                     long long, long long *, long long, long long, int,        \
                     long long, size_t *))                                     \
  FUNCTION(setWorkArea, cufftSetWorkArea, FftStatus(FftPlan, void *))          \
  FUNCTION(setStream, cufftSetStream, FftStatus(FftPlan, Stream))              \
  FUNCTION(exec, cufftXtExec, FftStatus(FftPlan, void *, void *, int))

#define WHALE_CUDA_FFT_VALUES(VALUE)                                           \
  VALUE(kFftInvalidValue, CUFFT_INVALID_VALUE, 4)                              \
  VALUE(kFftExecFailed, CUFFT_EXEC_FAILED, 6)                                  \
  VALUE(kFftForward, CUFFT_FORWARD, -1)                                        \
  VALUE(kFftInverse, CUFFT_INVERSE, 1)                                         \
  VALUE(kFftF32ToC64, CUFFT_R2C, 0x2a)                                         \
  VALUE(kFftC64ToF32, CUFFT_C2R, 0x2c)                                         \
  VALUE(kFftC64, CUFFT_C2C, 0x29)                                              \
  VALUE(kFftF64ToC128, CUFFT_D2Z, 0x6a)                                        \
  VALUE(kFftC128ToF64, CUFFT_Z2D, 0x6c)                                        \
  VALUE(kFftC128, CUFFT_Z2Z, 0x69)

WHALE_CUDA_FFT_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcufft.
struct Fft {
  WHALE_CUDA_FFT_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_FFT_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_FFT_H
