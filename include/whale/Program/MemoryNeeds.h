//===- MemoryNeeds.h - Bytes that each device needs -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_MEMORYNEEDS_H
#define WHALE_PROGRAM_MEMORYNEEDS_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/ProgramFormat/Libraries.h"
#include "whale/Step/MemoryFit.h"

namespace whale {

class ScratchNeeds;

/// Bytes that a device needs for a step.
struct MemoryNeed {
  /// All of them: arguments, results in buffers of their own, constants, the
  /// arena of everything else, and scratch.
  int64_t bytes = 0;
  /// Of these, of the arguments.
  int64_t argumentBytes = 0;
  /// Of the results that don't replace a donated argument.
  int64_t resultBytes = 0;
  /// Of constants.
  int64_t constantBytes = 0;
  /// Beside all of them, those of arguments and results in the host's memory.
  int64_t hostBytes = 0;
  /// And of what products and convolutions take besides their buffers.
  int64_t scratchBytes = 0;
  /// What would be needed besides without recomputation
  /// (`gradient_checkpoint.type`: auto).
  int64_t savedBytes = 0;
};

/// The needs of each device after whale-plan-buffers, by its number; empty
/// where the module has no plan of buffers. On a CPU (`isCpu`) they are what
/// the runtime allocates on a machine like this one; for GPUs scratch is the
/// workspace of the operation of which it is largest.
std::vector<MemoryNeed> findMemoryNeeds(mlir::ModuleOp module,
                                        const Cluster &cluster, bool isCpu,
                                        ScratchNeeds &scratch);

/// The device that is furthest over its memory, if one is.
std::optional<int64_t> findOverfull(llvm::ArrayRef<MemoryNeed> needs,
                                    const Cluster &cluster);

/// Says which device lacks how many bytes, and what takes them.
std::string describeLack(llvm::ArrayRef<MemoryNeed> needs,
                         const Cluster &cluster, int64_t device);

/// Says which host lacks memory for what its devices leave there, and how much;
/// empty if none does.
std::string describeHostLack(llvm::ArrayRef<MemoryNeed> needs,
                             const Cluster &cluster);

/// Says which device needs most, and what it was expected to need if that is
/// known.
std::string describeNeeds(llvm::ArrayRef<MemoryNeed> needs,
                          const MemoryFit &fit);

/// By how much the estimate of what each device needs besides the fixed part
/// and scratch was wrong: factors that correct it. 1 where there is none.
std::vector<double> findScale(const MemoryFit::Estimate &estimate,
                              llvm::ArrayRef<MemoryNeed> needs);

} // namespace whale

#endif // WHALE_PROGRAM_MEMORYNEEDS_H
