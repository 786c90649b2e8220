//===- LowerToFit.cpp - Lower a step so that it fits ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module that is not planned yet. Out: the module at the last level, with
// buffers that fit into the memory of each device, or an error that says what
// is short.
//
// The step is lowered as it is (Fitter.cpp). Where that does not fit, options
// are chosen for it if it asks for that, and it is lowered once more with them;
// else the error says which would do (MemoryAdvice.cpp). Either way other plans
// are made of the module as it came, without code, but with the buffers that
// decide. Cost: a lowering for each of them.
//
//===----------------------------------------------------------------------===//

#include "LowerToFit.h"

#include "Fitter.h"
#include "MemoryAdvice.h"
#include "Reporter.h"
#include "RunLevels.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/SourceLines.h"

using namespace mlir;

namespace whale {
namespace {

class StepFitter {
public:
  StepFitter(ModuleOp module, const LevelRunner &levels,
             const format::Libraries &libraries, Reporter &reporter,
             PriceStep price, bool reports)
      : module(module), levels(levels), libraries(libraries),
        reporter(reporter), price(std::move(price)), reports(reports) {}

  FailureOr<LoweredStep> run(StringRef first);

private:
  PlannedStep planWith(const Snapshot &input, const StepChange &change,
                       int64_t spareBytes);
  FailureOr<LoweredStep> choose(Fitter &fitter);
  LogicalResult fail(Fitter &fitter);

  ModuleOp module;
  const LevelRunner &levels;
  const format::Libraries &libraries;
  Reporter &reporter;
  PriceStep price;
  bool reports;
};

} // namespace

/// What the step comes to with a change, lowered as it would be by itself: who
/// follows an advice must not be told the same again.
PlannedStep StepFitter::planWith(const Snapshot &input,
                                 const StepChange &change, int64_t spareBytes) {
  std::string error;
  ScopedDiagnosticHandler quiet(module.getContext(), [&](Diagnostic &said) {
    if (said.getSeverity() == DiagnosticSeverity::Error && error.empty())
      error = said.str();
    return success();
  });
  OwningOpRef<ModuleOp> changed = input.module.get().clone();
  change.apply(*changed);
  if (failed(levels.checkOffload(*changed)))
    return {{}, 0, std::move(error)};
  getMemoryFit(module) = MemoryFit();
  LevelRunner silent = levels.forTrials();
  Fitter other(*changed, silent, libraries, reporter, price);
  other.setTrial(spareBytes);
  // What does not fit is known as well.
  FitResult result = other.run(input.level);
  if (result == FitResult::Failed)
    return {{}, 0, std::move(error)};
  return other.getPlanned();
}

/// Lowers the step with the options that let it fit in the least time.
FailureOr<LoweredStep> StepFitter::choose(Fitter &fitter) {
  Snapshot &input = fitter.getInput();
  ChosenOptions chosen =
      chooseOptions(*input.module, *levels.getCluster(), fitter.getPlanned(),
                    [&](const StepChange &change, int64_t spareBytes) {
                      return planWith(input, change, spareBytes);
                    });
  const StepLack &lack = fitter.getLack();
  if (!chosen.change) {
    reporter.attach(lack.table);
    return emitError(findPlace(module)) << lack.text << "; " << chosen.text;
  }
  StringRef first = fitter.restore(std::move(input));
  getMemoryFit(module) = MemoryFit();
  chosen.change->apply(module);
  addToPlan(module, [&](Plan &plan) { plan.options = chosen.change->options; });
  StringRef without = lack.text;
  without.consume_front("memory: ");
  emitRemark(findPlace(module))
      << "fit: takes " << chosen.text << "; without, " << without;
  Fitter last(module, levels, libraries, reporter, price);
  FitResult result = last.run(first);
  if (result == FitResult::Lacks)
    return emitError(findPlace(module)) << last.getLack().text;
  if (result == FitResult::Failed)
    return failure();
  return last.take();
}

/// Says what is short, and what would do.
LogicalResult StepFitter::fail(Fitter &fitter) {
  const StepLack &lack = fitter.getLack();
  Snapshot &input = fitter.getInput();
  reporter.attach(lack.table);
  std::string error = lack.text;
  // What comes partitioned has no other plan.
  if (input.level == getLevels().front().name)
    error += adviseOnMemory(
        *input.module, *levels.getCluster(), fitter.getPlanned(), lack.device,
        lack.donatableBytes, [&](const StepChange &change, int64_t spareBytes) {
          return planWith(input, change, spareBytes);
        });
  return emitError(findPlace(module)) << error;
}

FailureOr<LoweredStep> StepFitter::run(StringRef first) {
  // What a plan says is not decided again.
  bool chooses = Config(module).choosesOptions() &&
                 !module->hasAttr(kGivenPlanAttr) &&
                 first == getLevels().front().name;
  Fitter fitter(module, levels, libraries, reporter, price);
  if (reports)
    fitter.keepUnordered();
  FitResult result = fitter.run(first);
  if (reports && result != FitResult::Failed)
    return fitter.takeReported();
  switch (result) {
  case FitResult::Fits:
    return fitter.take();
  case FitResult::Lacks:
    return chooses ? choose(fitter) : FailureOr<LoweredStep>(fail(fitter));
  case FitResult::Failed:
    return failure();
  }
  llvm_unreachable("there are no others");
}

FailureOr<LoweredStep> lowerToFit(ModuleOp module, StringRef first,
                                  const LevelRunner &levels,
                                  const format::Libraries &libraries,
                                  Reporter &reporter, PriceStep price,
                                  bool reports) {
  FailureOr<LoweredStep> step =
      StepFitter(module, levels, libraries, reporter, std::move(price), reports)
          .run(first);
  getScratchFinder(module) = nullptr;
  return step;
}

} // namespace whale
