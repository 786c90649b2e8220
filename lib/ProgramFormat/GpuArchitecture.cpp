//===- GpuArchitecture.cpp - What architectures of GPUs have --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table. Sources: NVIDIA's "CUDA C++ Programming Guide", "Compute
// Capabilities" (shared memory), "PTX ISA" (which instruction came with which
// version), the release notes of CUDA 13.0 (Pascal and Volta dropped) and of
// cuDNN 9.11 (the same), "cublasLtMatmul()" (types and epilogues), and the
// support matrix of cuDNN's attention.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/GpuArchitecture.h"

#include <algorithm>

namespace whale::format {

static constexpr int64_t kib = 1024, mib = 1024 * kib;

static constexpr GpuArchitecture pascal(std::string_view name, int capability,
                                        int64_t shared) {
  GpuArchitecture arch;
  arch.name = name;
  arch.capability = capability;
  // Shuffles among named lanes, which wait for one another.
  arch.ptx = "+ptx60";
  arch.lastToolkit = 12;
  // Blocks cannot ask for more than that.
  arch.blockSharedBytes = 48 * kib;
  arch.sharedBytes = shared * kib;
  arch.productWorkspace = 4 * mib;
  return arch;
}

static constexpr GpuArchitecture volta(std::string_view name, int capability) {
  GpuArchitecture arch = pascal(name, capability, 96);
  arch.ptx = "";
  arch.blockSharedBytes = 96 * kib;
  return arch;
}

static constexpr GpuArchitecture turing(std::string_view name, int capability) {
  GpuArchitecture arch = volta(name, capability);
  arch.lastToolkit = 0;
  arch.blockSharedBytes = arch.sharedBytes = 64 * kib;
  arch.hasI8Products = true;
  return arch;
}

/// From here on each multiprocessor keeps a KiB for itself of each block.
static constexpr GpuArchitecture ampere(std::string_view name, int capability,
                                        int64_t shared) {
  GpuArchitecture arch = turing(name, capability);
  arch.blockSharedBytes = (shared - 1) * kib;
  arch.sharedBytes = shared * kib;
  arch.hasBF16 = arch.hasEpilogues = true;
  arch.attentionFeatures = 256;
  arch.attentionGradientFeatures = 128;
  return arch;
}

static constexpr GpuArchitecture ada(std::string_view name, int capability) {
  GpuArchitecture arch = ampere(name, capability, 100);
  arch.hasF8Products = true;
  return arch;
}

static constexpr GpuArchitecture hopper(std::string_view name, int capability) {
  GpuArchitecture arch = ampere(name, capability, 228);
  arch.ptx = "+ptx80";
  arch.hasF8Products = true;
  arch.attentionGradientFeatures = 256;
  arch.productWorkspace = 32 * mib;
  return arch;
}

static constexpr GpuArchitecture blackwell(std::string_view name,
                                           int capability, int64_t shared) {
  GpuArchitecture arch = ampere(name, capability, shared);
  arch.hasF8Products = true;
  arch.productWorkspace = 32 * mib;
  return arch;
}

static constexpr GpuArchitecture architectures[] = {
    pascal("sm_60", 60, 64),
    pascal("sm_61", 61, 96),
    pascal("sm_62", 62, 64),
    volta("sm_70", 70),
    volta("sm_72", 72),
    turing("sm_75", 75),
    ampere("sm_80", 80, 164),
    ampere("sm_86", 86, 100),
    ampere("sm_87", 87, 164),
    ada("sm_89", 89),
    hopper("sm_90", 90),
    blackwell("sm_100", 100, 228),
    blackwell("sm_103", 103, 228),
    blackwell("sm_120", 120, 100),
    blackwell("sm_121", 121, 100)};

std::span<const GpuArchitecture> getGpuArchitectures() { return architectures; }

const GpuArchitecture &findGpuArchitecture(int capability) {
  const auto *later = std::ranges::upper_bound(architectures, capability, {},
                                               &GpuArchitecture::capability);
  return later == std::begin(architectures) ? *later : *std::prev(later);
}

} // namespace whale::format
