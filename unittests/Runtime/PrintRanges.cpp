//===- PrintRanges.cpp - A tool of NVTX that prints ranges ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands for a profiler: NVTX opens the library that NVTX_INJECTION64_PATH
// names and calls its InitializeInjectionNvtx2. It prints the domain, and each
// range where it begins and where it ends.
//
//===----------------------------------------------------------------------===//

#include <nvtx3/nvToolsExt.h>

#include <cstdio>

static nvtxDomainHandle_t NVTX_API createDomain(const char *name) {
  static char any;
  std::printf("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(&any);
}

static int NVTX_API begin(nvtxDomainHandle_t,
                          const nvtxEventAttributes_t *range) {
  std::printf("begin %s\n", range->message.ascii);
  return 0;
}

static int NVTX_API end(nvtxDomainHandle_t) {
  std::printf("end\n");
  return 0;
}

extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable) {
  auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(
      getExportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table;
  unsigned size;
  if (!callbacks ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  auto set = [&](NvtxCallbackIdCore2 function, auto *ours) {
    *table[function] = reinterpret_cast<NvtxFunctionPointer>(ours);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, createDomain);
  set(NVTX_CBID_CORE2_DomainRangePushEx, begin);
  set(NVTX_CBID_CORE2_DomainRangePop, end);
  return 1;
}
