//===- ProfilerRange.cpp - What a thread does, for a profiler -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/ProfilerRange.h"

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

namespace whale::runtime {

/// Null where no tool listens.
static nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t created = nvtxDomainCreateA("Whale");
  return created;
}

bool ProfilerRange::isOn() { return domain(); }

ProfilerRange::ProfilerRange(const Instruction &instruction) {
  std::string text = instruction.label;
  if (instruction.lines)
    for (const std::string &line : *instruction.lines)
      text += (&line == &instruction.lines->front() ? " of " : ", ") + line;
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.c_str();
  nvtxDomainRangePushEx(domain(), &attributes);
}

ProfilerRange::~ProfilerRange() { nvtxDomainRangePop(domain()); }

} // namespace whale::runtime

#else

namespace whale::runtime {

bool ProfilerRange::isOn() { return false; }
ProfilerRange::ProfilerRange(const Instruction &) {}
ProfilerRange::~ProfilerRange() = default;

} // namespace whale::runtime

#endif
