//===- Compile.cpp - From StableHLO text to a program -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the text of a StableHLO module. Out: a program directory, or one error.
//
// The text is read, lowered with a plan that fits (LowerToFit.cpp), level by
// level (RunLevels.cpp), and written (EmitProgram.cpp). Remarks and warnings
// are held back until it is known which plan they are about. Cost: that of its
// parts; one context for each compilation, so that several run at a time.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Compile.h"

#include "FitReport.h"
#include "Fitter.h"
#include "LowerToFit.h"
#include "MemoryTable.h"
#include "PrepareInput.h"
#include "ReadResources.h"
#include "Reporter.h"
#include "RunLevels.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Program/EmitProgram.h"
#include "whale/Program/Nesting.h"
#include "whale/Report/Waste.h"
#include "whale/System/Error.h"
#include "whale/System/Json.h"
#include "whale/Target/CUDA/Passes.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Plans.h"

#include "llvm/Support/SourceMgr.h"

#include <mutex>
#include <set>
#include <variant>

using namespace mlir;

namespace whale {

/// Says which devices do nothing, or all the same, and which GPUs are none.
static void explainWaste(ModuleOp module, const LevelRunner &levels,
                         StringRef target, StringRef plan) {
  for (const std::string &text : findIdleDevices(plan))
    emitRemark(module.getLoc()) << text;
  if (size_t count = countRepetitions(plan))
    emitRemark(module.getLoc())
        << "all " << count
        << " devices compute the same whole step: --strategy=replicate and "
           "--batch-args share out the mini-batch, --strategy=split shards "
           "the tensors";
  const std::optional<Cluster> &cluster = levels.getCluster();
  if (target != "cpu" || !cluster)
    return;
  std::set<std::string> gpus;
  for (size_t device = 0; device < cluster->devices.size(); ++device)
    if (const DeviceKind &kind = cluster->kindOf(device); !kind.arch.empty())
      gpus.insert(kind.name);
  if (!gpus.empty())
    emitRemark(module.getLoc())
        << llvm::join(gpus, ", ")
        << ": ranks of GPUs run on the CPU, as --target is cpu; "
           "--target=cuda compiles for GPUs";
}

/// What a step is expected to take, of which nothing is said where ranks would
/// wait for one another in a circle: that is an error of the compiler's own,
/// which the program's verification finds. Returns its seconds, or why nothing
/// is known of them.
static std::variant<double, std::string>
addDevices(PlanSummary &summary, const format::Program &program,
           const Cluster &cluster, ArrayRef<MemoryNeed> needs) {
  try {
    ModelledStep step = modelStep(program, cluster);
    summary.addDevices(program, step, cluster, needs);
    return step.seconds;
  } catch (const system::Error &error) {
    return error.what();
  }
}

static LogicalResult failToModel(ModuleOp module, StringRef why) {
  return emitError(findPlace(module))
         << "what the step takes is not known: " << why;
}

/// What libraries of GPUs may use besides.
static void addWorkspace(EmitOptions &emit, const LevelRunner &levels,
                         ArrayRef<MemoryNeed> needs) {
  if (levels.isGpu() && !levels.isCpu())
    for (const MemoryNeed &need : needs)
      emit.workspaceBytes.push_back(need.scratchBytes);
}

/// The seconds of a step; an error where its program cannot be made or
/// modelled: nothing can be compared with it.
static FailureOr<double> priceStep(ModuleOp lowered, EmitOptions emit,
                                   const LevelRunner &levels,
                                   ArrayRef<MemoryNeed> needs) {
  addWorkspace(emit, levels, needs);
  std::unique_ptr<GatheredProgram> program = gatherProgram(lowered, emit);
  if (!program)
    return failure();
  try {
    return modelStep(program->get(), *levels.getCluster()).seconds;
  } catch (const system::Error &error) {
    return failToModel(lowered, error.what());
  }
}

/// Reads a text; null after an error.
static OwningOpRef<ModuleOp> readStep(MLIRContext &context, StringRef text,
                                      StringRef fileName) {
  context.printOpOnDiagnostic(false);
  if (std::optional<NestingError> deep = findDeepNesting(text)) {
    emitError(FileLineColLoc::get(&context, fileName, deep->line, deep->column))
        << deep->message;
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, fileName), llvm::SMLoc());
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  if (!module || failed(readResources(*module)) || failed(verify(*module)))
    return nullptr;
  return module;
}

/// Gives a module that was read what the options say.
static LogicalResult prepareStep(ModuleOp module, LevelRunner &levels,
                                 const CompileOptions &options) {
  if (failed(levels.checkTarget()) || failed(levels.dumpInput(module)) ||
      failed(prepareInput(module, options)) ||
      failed(levels.setCluster(module)))
    return failure();
  if (const std::optional<Cluster> &cluster = levels.getCluster()) {
    beginPlan(module, *cluster);
    if (!options.plan.empty() &&
        failed(setGivenPlan(module, *cluster, options.planFile, options.plan)))
      return failure();
  }
  return levels.checkOffload(module);
}

/// What programs of these levels are made with.
static EmitOptions makeEmitOptions(ModuleOp module, const LevelRunner &levels,
                                   const CompileOptions &options) {
  EmitOptions emit(options.libraries);
  emit.target = options.target;
  emit.capabilityOf = [&levels](int64_t rank) {
    return levels.getCapability(rank);
  };
  emit.areKindsCompared = levels.areKindsCompared();
  emit.cpu = options.cpu;
  emit.name = module.getSymName().value_or("program").str();
  emit.verify = isVerifyEachSet();
  return emit;
}

/// The same, of plans of which only what they come to is told.
static CompileOptions withoutReports(CompileOptions options) {
  options.onPass = nullptr;
  options.onFit = nullptr;
  options.dumpPhasesTo.clear();
  options.explain = options.explainMemory = false;
  return options;
}

/// Whether the last level alone looks at what the change sets.
static bool isOrderAlone(const StepChange &change) {
  return !change.splits &&
         llvm::all_of(change.options, [](const Plan::Option &option) {
           return option.key == Config::kApplyGroups;
         });
}

/// Plans a step with a change of its order, from the module that comes to the
/// last level, which has a context of its own. Nothing where that does not fit:
/// levels before may then decide otherwise.
static std::optional<PlannedStep> planOrder(ModuleOp unordered,
                                            StringRef fileName,
                                            const CompileOptions &options,
                                            const StepChange &change) {
  ScopedDiagnosticHandler quiet(unordered.getContext(),
                                [](Diagnostic &) { return success(); });
  Reporter reporter([](const CompileMessage &) {}, /*remarks=*/false, "");
  LevelRunner levels(fileName, options, reporter);
  if (failed(levels.setCluster(unordered)))
    return std::nullopt;
  change.apply(unordered);
  EmitOptions emit = makeEmitOptions(unordered, levels, options);
  auto price = [&](ModuleOp lowered, ArrayRef<MemoryNeed> needs) {
    return priceStep(lowered, emit, levels, needs);
  };
  LevelRunner trial = levels.forTrials();
  Fitter fitter(unordered, trial, options.libraries, reporter, price);
  fitter.setTrial(/*spareBytes=*/0);
  FitResult result = fitter.run(getLevels().back().name);
  getScratchFinder(unordered) = nullptr;
  return result == FitResult::Fits ? std::optional(fitter.getPlanned())
                                   : std::nullopt;
}

/// Plans a step with a change in a context of its own, so that several threads
/// may.
static PlannedStep planApart(StringRef text, StringRef fileName,
                             const CompileOptions &options,
                             const StepChange &change, int64_t spareBytes,
                             const FittedStep &without) {
  DialectRegistry registry;
  registerProgramDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  PlannedStep planned;
  ScopedDiagnosticHandler quiet(&context, [&](Diagnostic &said) {
    if (said.getSeverity() == DiagnosticSeverity::Error &&
        planned.error.empty())
      planned.error = said.str();
    return success();
  });
  Reporter reporter([](const CompileMessage &) {}, /*remarks=*/false, text);
  LevelRunner levels(fileName, options, reporter);
  OwningOpRef<ModuleOp> module = readStep(context, text, fileName);
  if (!module || failed(prepareStep(*module, levels, options)))
    return planned;
  change.apply(*module);
  if (failed(verify(*module)) || failed(levels.checkOffload(*module)))
    return planned;
  EmitOptions emit = makeEmitOptions(*module, levels, options);
  auto price = [&](ModuleOp lowered, ArrayRef<MemoryNeed> needs) {
    return priceStep(lowered, emit, levels, needs);
  };
  LevelRunner trial = levels.forTrials();
  Fitter fitter(*module, trial, options.libraries, reporter, price);
  fitter.setTrial(spareBytes);
  // Without recomputation it is the step that is known.
  if (spareBytes > 0 && without.isFirst && change.options.size() == 1 &&
      !change.splits)
    fitter.setWithoutRecomputing(without.planned);
  bool failed = fitter.run(getLevels().front().name) == FitResult::Failed;
  std::string error = std::move(planned.error);
  planned = fitter.getPlanned();
  if (failed)
    planned = {{}, 0, std::move(error)};
  getScratchFinder(*module) = nullptr;
  return planned;
}

/// Says what was decided, and what a program is expected to need and to take.
static LogicalResult describeStep(ModuleOp module,
                                  const GatheredProgram *program,
                                  LoweredStep &step, const LevelRunner &levels,
                                  const CompileOptions &options,
                                  CompileReport *report) {
  const std::optional<Cluster> &cluster = levels.getCluster();
  if (cluster) {
    auto seconds =
        addDevices(step.summary, program->get(), *cluster, step.needs);
    if (const auto *known = std::get_if<double>(&seconds))
      step.fitted.planned.seconds = *known;
    else if (options.onFit)
      return failToModel(module, std::get<std::string>(seconds));
  }
  std::string plan = step.summary.str();
  if (options.explain)
    explainWaste(module, levels, options.target, plan);
  if (!report)
    return success();
  report->plan = plan;
  if (options.explainMemory && cluster)
    report->memory = makeMemoryTable(module, *cluster, step.needs);
  return success();
}

/// Reports what the step needs, as it is and with options.
static LogicalResult reportFit(ModuleOp input, StringRef text,
                               StringRef fileName,
                               const CompileOptions &options, LoweredStep &step,
                               const Cluster &cluster, bool isPartitioned) {
  if (step.fitted.planned.needs.empty() || isPartitioned)
    return input.emitError("is partitioned already, and has no other plan");
  auto say = [&](const Json &said) { options.onFit(system::printJson(said)); };
  say(describeFit(input, cluster, step.fitted));
  if (!options.pricesOptions)
    return success();
  CompileOptions quiet = withoutReports(options);
  std::mutex mutex;
  auto plan = [&](const StepChange &change, int64_t spareBytes) {
    OwningOpRef<ModuleOp> unordered;
    if (isOrderAlone(change)) {
      std::lock_guard<std::mutex> lock(mutex);
      unordered = std::move(step.unordered);
    }
    // The step's context has one plan at a time.
    if (unordered)
      if (auto planned = planOrder(*unordered, fileName, quiet, change))
        return *planned;
    return planApart(text, fileName, quiet, change, spareBytes, step.fitted);
  };
  priceOptions(input, cluster, step.fitted, plan, say);
  return success();
}

/// Compiles a module that was read and verified.
static LogicalResult compileModule(ModuleOp module, StringRef text,
                                   StringRef fileName,
                                   const CompileOptions &options,
                                   Reporter &reporter, StringRef outDir,
                                   CompileReport *report) {
  LevelRunner levels(fileName, options, reporter);
  if (failed(prepareStep(module, levels, options)))
    return failure();
  OwningOpRef<ModuleOp> input;
  if (options.onFit)
    input = module.clone();
  EmitOptions emit = makeEmitOptions(module, levels, options);
  bool isCut = isPartitioned(module);
  StringRef first = isCut ? kKernelsLevel : getLevels().front().name;
  auto price = [&](ModuleOp lowered, ArrayRef<MemoryNeed> needs) {
    return priceStep(lowered, emit, levels, needs);
  };
  FailureOr<LoweredStep> step =
      lowerToFit(module, first, levels, options.libraries, reporter, price,
                 /*reports=*/bool(options.onFit));
  if (failed(step))
    return failure();
  addWorkspace(emit, levels, step->needs);
  const std::optional<Cluster> &cluster = levels.getCluster();
  std::unique_ptr<GatheredProgram> program;
  if (step->isLowered && (cluster || !outDir.empty())) {
    program = gatherProgram(module, emit);
    if (!program)
      return failure();
  }
  if (step->isLowered && failed(describeStep(module, program.get(), *step,
                                             levels, options, report)))
    return failure();
  if (options.onFit) {
    // Each plan takes memory.
    program.reset();
    module.getBody()->clear();
    return reportFit(*input, text, fileName, options, *step, *cluster, isCut);
  }
  LogicalResult result = success();
  if (!outDir.empty()) {
    if (options.onPass)
      options.onPass("emit");
    result = program->write(outDir, step->summary.str());
  }
  if (options.leavesMemory) {
    // Still known to what looks for lost memory.
    [[maybe_unused]] static GatheredProgram *left;
    left = program.release();
  }
  return result;
}

LogicalResult compileProgram(StringRef text, StringRef fileName,
                             const CompileOptions &options, StringRef outDir,
                             CompileHandler handler, CompileReport *report) {
  static std::once_flag once;
  std::call_once(once, [] {
    registerWhaleTransformsPasses();
    registerWhaleConversionPasses();
    registerWhaleCudaPasses();
  });
  DialectRegistry registry;
  registerProgramDialects(registry);
  auto owned = std::make_unique<MLIRContext>(registry);
  MLIRContext &context = *owned;
  // None is loaded while a pass runs, which may run others.
  context.loadAllAvailableDialects();
  Reporter reporter(handler, options.explain, text);
  ScopedDiagnosticHandler diagnostics(&context, [&](Diagnostic &diagnostic) {
    reporter.report(diagnostic);
    return success();
  });
  if (options.onPass)
    options.onPass("parse");
  OwningOpRef<ModuleOp> module = readStep(context, text, fileName);
  LogicalResult result = failure();
  if (module)
    result = compileModule(*module, text, fileName, options, reporter, outDir,
                           report);
  if (failed(result))
    reporter.error(fileName.str(), "the compiler failed without saying why");
  reporter.passOn();
  if (options.leavesMemory) {
    // Still known to what looks for lost memory.
    [[maybe_unused]] static MLIRContext *left;
    left = owned.release();
    module.release();
  }
  return failure(failed(result) || reporter.hasFailed());
}

} // namespace whale
