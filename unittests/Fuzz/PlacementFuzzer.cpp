//===- PlacementFuzzer.cpp - Any text as a placement ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No text may crash or hang the parser; what is accepted survives printing.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Placement.h"
#include <cstdlib>

using namespace whale;

static void require(bool condition) {
  if (!condition)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<Placement> placement = Placement::parse(text);
  if (!placement) {
    require(!llvm::toString(placement.takeError()).empty());
    return 0;
  }
  require(llvm::cantFail(Placement::parse(placement->str())) == *placement);
  require(placement->isEquivalent(placement->canonical()));
  placement->withView(llvm::ArrayRef<int64_t>(volumeOf(placement->view())));
  return 0;
}
