//===- ConstantBytes.cpp - What a rank's constants take -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ConstantBytes.h"

namespace whale::format {

int64_t constantBytes(const Program &program, const RankClass &rankClass) {
  int64_t bytes = 0;
  std::set<std::pair<int64_t, int64_t>> ranges;
  auto add = [&](const Body &body) {
    for (const BufferInfo &buffer : body.buffers)
      if (buffer.space == Space::RankConstant ||
          (buffer.space == Space::Constant &&
           ranges.emplace(buffer.offset, buffer.bytes).second))
        bytes += buffer.bytes;
  };
  add(rankClass);
  for (const auto &[function, locals] : rankClass.locals)
    add(program.functions[function]);
  return bytes;
}

} // namespace whale::format
