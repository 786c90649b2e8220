//===- GpuArchitecture.h - What architectures of GPUs have ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of what code, libraries and memory depend on, for the compiler, the
// emulator and the runtime: whoever asks what a GPU can do asks here.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_GPUARCHITECTURE_H
#define WHALE_PROGRAMFORMAT_GPUARCHITECTURE_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace whale::format {

struct GpuArchitecture {
  /// "sm_90", and its compute capability, 90.
  std::string_view name;
  int capability = 0;
  /// The least version of PTX that has what kernels use, as LLVM's feature;
  /// empty where LLVM's choice for the architecture has it.
  std::string_view ptx = {};
  /// The last major version of the CUDA toolkit whose libraries compute on it;
  /// 0 where all that there are do. cuDNN's last version for older ones is
  /// 9.10.
  int lastToolkit = 0;
  /// Bytes of shared memory: the most that a block may have, and what the
  /// blocks of a multiprocessor have together.
  int64_t blockSharedBytes = 0, sharedBytes = 0;
  /// What it has instructions for that libraries use: products of i8 (from
  /// sm_75 on all of cuBLASLt's), of bf16, of f8. Where there are none of bf16,
  /// it is stored as such and computed in f32.
  bool hasI8Products = false, hasBF16 = false, hasF8Products = false;
  /// Whether cuBLASLt's products have epilogues.
  bool hasEpilogues = false;
  /// The most features of a head of cuDNN's attention, forward and in the
  /// gradient; 0 where it has none.
  int64_t attentionFeatures = 0, attentionGradientFeatures = 0;
  /// The workspace that NVIDIA recommends for cuBLASLt, in bytes.
  int64_t productWorkspace = 0;
};

/// Those that there is code for, from the earliest one on.
std::span<const GpuArchitecture> getGpuArchitectures();

/// What a GPU of this compute capability has: the latest entry that is not
/// later than it, or the first one.
const GpuArchitecture &findGpuArchitecture(int capability);

/// The compute capability of an architecture: 90 for "sm_90".
inline int capabilityOf(const std::string &arch) {
  return std::stoi(arch.substr(3));
}

/// The name of the architecture: "sm_90" for 90.
inline std::string archOf(int capability) {
  return "sm_" + std::to_string(capability);
}

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_GPUARCHITECTURE_H
