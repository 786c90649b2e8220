//===- Compile.cpp - From StableHLO text to a program -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the text of a StableHLO module. Out: a program directory, or one error.
// Each level's pipeline runs in turn.
//
// What devices need is known once buffers are planned. Where one lacks memory,
// transfers are started as late as possible; if that is not enough, the module
// is restored from a copy, and lowered once more with other devices for the
// stages, or with corrected estimates, by which automatic stages are cut until
// they are expected to fit. Remarks and warnings are held back until then:
// those about a plan that is dropped are forgotten. Cost: at most two
// lowerings, in the second of which what comes before kernels is run at most
// five times, and two copies of the module at a time.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Compile.h"

#include "ChannelEmitter.h"
#include "MemoryTable.h"
#include "MixedTargets.h"
#include "PlanSummary.h"
#include "PrepareInput.h"
#include "ReadResources.h"
#include "Reporter.h"
#include "ScratchNeeds.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Program/EmitProgram.h"
#include "whale/Program/MemoryNeeds.h"
#include "whale/Program/Nesting.h"
#include "whale/Support/WriteFile.h"
#include "whale/System/Printable.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "whale/Target/CUDA/CompileCuda.h"
#include "whale/Target/CUDA/Passes.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/SourceLines.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <mutex>

using namespace mlir;

namespace whale {
namespace {

/// Tells of each pass that begins. MLIR makes one call at a time.
class PassTeller : public PassInstrumentation {
public:
  explicit PassTeller(const CompileOptions &options) : options(options) {}

  void runBeforePass(Pass *pass, Operation *) override {
    // What only runs other passes has no argument.
    if (!pass->getArgument().empty())
      options.onPass(pass->getArgument());
  }

private:
  const CompileOptions &options;
};

/// A module as it came to some point, and how much had been said by then.
struct Snapshot {
  OwningOpRef<ModuleOp> module;
  size_t said = 0;
};

class Compiler {
public:
  Compiler(StringRef fileName, const CompileOptions &options,
           Reporter &reporter, MemoryFit &fit)
      : fileName(fileName), options(options), reporter(reporter), fit(fit) {}

  LogicalResult run(ModuleOp module, StringRef name, StringRef outDir,
                    CompileReport *report);

private:
  LogicalResult checkOptions();
  /// Which architectures the kernels of GPUs are compiled for.
  LogicalResult chooseArchitectures(ModuleOp module);
  /// Lowers the module through the levels from `first` to `last`.
  LogicalResult lower(ModuleOp module, StringRef first, StringRef last,
                      PlanSummary &summary);
  LogicalResult cutAgain(ModuleOp module, const Cluster &cluster,
                         PlanSummary &summary);
  std::vector<MemoryNeed> getExpectedNeeds() const;
  void correctCut(MemoryFit &next, ArrayRef<MemoryNeed> found) const;
  LogicalResult runPasses(ModuleOp module, const Level &level,
                          StringRef pipeline);
  LogicalResult findNeeds(ModuleOp module, const Cluster &cluster);
  int64_t findScratch(ModuleOp products, const Cluster &cluster,
                      int64_t device);
  ScratchNeeds &getScratchNeeds(const Cluster &cluster);
  Snapshot save(ModuleOp module);
  void restore(ModuleOp module, Snapshot snapshot);
  LogicalResult lowerToFit(ModuleOp module, StringRef first,
                           PlanSummary &summary);
  std::optional<StringRef> correct(ModuleOp module, StringRef first,
                                   Snapshot input, const Cluster &cluster);
  void findStageDevices(ModuleOp module);
  SmallVector<int64_t> findStageBytes(ModuleOp module, const Cluster &cluster);
  LogicalResult dump(ModuleOp module, StringRef phase);
  std::string withOptions(StringRef pipeline) const;
  bool isGpu() const { return StringRef(options.target).starts_with("cuda"); }
  /// Whether it runs on the processor.
  bool isCpu() const {
    return options.target == "cpu" || options.target == "cuda-emulated";
  }

  /// What a rank on a GPU takes for its products, on the newest of several
  /// kinds; 0 for other targets.
  int64_t gpuWorkspace() const {
    if (!isGpu() || isCpu())
      return 0;
    return options.libraries.gpuProductWorkspace(
        format::capabilityOf(gpuArchs.back()));
  }

  StringRef fileName;
  const CompileOptions &options;
  Reporter &reporter;
  unsigned phaseNumber = 0;
  /// From which level on all is decided again where memory is short, and the
  /// module as it came there: the cut of automatic stages, or else the shares.
  StringRef firstDecision = "placed";
  Snapshot undecided;
  /// What passes expect devices to need, and are told that these do.
  MemoryFit &fit;
  /// By device, of the plan at hand.
  std::vector<MemoryNeed> needs;
  /// What is known of scratch, once it has been asked for.
  std::optional<ScratchNeeds> scratch;
  /// What is short in it if transfers start early; empty if nothing is.
  std::string delayed;
  /// What was short in the plan that was made first; empty if nothing was.
  std::string firstLack;
  /// Those of the kernels, from the lowest on.
  std::vector<std::string> gpuArchs;
  /// The devices of each virtual device, of all its groups.
  std::vector<SmallVector<int64_t>> stageDevices;
};

LogicalResult Compiler::checkOptions() {
  if (options.target != kCudaTestTarget &&
      !llvm::is_contained({"cpu", "cuda", "cuda-emulated", "none"},
                          StringRef(options.target))) {
    reporter.error("", "target '" + options.target +
                           "' is none of cpu, cuda, cuda-emulated, none");
    return failure();
  }
  if (isGpu() && !options.gpuArch.empty() &&
      !isGpuArchitecture(options.gpuArch)) {
    reporter.error("", "GPU architecture '" + options.gpuArch +
                           "' is none of " +
                           llvm::join(getGpuArchitectures(), ", "));
    return failure();
  }
  return success();
}

LogicalResult Compiler::chooseArchitectures(ModuleOp module) {
  gpuArchs = {options.gpuArch.empty() ? "sm_90" : options.gpuArch};
  auto clusters = module.getOps<ClusterOp>();
  if (!options.gpuArch.empty() || clusters.empty())
    return success();
  Cluster cluster = (*clusters.begin()).getCluster();
  // From the lowest one on.
  std::map<int, const DeviceKind *> kinds;
  for (size_t device = 0; device < cluster.devices.size(); ++device) {
    const DeviceKind &kind = cluster.kindOf(device);
    if (!kind.arch.empty())
      kinds.emplace(format::capabilityOf(kind.arch), &kind);
  }
  for (const auto &[number, kind] : kinds)
    if (!isGpuArchitecture(kind->arch))
      return module.emitError("devices of kind '")
             << kind->name << "' run " << kind->arch
             << ", for which no kernels can be compiled, only for "
             << llvm::join(getGpuArchitectures(), ", ");
  if (kinds.empty())
    return success();
  gpuArchs.clear();
  for (const auto &[number, kind] : kinds)
    gpuArchs.push_back(kind->arch);
  if (kinds.size() > 1)
    emitRemark(module.getLoc())
        << "kernels: compiled for each of " << llvm::join(gpuArchs, ", ");
  return success();
}

LogicalResult Compiler::dump(ModuleOp module, StringRef phase) {
  unsigned number = phaseNumber++;
  if (options.dumpPhasesTo.empty())
    return success();
  std::error_code error =
      llvm::sys::fs::create_directories(options.dumpPhasesTo);
  llvm::SmallString<128> path(options.dumpPhasesTo);
  llvm::sys::path::append(path, (number < 10 ? "0" : "") + Twine(number) + "-" +
                                    phase + ".mlir");
  for (StringRef read : {fileName, StringRef(options.cluster)})
    if (llvm::sys::fs::equivalent(path, read)) {
      reporter.error("", ("cannot write '" + path +
                          "': it is the file that is compiled, or its "
                          "cluster; dump the phases elsewhere")
                             .str());
      return failure();
    }
  if (!error)
    error =
        writeFile(path, [&](raw_ostream &stream) { module->print(stream); });
  if (!error)
    return success();
  reporter.error("", ("cannot write '" + path + "': " + error.message()).str());
  return failure();
}

LogicalResult Compiler::runPasses(ModuleOp module, const Level &level,
                                  StringRef pipeline) {
  PassManager manager(module.getContext());
  if (failed(parsePassPipeline(pipeline, manager)))
    return module.emitError("the pipeline of level '")
           << level.name << "' names an unknown pass";
  configureVerifier(manager);
  if (options.onPass)
    manager.addInstrumentation(std::make_unique<PassTeller>(options));
  return failure(failed(manager.run(module)) ||
                 (level.isVerified && failed(verify(module))));
}

/// Gives a pass of the pipeline one more option.
static std::string addOption(StringRef pipeline, StringRef pass,
                             const Twine &option) {
  size_t at = pipeline.find(pass);
  if (at == StringRef::npos)
    return pipeline.str();
  StringRef before = pipeline.take_front(at + pass.size()),
            after = pipeline.drop_front(at + pass.size());
  bool hasMore = after.consume_front("{");
  return (before + "{" + option + (hasMore ? " " : "}") + after).str();
}

/// The pipeline with what libraries have for the lowest architecture (the
/// emulator has no cuDNN, and no epilogues), and with what is to be explained.
std::string Compiler::withOptions(StringRef pipeline) const {
  std::string text = pipeline.str();
  if (pipeline.contains("whale-lower-library-ops{")) {
    std::string capability =
        std::to_string(format::capabilityOf(gpuArchs.front()));
    text = addOption(text, "whale-lower-library-ops", "bytes=" + capability);
    if (!isCpu())
      for (StringRef pass : {"whale-lower-library-ops", "whale-form-epilogues"})
        text = addOption(text, pass, "capability=" + capability);
  } else if (pipeline.contains("whale-lower-library-ops") &&
             llvm::is_contained(findKernelFeatures(options.cpu),
                                "avx512vnni")) {
    text = addOption(text, "whale-lower-library-ops", "integers");
  }
  if (options.explainMemory)
    text = addOption(text, "whale-plan-buffers", "peak");
  return text;
}

/// The level at which all is decided but buffers.
static constexpr StringLiteral kPlanned = "partitioned";

static const Level *findLevel(StringRef name) {
  return llvm::find_if(getLevels(),
                       [&](const Level &level) { return level.name == name; });
}

LogicalResult Compiler::lower(ModuleOp module, StringRef first, StringRef last,
                              PlanSummary &summary) {
  const Level *begin = findLevel(first), *end = findLevel(last) + 1;
  phaseNumber = 1 + (begin - getLevels().begin());
  for (const Level &level : llvm::make_range(begin, end)) {
    if (level.name == firstDecision)
      undecided = save(module);
    if (level.name == kPlanned) {
      fit.replaceableSchedule.clear();
      summary.addPlacement(module);
      findStageDevices(module);
    }
    // What follows looks at each piece, to say what transfers take.
    if (level.name == "kernels" && failed(checkPieces(module)))
      return failure();
    auto lowerFor = [&](ModuleOp part, bool isForProcessor) {
      bool isOwn = isGpu() && !isForProcessor && !level.gpuPipeline.empty();
      return runPasses(part, level,
                       withOptions(isOwn ? level.gpuPipeline : level.pipeline));
    };
    auto clusters = module.getOps<ClusterOp>();
    bool isByTarget = isGpu() && level.name == "kernels" && !clusters.empty();
    if (failed(isByTarget
                   ? lowerByTarget(module, (*clusters.begin()).getCluster(),
                                   lowerFor)
                   : lowerFor(module, false)))
      return failure();
    if (level.name == kPlanned)
      summary.addCollectives(module);
    if (failed(dump(module, level.name)))
      return failure();
  }
  return success();
}

/// Tells the next cut what devices need, or are expected to, with the last one.
void Compiler::correctCut(MemoryFit &next, ArrayRef<MemoryNeed> found) const {
  next.cutScale = findScale(fit.cut, found);
  if (!fit.cutScale.empty())
    for (auto [factor, last] : llvm::zip_equal(next.cutScale, fit.cutScale))
      factor *= last;
  // There are no shards yet that libraries could be asked about.
  next.cut.scratchBytes.clear();
  for (const MemoryNeed &need : found)
    next.cut.scratchBytes.push_back(need.scratchBytes);
}

/// What devices are expected to need with the plan that was made last; empty
/// if that isn't known.
std::vector<MemoryNeed> Compiler::getExpectedNeeds() const {
  std::vector<MemoryNeed> expected(fit.shares.bytes.size());
  for (size_t device = 0; device < expected.size(); ++device) {
    expected[device].bytes = fit.shares.bytes[device];
    expected[device].argumentBytes = fit.shares.fixedBytes[device];
    if (!fit.shares.scratchBytes.empty())
      expected[device].scratchBytes = fit.shares.scratchBytes[device];
  }
  return expected;
}

/// Cuts automatic stages again as long as a device is expected to lack memory
/// with them, with what is expected for those that were cut last; of all the
/// ones that lack least stay. The module is, and stays, as far as it is
/// planned.
LogicalResult Compiler::cutAgain(ModuleOp module, const Cluster &cluster,
                                 PlanSummary &summary) {
  // Each runs what comes before kernels, also where none fits in the end.
  constexpr int mostCuts = 4;
  // As passes find it before they write what they expect.
  MemoryFit tried = fit, best;
  bool isBest = true;
  int64_t least = std::numeric_limits<int64_t>::max();
  auto lowerAgain = [&](const MemoryFit &given) {
    fit = given;
    restore(module, std::move(undecided));
    return lower(module, firstDecision, kPlanned, summary);
  };
  for (int cuts = 1; !fit.cut.bytes.empty(); ++cuts) {
    std::vector<MemoryNeed> expected = getExpectedNeeds();
    std::optional<int64_t> device = findOverfull(expected, cluster);
    if (!device)
      return success();
    int64_t lack =
        expected[*device].bytes - cluster.kindOf(*device).memoryBytes;
    isBest = lack < least;
    if (isBest) {
      best = tried;
      least = lack;
    }
    if (cuts == mostCuts)
      break;
    correctCut(tried, expected);
    // One that can't be followed is none.
    ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &said) {
      return success(said.getSeverity() == DiagnosticSeverity::Error);
    });
    if (failed(lowerAgain(tried))) {
      isBest = false;
      break;
    }
  }
  return isBest ? success() : lowerAgain(best);
}

Snapshot Compiler::save(ModuleOp module) {
  return {module.clone(), reporter.getNumHeld()};
}

/// Makes the module what it was; what was said about it since then is no longer
/// true.
void Compiler::restore(ModuleOp module, Snapshot snapshot) {
  module->setAttrs((*snapshot.module)->getAttrDictionary());
  module.getBodyRegion().takeBody((*snapshot.module).getBodyRegion());
  reporter.forget(snapshot.said);
}

ScratchNeeds &Compiler::getScratchNeeds(const Cluster &cluster) {
  if (!scratch)
    scratch.emplace(options.libraries, cluster.devices.size(), gpuWorkspace());
  return *scratch;
}

/// What a device uses for products and convolutions besides buffers, once they
/// are lowered as a program is. What is said of it, and errors, are there
/// again.
int64_t Compiler::findScratch(ModuleOp products, const Cluster &cluster,
                              int64_t device) {
  bool isForProcessor = isGpu() && findProcessors(cluster).test(device);
  PassManager manager(products.getContext());
  StringRef pipeline = getProductPipeline(isGpu() && !isForProcessor);
  if (failed(parsePassPipeline(withOptions(pipeline), manager)))
    llvm::report_fatal_error("the pipeline names an unknown pass");
  ScopedDiagnosticHandler quiet(products.getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(manager.run(products)))
    return 0;
  return getScratchNeeds(cluster).find(
      llvm::to_vector(products.getOps<FunctionOpInterface>()),
      isCpu() || isForProcessor);
}

/// What devices need: where one lacks memory, with transfers that start as late
/// as they can.
LogicalResult Compiler::findNeeds(ModuleOp module, const Cluster &cluster) {
  needs = findMemoryNeeds(module, cluster, isCpu(), getScratchNeeds(cluster));
  delayed.clear();
  std::optional<int64_t> device = findOverfull(needs, cluster);
  if (!device)
    return success();
  bool hasStarts = module->walk([](WaitOp) { return WalkResult::interrupt(); })
                       .wasInterrupted();
  if (!hasStarts)
    return success();
  std::string lack = describeLack(needs, cluster, *device);
  const Level &last = getLevels().back();
  StringRef plan = isGpu() ? last.gpuPipeline : last.pipeline;
  plan = plan.substr(plan.find("whale-verify-schedule"));
  if (failed(
          runPasses(module, last,
                    "whale-start-transfers{late=true}," + withOptions(plan))))
    return failure();
  --phaseNumber;
  if (failed(dump(module, last.name)))
    return failure();
  needs = findMemoryNeeds(module, cluster, isCpu(), getScratchNeeds(cluster));
  delayed = std::move(lack);
  return success();
}

void Compiler::findStageDevices(ModuleOp module) {
  stageDevices.clear();
  for (VirtualDeviceOp device : module.getOps<VirtualDeviceOp>()) {
    SmallVector<int64_t> &all = stageDevices.emplace_back();
    for (size_t group = 0; group < device.getNumGroups(); ++group)
      llvm::append_range(all, device.getGroup(group));
  }
}

/// What a device of each stage needs, if the stages' devices have enough memory
/// once those with most of it go to the stages that need most; else nothing, or
/// if they have done so already.
SmallVector<int64_t> Compiler::findStageBytes(ModuleOp module,
                                              const Cluster &cluster) {
  SmallVector<int64_t> bytes, memory;
  if (module->hasAttr(kVirtualDevicesAttr))
    return bytes;
  for (ArrayRef<int64_t> devices : stageDevices) {
    int64_t &most = bytes.emplace_back(0);
    int64_t &least = memory.emplace_back(std::numeric_limits<int64_t>::max());
    for (int64_t device : devices) {
      most = std::max(most, needs[device].bytes);
      least = std::min(least, cluster.kindOf(device).memoryBytes);
    }
  }
  SmallVector<int64_t> sorted = bytes;
  llvm::sort(sorted, std::greater<>());
  llvm::sort(memory, std::greater<>());
  if (sorted == bytes ||
      llvm::any_of(llvm::zip_equal(sorted, memory), [](auto pair) {
        return std::get<0>(pair) > std::get<1>(pair);
      }))
    bytes.clear();
  return bytes;
}

/// Makes ready to decide again what makes devices need too much: with other
/// devices for the stages, where that is enough; else with estimates that are
/// corrected by what devices have turned out to need, and without the schedule,
/// if another one needs less. Returns the level to begin at; nothing if there
/// is nothing to decide.
std::optional<StringRef> Compiler::correct(ModuleOp module, StringRef first,
                                           Snapshot input,
                                           const Cluster &cluster) {
  if (!undecided.module || cluster.devices.size() == 1)
    return std::nullopt;
  SmallVector<int64_t> stageBytes = findStageBytes(module, cluster);
  MemoryFit next;
  next.isCorrected = true;
  if (!fit.replaceableSchedule.empty())
    next.misfitSchedules = {fit.replaceableSchedule};
  next.stageBytes.assign(stageBytes.begin(), stageBytes.end());
  if (!stageBytes.empty()) {
    fit = std::move(next);
    restore(module, std::move(input));
    return first;
  }
  next.shareScale = findScale(fit.shares, needs);
  correctCut(next, needs);
  fit = std::move(next);
  restore(module, std::move(undecided));
  return firstDecision;
}

/// Lowers the module from a level on, to a program that fits. What devices need
/// is known when buffers are planned: where one lacks memory, the plan is made
/// once more.
LogicalResult Compiler::lowerToFit(ModuleOp module, StringRef first,
                                   PlanSummary &summary) {
  Snapshot input = save(module);
  StringRef last = getLevels().back().name;
  if (failed(lower(module, first, last, summary)))
    return failure();
  auto clusters = module.getOps<ClusterOp>();
  if (clusters.empty())
    return success();
  Cluster cluster = (*clusters.begin()).getCluster();
  if (failed(findNeeds(module, cluster)))
    return failure();
  std::optional<int64_t> device = findOverfull(needs, cluster);
  if (!device)
    return success();
  firstLack = describeLack(needs, cluster, *device);
  if (std::optional<StringRef> again =
          correct(module, first, std::move(input), cluster)) {
    if (failed(lower(module, *again, kPlanned, summary)) ||
        failed(cutAgain(module, cluster, summary)) ||
        failed(lower(module, "kernels", last, summary)) ||
        failed(findNeeds(module, cluster)))
      return failure();
    device = findOverfull(needs, cluster);
    if (!device)
      return success();
  }
  return emitError(module.getLoc())
         << "memory: " << describeLack(needs, cluster, *device) << "; "
         << suggestRemedy(needs, cluster, *device);
}

LogicalResult Compiler::run(ModuleOp module, StringRef name, StringRef outDir,
                            CompileReport *report) {
  if (failed(checkOptions()) || failed(dump(module, "input")) ||
      failed(prepareInput(module, options)) ||
      (isGpu() && failed(chooseArchitectures(module))))
    return failure();
  getScratchFinder(module) = [&](ModuleOp products, const Cluster &cluster,
                                 int64_t device) {
    return findScratch(products, cluster, device);
  };
  PlanSummary summary;
  if (Config(module).getNumTaskGraphs())
    firstDecision = "annotated";
  StringRef first =
      isPartitioned(module) ? "kernels" : getLevels().front().name;
  if (failed(lowerToFit(module, first, summary)))
    return failure();
  if (!firstLack.empty())
    emitRemark(module.getLoc()) << "memory: decided again, as with what was "
                                   "decided first "
                                << firstLack;
  if (!delayed.empty())
    emitRemark(module.getLoc()) << "memory: nothing is received before it is "
                                   "needed, as else "
                                << delayed;
  if (!needs.empty())
    emitRemark(module.getLoc()) << describeNeeds(needs, fit);
  EmitOptions emit(options.libraries);
  emit.target = options.target;
  emit.gpuArchs = gpuArchs;
  emit.cpu = options.cpu;
  emit.name = name.str();
  emit.plan = summary.str();
  emit.verify = isVerifyEachSet();
  emit.leavesMemory = options.leavesMemory;
  if (isGpu() && !isCpu())
    for (const MemoryNeed &need : needs)
      emit.workspaceBytes.push_back(need.scratchBytes);
  if (report) {
    report->plan = emit.plan;
    auto clusters = module.getOps<ClusterOp>();
    if (options.explainMemory && !clusters.empty())
      report->memory =
          makeMemoryTable(module, (*clusters.begin()).getCluster(), needs);
  }
  if (options.onPass)
    options.onPass("emit");
  return emitProgram(module, emit, outDir);
}

} // namespace

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
    StringRef name = module->getSymName().value_or("program");
    result = Compiler(fileName, options, reporter, getMemoryFit(*module))
                 .run(*module, name, outDir, report);
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
