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

#include <functional>
#include <map>

namespace whale {

/// Asks libraries what they will take besides a program's buffers, on the
/// processor once for each kind of product.
class ScratchNeeds {
public:
  /// So many ranks share the processor. All products of a rank on a GPU take
  /// `gpuWorkspace(rank)` bytes.
  ScratchNeeds(const format::Libraries &libraries, int64_t ranks,
               std::function<int64_t(int64_t rank)> gpuWorkspace)
      : libraries(libraries), ranks(ranks),
        gpuWorkspace(std::move(gpuWorkspace)) {}

  /// The bytes of a rank that computes these functions, on the processor or on
  /// a GPU.
  int64_t find(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
               bool isOnProcessor, int64_t rank);

private:
  int64_t findOnProcessor(llvm::ArrayRef<mlir::FunctionOpInterface> functions);
  int64_t findOnGpu(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                    int64_t rank) const;

  /// Operations with equal attributes and types ask for the same.
  using Key = std::pair<const void *, std::vector<const void *>>;

  const format::Libraries &libraries;
  int64_t ranks;
  std::function<int64_t(int64_t rank)> gpuWorkspace;
  std::map<Key, format::ScratchSizes> known;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_SCRATCHNEEDS_H
