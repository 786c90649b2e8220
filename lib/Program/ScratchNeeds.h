//===- ScratchNeeds.h - Temporary memory of a rank's products ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_SCRATCHNEEDS_H
#define WHALE_LIB_PROGRAM_SCRATCHNEEDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/ProgramFormat/Libraries.h"

#include <map>

namespace whale {

/// Asks the runtime what it will take besides a program's buffers, once for
/// each kind of product.
class ScratchNeeds {
public:
  ScratchNeeds(const format::Libraries &libraries, int64_t ranks)
      : libraries(libraries), ranks(ranks) {}

  /// The bytes of a rank that computes these functions.
  int64_t find(llvm::ArrayRef<mlir::FunctionOpInterface> functions);

private:
  /// Operations with equal attributes and types ask for the same.
  using Key = std::pair<const void *, std::vector<const void *>>;

  const format::Libraries &libraries;
  int64_t ranks;
  std::map<Key, format::ScratchSizes> known;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_SCRATCHNEEDS_H
