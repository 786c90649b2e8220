//===- RunLevels.h - Run the pipelines of the levels ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_RUNLEVELS_H
#define WHALE_LIB_PROGRAM_RUNLEVELS_H

#include "MixedTargets.h"
#include "mlir/IR/BuiltinOps.h"
#include "whale/Program/Compile.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace whale {

class Reporter;

/// Lowers modules from one level to the next, for the target and the libraries
/// that the options name.
class LevelRunner {
public:
  LevelRunner(llvm::StringRef fileName, const CompileOptions &options,
              Reporter &reporter)
      : fileName(fileName), options(options), reporter(reporter) {}

  /// Whether there are such a target and architecture; else that is an error.
  llvm::LogicalResult checkTarget() const;
  /// An error where state is to be in the memory of hosts, from which devices
  /// of the target copy nothing.
  llvm::LogicalResult checkOffload(mlir::ModuleOp module) const;
  /// Reads the cluster from the module, and chooses the architectures that the
  /// kernels of its GPUs are compiled for. What follows needs it.
  llvm::LogicalResult setCluster(mlir::ModuleOp module);

  /// Nothing if the module has none.
  const std::optional<Cluster> &getCluster() const { return cluster; }
  /// What a rank computes on.
  Target getTarget(int64_t rank) const;
  /// Of the GPU that it is on, 90 for sm_90; 0 on the processor.
  int getCapability(int64_t rank) const;
  /// Whether the architecture is that of a rank's kind, not one that was asked
  /// for instead of it.
  bool areKindsCompared() const { return isGpu() && options.gpuArch.empty(); }
  /// Whether ranks are on GPUs, or would be, in a program without code.
  bool isGpu() const;
  /// Whether ranks run on the processor, those of a GPU's emulator included.
  bool isCpu() const;
  /// Bytes that a rank on a GPU takes for its products; 0 on the processor.
  int64_t getGpuWorkspace(int64_t rank) const;

  /// Lowers the module to the level, from the one before, and dumps it. Of each
  /// device, recomputation is to save the bytes that it lacks (`lack`).
  llvm::LogicalResult run(mlir::ModuleOp module, const Level &level,
                          llvm::ArrayRef<int64_t> lack = {}) const;
  /// Makes a module of the last level one whose transfers start as late as they
  /// can, and dumps it instead.
  llvm::LogicalResult delayTransfers(mlir::ModuleOp module) const;
  /// Notes what is held at the peak of the buffers that the module has, which
  /// is of the last level.
  llvm::LogicalResult notePeak(mlir::ModuleOp module) const;
  /// Decides how products and convolutions are computed, as in a program.
  llvm::LogicalResult lowerProducts(mlir::ModuleOp products,
                                    int64_t device) const;
  /// The same without dumps, and without what only verifies: of plans that are
  /// tried.
  LevelRunner forTrials() const {
    LevelRunner other = *this;
    other.isTrial = true;
    return other;
  }
  /// Writes the module as it came, before all levels, if this is asked for.
  llvm::LogicalResult dumpInput(mlir::ModuleOp module) const {
    return dump(module, "input", 0);
  }

private:
  llvm::LogicalResult runPasses(mlir::ModuleOp module, const Level &level,
                                llvm::StringRef pipeline,
                                const Target &target = {}) const;
  Target findTarget(int64_t rank) const;
  std::string withOptions(llvm::StringRef pipeline, const Target &target) const;
  int64_t getAttentionWorkspace(int capability) const;
  void joinAlike(const std::set<int> &capabilities);
  llvm::LogicalResult dump(mlir::ModuleOp module, llvm::StringRef phase,
                           unsigned number) const;
  llvm::LogicalResult dump(mlir::ModuleOp module, const Level &level) const {
    return dump(module, level.name, 1 + (&level - getLevels().begin()));
  }

  bool isTrial = false;
  llvm::StringRef fileName;
  const CompileOptions &options;
  Reporter &reporter;
  std::optional<Cluster> cluster;
  /// Of a program without code: whether its cluster has GPUs.
  bool plansGpus = false;
  /// Where ranks are on both, those on the processor.
  llvm::BitVector processors;
  /// Of ranks whose kind names no architecture: the lowest that another one
  /// has.
  int defaultCapability = 90;
  /// Of a program without code: by capability, the lowest one for which all is
  /// lowered alike.
  std::map<int, int> lowestAlike;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_RUNLEVELS_H
