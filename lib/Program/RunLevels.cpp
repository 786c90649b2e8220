//===- RunLevels.cpp - Run the pipelines of the levels ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of one level, and the options of the compilation. Out: the
// module at the next level, and its text where phases are dumped.
//
// Pipelines.cpp says what runs; this adds what depends on the target: which of
// two pipelines, what libraries have for its architecture, and each target's
// part of a mixed cluster by itself. Cost: that of the passes.
//
//===----------------------------------------------------------------------===//

#include "RunLevels.h"

#include "ChannelEmitter.h"
#include "Fitter.h"
#include "Reporter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Program/EmitProgram.h"
#include "whale/ProgramFormat/FusedAttention.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/ProgramFormat/Libraries.h"
#include "whale/Support/WriteFile.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "whale/Target/CUDA/CompileCuda.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <tuple>

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

} // namespace

//===----------------------------------------------------------------------===//
// The target
//===----------------------------------------------------------------------===//

bool LevelRunner::isGpu() const {
  return StringRef(options.target).starts_with("cuda") || plansGpus;
}

bool LevelRunner::isCpu() const {
  return options.target == "cpu" || options.target == "cuda-emulated";
}

int LevelRunner::getCapability(int64_t rank) const {
  if (!isGpu() || (size_t(rank) < processors.size() && processors.test(rank)))
    return 0;
  if (!options.gpuArch.empty())
    return format::capabilityOf(options.gpuArch);
  // What is wrong with other ranks is said where they are checked.
  bool hasKind = cluster && size_t(rank) < cluster->devices.size();
  int capability = hasKind && !cluster->kindOf(rank).arch.empty()
                       ? format::capabilityOf(cluster->kindOf(rank).arch)
                       : defaultCapability;
  auto alike = lowestAlike.find(capability);
  return alike == lowestAlike.end() ? capability : alike->second;
}

Target LevelRunner::getTarget(int64_t rank) const {
  return isTrial ? findTarget(rank).withoutCode() : findTarget(rank);
}

Target LevelRunner::findTarget(int64_t rank) const {
  int capability = getCapability(rank);
  if (capability == 0)
    return Target::forProcessor(
        llvm::is_contained(findKernelFeatures(options.cpu), "avx512vnni"));
  // The emulator has no cuDNN.
  return isCpu()
             ? Target::forGpu(capability)
             : Target::forGpu(capability, getAttentionWorkspace(capability));
}

int64_t LevelRunner::getGpuWorkspace(int64_t rank) const {
  int capability = getCapability(rank);
  return capability == 0 || isCpu()
             ? 0
             : options.libraries.gpuProductWorkspace(capability);
}

LogicalResult LevelRunner::checkTarget() const {
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

LogicalResult LevelRunner::checkOffload(ModuleOp module) const {
  bool isForGpu = options.target == "cuda" || options.target == kCudaTestTarget;
  if (!isForGpu || Config(module).getOffloadLevel() == OffloadLevel::None)
    return success();
  return emitError(findPlace(module))
         << "offload.level: programs for target '" << options.target
         << "' keep all state in the memory of devices; leave it out, or "
            "compile for 'cpu', or for 'none' to simulate";
}

/// Finds architectures that differ in nothing that is lowered: in what
/// libraries compute on them, and in the memory that these take. Code differs,
/// but is not generated.
void LevelRunner::joinAlike(const std::set<int> &capabilities) {
  using Features =
      std::tuple<bool, bool, bool, bool, int64_t, int64_t, int64_t, int64_t>;
  std::map<Features, int> lowest;
  for (int capability : capabilities) {
    const format::GpuArchitecture &arch =
        format::findGpuArchitecture(capability);
    int64_t workspace =
        arch.attentionFeatures ? getAttentionWorkspace(capability) : 0;
    Features features = {arch.hasI8Products,     arch.hasBF16,
                         arch.hasF8Products,     arch.hasEpilogues,
                         arch.attentionFeatures, arch.attentionGradientFeatures,
                         arch.productWorkspace,  workspace};
    lowestAlike[capability] =
        lowest.try_emplace(features, capability).first->second;
  }
}

LogicalResult LevelRunner::setCluster(ModuleOp module) {
  for (ClusterOp op : module.getOps<ClusterOp>())
    cluster = op.getCluster();
  // What is only planned for GPUs goes through their passes, too.
  if (options.target == "none" && cluster)
    plansGpus = llvm::any_of(cluster->devices, [&](const Device &device) {
      return isGpuArchitecture(cluster->kinds[device.kind].arch);
    });
  if (!isGpu() || !cluster)
    return success();
  processors = findProcessors(*cluster);
  std::set<int> capabilities;
  for (size_t device = 0; device < cluster->devices.size(); ++device) {
    const DeviceKind &kind = cluster->kindOf(device);
    if (kind.arch.empty())
      continue;
    if (options.gpuArch.empty() && !isGpuArchitecture(kind.arch)) {
      // No code is generated for it.
      if (plansGpus)
        continue;
      return module.emitError("devices of kind '")
             << kind.name << "' run " << kind.arch
             << ", for which no kernels can be compiled, only for "
             << llvm::join(getGpuArchitectures(), ", ");
    }
    capabilities.insert(format::capabilityOf(kind.arch));
  }
  if (!options.gpuArch.empty() || capabilities.empty())
    return success();
  defaultCapability = *capabilities.begin();
  if (plansGpus)
    joinAlike(capabilities);
  if (capabilities.size() > 1 && !plansGpus)
    emitRemark(module.getLoc())
        << "kernels: compiled for each of "
        << llvm::join(llvm::map_range(capabilities, format::archOf), ", ");
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

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

/// What a call of attention may take on any GPU of an architecture.
int64_t LevelRunner::getAttentionWorkspace(int capability) const {
  // Where the cluster says nothing of GPUs, as the larger ones have.
  constexpr int64_t unknownBytes = int64_t(80) << 30;
  if (!cluster)
    return format::mostAttentionWorkspace(unknownBytes);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t device = 0; device < cluster->devices.size(); ++device) {
    if (getCapability(device) != capability)
      continue;
    const DeviceKind &kind = cluster->kindOf(device);
    least =
        std::min(least, kind.arch.empty() ? unknownBytes : kind.memoryBytes);
  }
  return format::mostAttentionWorkspace(least);
}

/// The pipeline without passes that change nothing.
static std::string withoutVerifiers(std::string pipeline) {
  for (StringRef pass : {",whale-verify-task-graphs",
                         ",whale-verify-placements", ",whale-verify-partition"})
    if (size_t at = pipeline.find(pass); at != pipeline.npos)
      pipeline.erase(at, pass.size());
  return pipeline;
}

/// The pipeline for the target, with what is to be explained.
std::string LevelRunner::withOptions(StringRef pipeline,
                                     const Target &target) const {
  std::string text = pipeline.str();
  if (pipeline.contains('%'))
    text = setTarget(pipeline, target);
  if (options.callsPython)
    text = addOption(text, "whale-lift-callbacks", "python");
  if (options.explainMemory)
    text = addOption(text, "whale-plan-buffers", "peak");
  return isTrial && !isVerifyEachSet() ? withoutVerifiers(std::move(text))
                                       : text;
}

LogicalResult LevelRunner::runPasses(ModuleOp module, const Level &level,
                                     StringRef pipeline,
                                     const Target &target) const {
  PassManager manager(module.getContext());
  if (failed(parsePassPipeline(withOptions(pipeline, target), manager)))
    return module.emitError("the pipeline of level '")
           << level.name << "' names an unknown pass";
  configureVerifier(manager);
  if (options.onPass)
    manager.addInstrumentation(std::make_unique<PassTeller>(options));
  return failure(failed(manager.run(module)) ||
                 (level.isVerified && !isTrial && failed(verify(module))));
}

/// Says what is computed in a wider type than it is stored in.
static void explainTypes(ModuleOp module, const Target &target) {
  if (!target.isGpu() || target.computesBF16())
    return;
  auto isBF16 = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
  auto found = module.walk([&](Operation *op) {
    return llvm::any_of(op->getResultTypes(), isBF16) ||
                   llvm::any_of(op->getOperandTypes(), isBF16)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (found.wasInterrupted())
    emitRemark(module.getLoc())
        << "bf16: " << format::archOf(target.getCapability())
        << " has no arithmetic of bf16: what is stored as bf16 is computed in "
           "f32, in kernels and by libraries";
}

LogicalResult LevelRunner::run(ModuleOp module, const Level &level,
                               ArrayRef<int64_t> lack) const {
  std::string ownPipeline =
      lack.empty()
          ? level.pipeline.str()
          : addOption(level.pipeline, "whale-recompute-forward",
                      "lack=" + llvm::join(llvm::map_range(
                                               lack,
                                               [](int64_t bytes) {
                                                 return std::to_string(bytes);
                                               }),
                                           ","));
  bool isKernels = level.name == kKernelsLevel;
  // What follows looks at each piece, to say what transfers take.
  if (isKernels && failed(checkPieces(module)))
    return failure();
  auto lowerFor = [&](ModuleOp part, const Target &target) {
    bool isOwn = target.isGpu() && !level.gpuPipeline.empty();
    if (isOwn && isKernels)
      explainTypes(part, target);
    return runPasses(
        part, level,
        isOwn ? StringRef(level.gpuPipeline) : StringRef(ownPipeline), target);
  };
  bool isByTarget = isGpu() && isKernels && cluster;
  auto targetOf = [&](int64_t rank) { return getTarget(rank); };
  if (failed(isByTarget ? lowerByTarget(module, targetOf, lowerFor)
                        : lowerFor(module, getTarget(0))))
    return failure();
  return dump(module, level);
}

LogicalResult LevelRunner::delayTransfers(ModuleOp module) const {
  const Level &last = getLevels().back();
  if (failed(runPasses(module, last,
                       "whale-start-transfers{late=true}," +
                           getBufferPipeline(isGpu()).str())))
    return failure();
  return dump(module, last);
}

LogicalResult LevelRunner::notePeak(ModuleOp module) const {
  if (options.explainMemory)
    return success();
  return runPasses(
      module, getLevels().back(),
      addOption(getBufferPipeline(isGpu()), "whale-plan-buffers", "peak"));
}

LogicalResult LevelRunner::lowerProducts(ModuleOp products,
                                         int64_t device) const {
  PassManager manager(products.getContext());
  Target target = getTarget(device);
  StringRef pipeline = getProductPipeline(target.isGpu());
  if (failed(parsePassPipeline(withOptions(pipeline, target), manager)))
    llvm::report_fatal_error("the pipeline names an unknown pass");
  return manager.run(products);
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

LogicalResult LevelRunner::dump(ModuleOp module, StringRef phase,
                                unsigned number) const {
  if (options.dumpPhasesTo.empty() || isTrial)
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

} // namespace whale
