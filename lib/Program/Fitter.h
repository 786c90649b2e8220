//===- Fitter.h - Lower a step for what devices have ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_FITTER_H
#define WHALE_LIB_PROGRAM_FITTER_H

#include "FitOptions.h"
#include "LowerToFit.h"
#include "ScratchNeeds.h"
#include "mlir/IR/OwningOpRef.h"
#include "whale/Program/MemoryNeeds.h"

namespace whale {

class LevelRunner;
class Reporter;

/// A module as it came to some level, and how much had been said by then.
struct Snapshot {
  llvm::StringRef level;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  size_t said = 0;
};

/// How lowering a step has ended: with buffers that fit, with some that don't,
/// or with an error.
enum class FitResult { Fits, Lacks, Failed };

/// What a step lacks memory for, with the options that it has.
struct StepLack {
  /// Which device lacks how much.
  std::string text;
  /// Who holds what there.
  std::string table;
  std::vector<MemoryRow> held;
  /// What devices were expected to need.
  MemoryFit::Estimate expected;
  int64_t device = 0;
  /// What donation would save there.
  int64_t donatableBytes = 0;
};

/// Where a text does not say where it is, as that of the frontend, the first
/// line of the step.
mlir::Location findPlace(mlir::ModuleOp module);

/// Lowers a module once, with a plan that fits if there is one for the options
/// that it has.
class Fitter {
public:
  Fitter(mlir::ModuleOp module, const LevelRunner &levels,
         const format::Libraries &libraries, Reporter &reporter,
         PriceStep price);

  /// Lowers the module from level `first` to the last one.
  FitResult run(llvm::StringRef first);
  /// What is known of the module then.
  LoweredStep take() { return {std::move(summary), std::move(needs)}; }
  /// The same of a step that may not fit, with what is held where it is
  /// fullest.
  LoweredStep takeReported();

  /// Has errors and remarks say nothing, and devices have so many bytes less.
  void setTrial(int64_t spareBytes) {
    isTrial = true;
    spare = spareBytes;
  }
  /// Has `takeReported` have the module before the last level, too.
  void keepUnordered() { keepsUnordered = true; }
  /// Has what the step comes to if nothing is computed again be taken as known:
  /// of a trial that recomputes.
  void setWithoutRecomputing(PlannedStep step) { known = std::move(step); }
  /// Of the plan that was made last: the device's bytes, and a step's seconds.
  PlannedStep getPlanned() const { return {needs, seconds, ""}; }
  /// Of the last plan that does not fit.
  const StepLack &getLack() const { return lacking; }
  /// The module as it came.
  Snapshot &getInput() { return input; }

  /// Makes the module what it was, and returns the level that it came to; what
  /// was said about it since then is no longer true.
  llvm::StringRef restore(Snapshot snapshot);

private:
  // Lowering.
  llvm::LogicalResult lower(llvm::StringRef first, llvm::StringRef last);
  Snapshot save(llvm::StringRef level);

  // What devices need.
  llvm::LogicalResult findNeeds();
  llvm::LogicalResult takeKnown(llvm::StringRef first);
  int64_t findScratch(mlir::ModuleOp products, int64_t device);
  std::vector<MemoryNeed> getExpectedNeeds() const;
  llvm::LogicalResult findSeconds();
  llvm::LogicalResult noteLack(int64_t device);

  // Deciding again.
  llvm::FailureOr<bool> savesAnything();
  llvm::LogicalResult recompute();
  int64_t findMostLacking() const;
  int64_t findMissing(size_t device) const;
  llvm::LogicalResult lowerScheduled();
  llvm::StringRef correct();
  void findStageDevices();
  llvm::SmallVector<int64_t> findStageBytes() const;
  void correctCut(MemoryFit &next, llvm::ArrayRef<MemoryNeed> found) const;
  bool plan(llvm::StringRef first);
  bool cutAgain();

  mlir::ModuleOp module;
  const LevelRunner &levels;
  Reporter &reporter;
  PriceStep price;
  const Cluster *cluster;
  PlanSummary summary;
  /// What passes expect devices to need, and are told that these do.
  MemoryFit &fit;
  ScratchNeeds scratch;
  /// From where on all is decided again where memory is short, and the module
  /// as it came there: the cut of automatic stages, or else the shares.
  llvm::StringRef firstDecision;
  Snapshot undecided;
  bool isRecomputing;
  /// Where recomputation is decided, the module as it came there, and by device
  /// what that is to save.
  Snapshot scheduled;
  std::vector<int64_t> lack;
  /// The module as it came.
  Snapshot input;
  /// The devices of each virtual device, of all its groups.
  std::vector<llvm::SmallVector<int64_t>> stageDevices;
  /// Of the plan at hand: by device, and for a step.
  std::vector<MemoryNeed> needs;
  double seconds = 0;
  bool isTrial = false, isWhole = true;
  bool keepsUnordered = false;
  mlir::OwningOpRef<mlir::ModuleOp> unordered;
  /// Of the plan that was decided first.
  std::optional<PlannedStep> known;
  bool isFirst = true;
  /// Whether `needs` and `seconds` are of a plan before that at hand.
  bool isPriced = false;
  /// Bytes that devices are to have left over.
  int64_t spare = 0;
  /// What is short in it if transfers start early; empty if nothing is.
  std::string delayed;
  /// What is short in any case.
  StepLack lacking;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_FITTER_H
