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
#include "whale/Target/CUDA/Passes.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Plans.h"
#include "whale/Transforms/SourceLines.h"

#include "llvm/Support/SourceMgr.h"

#include <mutex>
#include <set>

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
/// which the program's verification finds.
static void addDevices(PlanSummary &summary, const format::Program &program,
                       const Cluster &cluster, ArrayRef<MemoryNeed> needs) {
  try {
    summary.addDevices(program, modelStep(program, cluster), cluster, needs);
  } catch (const system::Error &) {
  }
}

/// GPUs copy nothing from and to the memory of hosts.
static LogicalResult checkOffload(ModuleOp module,
                                  const CompileOptions &options) {
  bool isForGpu = options.target == "cuda" || options.target == kCudaTestTarget;
  if (!isForGpu || Config(module).getOffloadLevel() == OffloadLevel::None)
    return success();
  Location place = module.getLoc();
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!findPosition(op->getLoc()))
      return WalkResult::advance();
    place = op->getLoc();
    return WalkResult::interrupt();
  });
  return emitError(place)
         << "offload.level: programs for target '" << options.target
         << "' keep all state in the memory of devices; leave it out, or "
            "compile for 'cpu', or for 'none' to simulate";
}

/// Compiles a module that was read and verified.
static LogicalResult compileModule(ModuleOp module, StringRef fileName,
                                   const CompileOptions &options,
                                   Reporter &reporter, StringRef outDir,
                                   CompileReport *report) {
  LevelRunner levels(fileName, options, reporter);
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
  if (failed(checkOffload(module, options)))
    return failure();
  std::string name = module.getSymName().value_or("program").str();
  StringRef first =
      isPartitioned(module) ? kKernelsLevel : getLevels().front().name;
  FailureOr<LoweredStep> step =
      lowerToFit(module, first, levels, options.libraries, reporter);
  if (failed(step))
    return failure();
  EmitOptions emit(options.libraries);
  emit.target = options.target;
  emit.capabilityOf = [&](int64_t rank) { return levels.getCapability(rank); };
  emit.areKindsCompared = levels.areKindsCompared();
  emit.cpu = options.cpu;
  emit.name = std::move(name);
  emit.verify = isVerifyEachSet();
  if (levels.isGpu() && !levels.isCpu())
    for (const MemoryNeed &need : step->needs)
      emit.workspaceBytes.push_back(need.scratchBytes);
  const std::optional<Cluster> &cluster = levels.getCluster();
  std::unique_ptr<GatheredProgram> program;
  if (cluster || !outDir.empty()) {
    program = gatherProgram(module, emit);
    if (!program)
      return failure();
  }
  if (cluster)
    addDevices(step->summary, program->get(), *cluster, step->needs);
  std::string plan = step->summary.str();
  if (options.explain)
    explainWaste(module, levels, options.target, plan);
  if (report) {
    report->plan = plan;
    if (options.explainMemory && cluster)
      report->memory = makeMemoryTable(module, *cluster, step->needs);
  }
  LogicalResult result = success();
  if (!outDir.empty()) {
    if (options.onPass)
      options.onPass("emit");
    result = program->write(outDir, std::move(plan));
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
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler diagnostics(&context, [&](Diagnostic &diagnostic) {
    reporter.report(diagnostic);
    return success();
  });

  if (std::optional<NestingError> deep = findDeepNesting(text)) {
    emitError(FileLineColLoc::get(&context, fileName, deep->line, deep->column))
        << deep->message;
    return failure();
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, fileName), llvm::SMLoc());
  if (options.onPass)
    options.onPass("parse");
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  LogicalResult result = failure();
  if (module && succeeded(readResources(*module)) &&
      succeeded(verify(*module))) {
    result =
        compileModule(*module, fileName, options, reporter, outDir, report);
  }
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
