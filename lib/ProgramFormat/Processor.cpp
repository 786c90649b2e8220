//===- Processor.cpp - What kernels need of a processor -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Processor.h"

#include <algorithm>

namespace whale::format {

#ifdef __x86_64__
// The levels x86-64-v2, -v3 and -v4, and what came later. The compiler's own
// function takes literals only.
#define WHALE_PROCESSOR_FEATURES(DO)                                           \
  DO("sse3")                                                                   \
  DO("ssse3")                                                                  \
  DO("sse4.1")                                                                 \
  DO("sse4.2")                                                                 \
  DO("popcnt")                                                                 \
  DO("avx")                                                                    \
  DO("avx2")                                                                   \
  DO("bmi")                                                                    \
  DO("bmi2")                                                                   \
  DO("f16c")                                                                   \
  DO("fma")                                                                    \
  DO("lzcnt")                                                                  \
  DO("movbe")                                                                  \
  DO("avx512f")                                                                \
  DO("avx512bw")                                                               \
  DO("avx512cd")                                                               \
  DO("avx512dq")                                                               \
  DO("avx512vl")                                                               \
  DO("avx512ifma")                                                             \
  DO("avx512vbmi")                                                             \
  DO("avx512vbmi2")                                                            \
  DO("avx512vnni")                                                             \
  DO("avx512bitalg")                                                           \
  DO("avx512vpopcntdq")                                                        \
  DO("avx512bf16")                                                             \
  DO("avx512fp16")                                                             \
  DO("avxvnni")                                                                \
  DO("gfni")                                                                   \
  DO("vaes")                                                                   \
  DO("vpclmulqdq")
#else
// Kernels for other processors are built for the one that compiles.
#define WHALE_PROCESSOR_FEATURES(DO)
#endif

#define WHALE_NAME(name) std::string_view(name),
static constexpr std::string_view names[] = {
    WHALE_PROCESSOR_FEATURES(WHALE_NAME) std::string_view()};
#undef WHALE_NAME

std::span<const std::string_view> processorFeatures() {
  return std::span(names).first(std::size(names) - 1);
}

bool hasProcessorFeature(std::string_view name) {
#define WHALE_CHECK(feature)                                                   \
  if (name == feature)                                                         \
    return __builtin_cpu_supports(feature);
  WHALE_PROCESSOR_FEATURES(WHALE_CHECK)
#undef WHALE_CHECK
  return false;
}

} // namespace whale::format
