//===- CudaHeadersTest.cpp - Our declarations are those of CUDA -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled only where the toolkit's headers are; without them the test is
// skipped, and counted as such. Most of it is checked by the compiler.
//
//===----------------------------------------------------------------------===//

#include "cuda/Blas.h"
#include "cuda/BlasLt.h"
#include "cuda/Dnn.h"
#include "cuda/Fft.h"
#include "cuda/Nccl.h"
#include "cuda/Solver.h"
#include "whale/Target/CUDA/NvJitLink.h"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<cufftXt.h>)
#include <cufftXt.h>
#endif
#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#if __has_include(<nvJitLink.h>)
#include <nvJitLink.h>
#endif

namespace whale::runtime::cuda {
namespace {

/// Whether values of the two types are passed in the same way.
template <typename A, typename B>
constexpr bool isSame() {
  constexpr bool aIsNumber = std::is_integral_v<A> || std::is_enum_v<A>;
  constexpr bool bIsNumber = std::is_integral_v<B> || std::is_enum_v<B>;
  if constexpr (std::is_same_v<A, B>)
    return true;
  else if constexpr (aIsNumber && bIsNumber)
    return sizeof(A) == sizeof(B);
  else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_cv_t<std::remove_pointer_t<A>>;
    using From = std::remove_cv_t<std::remove_pointer_t<B>>;
    // Structures of names of their own are compared below, or opaque.
    return (std::is_class_v<To> && std::is_class_v<From>) || isSame<To, From>();
  } else
    return false;
}

template <typename A, typename B>
struct Compare : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct Compare<A(As...), B(Bs...)>
    : std::bool_constant<isSame<A, B>() && (isSame<As, Bs>() && ...)> {};

// The names with versions are macros of cuda.h, or functions that it declares.
#define COMPARE_FUNCTION(member, symbol, ...)                                  \
  static_assert(Compare<__VA_ARGS__, decltype(symbol)>::value,                 \
                #symbol " has other parameters");
WHALE_CUDA_DRIVER_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_BLASLT_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_BLAS_FUNCTIONS(COMPARE_FUNCTION)

#define COMPARE_VALUE(name, symbol, number)                                    \
  static_assert(static_cast<int>(symbol) == name, #symbol " has another "      \
                                                          "value");
WHALE_CUDA_DRIVER_VALUES(COMPARE_VALUE)
WHALE_CUDA_BLASLT_VALUES(COMPARE_VALUE)
WHALE_CUDA_BLAS_VALUES(COMPARE_VALUE)

#ifdef CUDNN_VERSION
WHALE_CUDA_DNN_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_DNN_VALUES(COMPARE_VALUE)
#endif

#ifdef CUFFT_VERSION
WHALE_CUDA_FFT_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_FFT_VALUES(COMPARE_VALUE)
#endif

#ifdef CUSOLVER_VERSION
WHALE_CUDA_SOLVER_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_SOLVER_VALUES(COMPARE_VALUE)
#endif

#ifdef nvJitLink_INCLUDED
WHALE_NVJITLINK_FUNCTIONS(COMPARE_FUNCTION)
WHALE_NVJITLINK_VALUES(COMPARE_VALUE)
#endif

static_assert(std::is_same_v<Address, CUdeviceptr>);
static_assert(sizeof(ProductAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
using Choice = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(ProductChoice) == sizeof(Choice));
static_assert(offsetof(ProductChoice, workspaceBytes) ==
              offsetof(Choice, workspaceSize));
static_assert(offsetof(ProductChoice, state) == offsetof(Choice, state));
static_assert(offsetof(ProductChoice, waves) == offsetof(Choice, wavesCount));

#ifdef NCCL_VERSION_CODE
/// The one structure that is passed by value.
template <>
constexpr bool isSame<CommunicatorId, ncclUniqueId>() {
  return sizeof(CommunicatorId) == sizeof(ncclUniqueId) &&
         alignof(CommunicatorId) == alignof(ncclUniqueId);
}

WHALE_CUDA_NCCL_FUNCTIONS(COMPARE_FUNCTION)
WHALE_CUDA_NCCL_VALUES(COMPARE_VALUE)

// Ours has the first fields of theirs.
using Config = ncclConfig_t;
static_assert(sizeof(CommunicatorConfig) <= sizeof(Config));
static_assert(offsetof(CommunicatorConfig, size) == offsetof(Config, size));
static_assert(offsetof(CommunicatorConfig, magic) == offsetof(Config, magic));
static_assert(offsetof(CommunicatorConfig, version) ==
              offsetof(Config, version));
static_assert(offsetof(CommunicatorConfig, blocking) ==
              offsetof(Config, blocking));

TEST(CudaHeaders, ConfigurationsOfNcclAreAsOurs) {
  Config theirs = NCCL_CONFIG_INITIALIZER;
  CommunicatorConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.version, unsigned(NCCL_VERSION(2, 14, 0)));
  EXPECT_LE(ours.version, theirs.version);
}
#else
TEST(CudaHeaders, ConfigurationsOfNcclAreAsOurs) {
  GTEST_SKIP() << "there is no nccl.h";
}
#endif

TEST(CudaHeaders, AreAsWeDeclareThem) {
  // A comparison that is always true would let all of the above pass.
  EXPECT_FALSE((Compare<Status(int), Status(int *)>::value));
  EXPECT_FALSE((Compare<Status(int), Status(int, int)>::value));
  EXPECT_FALSE((Compare<Status(size_t), Status(int)>::value));
}

} // namespace
} // namespace whale::runtime::cuda

#else

TEST(CudaHeaders, ConfigurationsOfNcclAreAsOurs) {
  GTEST_SKIP() << "there is no cuda.h or cublasLt.h";
}
TEST(CudaHeaders, AreAsWeDeclareThem) {
  GTEST_SKIP() << "there is no cuda.h or cublasLt.h";
}

#endif
