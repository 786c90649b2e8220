//===- MemoryTable.h - What is held where at the peak -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_MEMORYTABLE_H
#define WHALE_LIB_PROGRAM_MEMORYTABLE_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Program/MemoryNeeds.h"

#include <optional>
#include <string>
#include <vector>

namespace whale {

/// Part of what a device holds at its peak.
struct MemoryRow {
  std::string what;
  int64_t bytes = 0;
  /// How many values that is.
  int64_t values = 0;
};

/// The rows of the table below for a device; empty if its peak is not known.
std::vector<MemoryRow> listMemory(mlir::ModuleOp module,
                                  llvm::ArrayRef<MemoryNeed> needs,
                                  int64_t device);

/// Says for each rank class, those that need most first, what is in the memory
/// of its devices when the arena is fullest: arguments by the first
/// word of their labels; results that replace no argument; constants; scratch;
/// values in the arena by the TaskGraph and line that they come from, or else
/// by type and operation; and what lies between them. The rows of a class add
/// up to its need. whale-plan-buffers must have run with `peak`, and `needs` be
/// those of its plan. With a `device` its class is the only one.
std::string makeMemoryTable(mlir::ModuleOp module, const Cluster &cluster,
                            llvm::ArrayRef<MemoryNeed> needs,
                            std::optional<int64_t> device = std::nullopt);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_MEMORYTABLE_H
