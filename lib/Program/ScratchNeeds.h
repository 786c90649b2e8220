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
#include "whale/Runtime/Scratch.h"

#include <map>

namespace whale {

/// Asks the runtime what it will take besides a program's buffers, once for
/// each kind of product.
class ScratchNeeds {
public:
  explicit ScratchNeeds(int64_t ranks)
      : threads(runtime::threadsOfRanks(ranks)) {}

  /// The bytes of a rank that computes these functions.
  int64_t find(llvm::ArrayRef<mlir::FunctionOpInterface> functions);

private:
  /// Operations with equal attributes and types ask for the same.
  using Key = std::pair<const void *, std::vector<const void *>>;

  int64_t threads;
  std::map<Key, runtime::ScratchSizes> known;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_SCRATCHNEEDS_H
