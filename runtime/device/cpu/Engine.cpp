//===- Engine.cpp - oneDNN on this processor --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Operations.h"

#include <cstdlib>
#include <sstream>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace whale::runtime {

/// Whether the processor has tile registers (AMX), but does not say what shapes
/// they can have. Some virtual machines hide these: oneDNN then configures no
/// tiles, and its first product is an illegal instruction.
static bool hidesTiles() {
#ifdef __x86_64__
  constexpr unsigned featureLeaf = 7, tileBit = 24, tileLeaf = 0x1d;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(featureLeaf, 0, &eax, &ebx, &ecx, &edx) ||
      !(edx >> tileBit & 1))
    return false;
  return !__get_cpuid_count(tileLeaf, 0, &eax, &ebx, &ecx, &edx) || eax == 0;
#else
  return false;
#endif
}

dnnl::engine makeEngine() {
  // Once, before oneDNN generates any code; what the user chose stays.
  static const bool limited =
      hidesTiles() && !std::getenv("ONEDNN_MAX_CPU_ISA") &&
      !std::getenv("DNNL_MAX_CPU_ISA") &&
      dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;
  (void)limited;
  return {dnnl::engine::kind::cpu, 0};
}

bool hasVnni() {
  makeEngine();
  // The bits of an instruction set are among those of each that contains it.
  constexpr int wanted = dnnl_cpu_isa_avx512_core_vnni;
  return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

std::string productInstructions() {
  makeEngine();
  const dnnl_version_t &version = *dnnl_version();
  std::ostringstream text;
  text << "oneDNN " << version.major << "." << version.minor << "."
       << version.patch << ", instruction set " << std::hex << std::showbase
       << static_cast<int>(dnnl_get_effective_cpu_isa());
  return text.str();
}

} // namespace whale::runtime
