//===- EmitProgram.cpp - Write a program directory --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module with a schedule for each rank class, whose buffers are planned,
// their segments, and a module of kernels. Out: a program directory. First all
// of the program but its kernels is gathered in memory and, if asked for,
// checked. Then the files are written: kernels, constants, the manifest and its
// tables. The directory appears at the end. Segments and classes are translated
// in parallel, each on its own; what they share (origins, constants, signatures
// of kernels) is numbered afterwards, in their order.
//
// Cost: compiling the kernels, for GPUs once for each architecture; the tables
// of collectives (ChannelEmitter.cpp); a box of each rank for each layout. The
// rest is linear in operations and in bytes of constants, except that a class
// finds each segment that it runs by a search of the module's symbols.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/EmitProgram.h"

#include "ChannelEmitter.h"
#include "ClassEmitter.h"
#include "ConstantTable.h"
#include "ProgramDirectory.h"
#include "ToFormat.h"
#include "VerifyPrices.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/ProgramFormat/CheckSpaces.h"
#include "whale/ProgramFormat/CheckValues.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/System/Error.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "whale/Target/CPU/KernelParts.h"
#include "whale/Target/CUDA/CompileCuda.h"
#include "whale/Transforms/Attributes.h"

#include "mlir/IR/Threading.h"

#include <set>

using namespace mlir;

namespace whale {
namespace {

constexpr const char *kKernelsFile = "kernels.so";
constexpr const char *kConstantsFile = "constants.bin";

class ProgramEmitter : public GatheredProgram {
public:
  ProgramEmitter(ModuleOp module, const EmitOptions &options)
      : module(module), options(options) {}

  /// Fills the program, but for the hashes of the files that it names.
  LogicalResult gather();
  /// What was gathered.
  LogicalResult verify();
  /// These files, and the program after it has been gathered.
  LogicalResult write(StringRef outDir, std::string plan) override;
  const format::Program &get() const override { return program; }

private:
  LogicalResult writeKernels(ProgramDirectory &directory);
  LogicalResult writePtx(ModuleOp kernels, ProgramDirectory &directory);
  LogicalResult checkText(const format::ProgramText &text);
  bool isForGpu() const {
    return options.target == "cuda" || options.target == kCudaTestTarget;
  }
  bool hasKernels() const {
    return options.target != "none" && !program.kernelSignatures->empty();
  }
  bool hasConstants() const { return !constants.bytes().empty(); }
  LogicalResult collectClasses();
  LogicalResult gatherRanks();
  LogicalResult checkHeld(ScheduleOp schedule, Type local, Attribute placement,
                          Attribute globalType, const Twine &what);
  LogicalResult checkParameters(ScheduleOp schedule);
  LogicalResult gatherParameters();
  format::RankClass describeClass(ScheduleOp schedule);
  LogicalResult gatherBodies();
  LogicalResult gatherLayout(format::Parameter &parameter, Type local,
                             Attribute placement, Attribute globalType,
                             Location loc);
  LogicalResult fail(llvm::Error error) {
    return emitError(UnknownLoc::get(module.getContext()))
           << llvm::toString(std::move(error));
  }

  ModuleOp module;
  const EmitOptions &options;
  SmallVector<ScheduleOp> classes;
  SmallVector<func::FuncOp> segments;
  SegmentNumbers segmentNumbers;
  /// By rank: its class.
  std::map<int64_t, size_t> classOf;
  llvm::DenseMap<Attribute, format::Shared<format::Layout>> layouts;
  /// Placements, and types of their parts in a class, that fit.
  llvm::DenseSet<std::tuple<Attribute, Type, Operation *>> checked;
  ConstantTable constants;
  format::Program program;
};

LogicalResult ProgramEmitter::collectClasses() {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kSegmentAttr)) {
      segmentNumbers[function] = int64_t(segments.size());
      segments.push_back(function);
    }
  classes = getRankClasses(module);
  if (classes.empty())
    return module.emitError("has no whale.schedule");
  for (auto [number, schedule] : llvm::enumerate(classes))
    for (int64_t rank : schedule.getRanks())
      if (!classOf.emplace(rank, number).second)
        return schedule.emitError("rank ") << rank << " is in two classes";
  if (classOf.begin()->first != 0 ||
      classOf.rbegin()->first != int64_t(classOf.size()) - 1)
    return module.emitError("the ranks of the classes are not 0, 1, 2, ...");
  return success();
}

LogicalResult ProgramEmitter::gatherRanks() {
  std::optional<Cluster> cluster;
  for (ClusterOp op : module.getOps<ClusterOp>())
    cluster = op.getCluster();
  if (cluster && cluster->devices.size() != classOf.size())
    return module.emitError("the cluster has ")
           << cluster->devices.size() << " devices, but there are "
           << classOf.size() << " ranks";
  if (cluster)
    program.cluster = cluster->toJson();
  for (auto [number, rankClass] : classOf) {
    format::Rank &rank = program.ranks.emplace_back();
    rank.rankClass = int64_t(rankClass);
    rank.device = number;
    if (cluster) {
      const DeviceKind &kind = cluster->kindOf(number);
      rank.kind = kind.name;
      if (isForGpu() && !kind.arch.empty())
        program.gpuKinds[kind.name] = {options.areKindsCompared ? kind.arch
                                                                : "",
                                       kind.memoryBytes + kind.reservedBytes};
      rank.node = cluster->devices[number].node;
      rank.slowdown = cluster->devices[number].slowdown;
    }
  }
  return success();
}

static format::Box toFormat(const Box &box) {
  return {toShape(box.start), toShape(box.size)};
}

// The whole tensor's type, and each rank's box of it.
LogicalResult ProgramEmitter::gatherLayout(format::Parameter &parameter,
                                           Type local, Attribute placement,
                                           Attribute globalType, Location loc) {
  auto type = cast<RankedTensorType>(local);
  if (auto global = dyn_cast_or_null<TypeAttr>(globalType)) {
    type = dyn_cast<RankedTensorType>(global.getValue());
    if (!type)
      return emitError(loc) << "whale.global_type is no tensor type";
  }
  parameter.dtype = toDType(type.getElementType());
  parameter.shape = toShape(type.getShape());
  auto attr = dyn_cast_or_null<PlacementAttr>(placement);
  if (attr && layouts.contains(attr)) {
    parameter.layout = layouts.at(attr);
    return success();
  }
  format::Layout layout;
  if (attr) {
    const Placement &value = attr.getValue();
    layout.view = toShape(value.view());
    for (auto [rank, number] : classOf) {
      std::optional<Box> box = value.box(rank);
      layout.boxes.push_back(box ? std::optional(toFormat(*box))
                                 : std::nullopt);
    }
  } else {
    layout.view = parameter.shape;
    layout.boxes.assign(classOf.size(), format::Box::whole(parameter.shape));
  }
  parameter.layout = std::make_shared<format::Layout>(std::move(layout));
  if (attr)
    layouts[attr] = parameter.layout;
  return success();
}

/// Checks that each rank of a class holds as much of a tensor as its placement
/// says, which an edited text may contradict.
LogicalResult ProgramEmitter::checkHeld(ScheduleOp schedule, Type local,
                                        Attribute placement,
                                        Attribute globalType,
                                        const Twine &what) {
  auto attr = dyn_cast_or_null<PlacementAttr>(placement);
  auto global = dyn_cast_or_null<TypeAttr>(globalType);
  auto type = dyn_cast<RankedTensorType>(global ? global.getValue() : local);
  if (!attr || !type || !checked.insert({attr, local, schedule}).second)
    return success();
  int64_t count = cast<RankedTensorType>(local).getNumElements();
  for (int64_t rank : schedule.getRanks()) {
    std::optional<RankedTensorType> held =
        getLocalType(type, attr.getValue(), rank);
    if (count != (held ? held->getNumElements() : 0))
      return schedule.emitError(what)
             << " is " << local << ", and rank " << rank << " holds "
             << (held ? Type(*held) : getAbsentType(type)) << " of it in "
             << attr;
  }
  return success();
}

LogicalResult ProgramEmitter::checkParameters(ScheduleOp schedule) {
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
    if (failed(checkHeld(schedule, schedule.getArgumentTypes()[i],
                         schedule.getArgAttr(i, "whale.placement"),
                         schedule.getArgAttr(i, "whale.global_type"),
                         "argument " + Twine(i))))
      return failure();
  for (unsigned i = 0; i < schedule.getNumResults(); ++i)
    if (failed(checkHeld(schedule, schedule.getResultTypes()[i],
                         schedule.getResultAttr(i, "whale.placement"),
                         schedule.getResultAttr(i, "whale.global_type"),
                         "result " + Twine(i))))
      return failure();
  return success();
}

static format::CallbackOperand describeCallback(DictionaryAttr attribute) {
  format::CallbackOperand callback;
  callback.index = attribute.getAs<IntegerAttr>("index").getInt();
  if (auto operand = attribute.getAs<IntegerAttr>("operand"))
    callback.operand = operand.getInt();
  callback.hasToken = attribute.contains("has_token");
  callback.order = attribute.getAs<IntegerAttr>("order").getInt();
  ArrayRef<int64_t> loops = attribute.getAs<DenseI64ArrayAttr>("loops");
  for (size_t i = 0; i + 1 < loops.size(); i += 2)
    callback.loops.emplace_back(loops[i], loops[i + 1]);
  return callback;
}

LogicalResult ProgramEmitter::gatherParameters() {
  ScheduleOp first = classes.front();
  for (ScheduleOp other : classes)
    if (other.getNumArguments() != first.getNumArguments() ||
        other.getNumResults() != first.getNumResults())
      return other.emitError("has another number of arguments or results than "
                             "the other classes");
  for (ScheduleOp schedule : classes)
    if (failed(checkParameters(schedule)))
      return failure();
  auto number = [](Attribute attribute) -> std::optional<int64_t> {
    auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
    return integer ? std::optional(integer.getInt()) : std::nullopt;
  };
  for (unsigned i = 0; i < first.getNumArguments(); ++i) {
    auto get = [&](StringRef name) { return first.getArgAttr(i, name); };
    Location loc = first.getArgument(i).getLoc();
    format::Parameter &argument = program.arguments.emplace_back();
    argument.name = "arg" + std::to_string(i);
    auto label = dyn_cast_or_null<StringAttr>(get("whale.label"));
    argument.label = label ? label.str() : getLabel(loc);
    if (failed(gatherLayout(argument, first.getArgumentTypes()[i],
                            get("whale.placement"), get("whale.global_type"),
                            loc)))
      return failure();
    argument.isInHost = bool(get(kInHostAttr));
    argument.donated = isDonated(first, i) || get(kAliasingOutputAttr);
    argument.fedBy = number(get(kFedByAttr));
    argument.batchDim = number(get(kBatchDimAttr));
    if (auto initial = dyn_cast_or_null<DenseI64ArrayAttr>(get(kInitialAttr)))
      argument.initial.assign(initial.asArrayRef().begin(),
                              initial.asArrayRef().end());
    argument.role = get(kBatchDimAttr)                   ? format::Role::Batch
                    : argument.donated || argument.fedBy ? format::Role::State
                                                         : format::Role::Input;
  }
  for (unsigned i = 0; i < first.getNumResults(); ++i) {
    auto get = [&](StringRef name) { return first.getResultAttr(i, name); };
    format::Parameter &result = program.results.emplace_back();
    result.name = "result" + std::to_string(i);
    if (auto label = dyn_cast_or_null<StringAttr>(get("jax.result_info")))
      result.label = label.str();
    if (failed(gatherLayout(result, first.getResultTypes()[i],
                            get("whale.placement"), get("whale.global_type"),
                            first.getLoc())))
      return failure();
    result.isInHost = bool(get(kInHostAttr));
    result.alias = number(get(kAliasAttr));
    if (auto callback = dyn_cast_or_null<DictionaryAttr>(get(kCallbackAttr)))
      result.callback = describeCallback(callback);
  }
  return success();
}

/// What a rank class says besides its instructions.
format::RankClass ProgramEmitter::describeClass(ScheduleOp schedule) {
  format::RankClass rankClass;
  rankClass.ranks = schedule.getRanks().vec();
  rankClass.isForProcessor = schedule->hasAttr(kForProcessorAttrName);
  if (isForGpu() && !rankClass.isForProcessor)
    rankClass.arch =
        format::archOf(options.capabilityOf(rankClass.ranks.front()));
  rankClass.arenaBytes =
      schedule->getAttrOfType<IntegerAttr>(kArenaBytesAttr).getInt();
  if (!options.workspaceBytes.empty() && !rankClass.isForProcessor)
    rankClass.workspaceBytes = options.workspaceBytes[rankClass.ranks.front()];
  if (auto locals = schedule->getAttrOfType<DictionaryAttr>(kLocalsAttr))
    for (NamedAttribute entry : locals) {
      Operation *segment = module.lookupSymbol(entry.getName());
      auto &layouts = rankClass.locals[segmentNumbers.at(segment)];
      for (Attribute offsets : cast<ArrayAttr>(entry.getValue()))
        layouts.push_back(cast<DenseI64ArrayAttr>(offsets).asArrayRef().vec());
    }
  return rankClass;
}

/// Gives the instructions the numbers that their origins and TaskGraphs have in
/// the program.
static void renumber(std::vector<format::Instruction> &instructions,
                     ArrayRef<int64_t> origins, ArrayRef<int64_t> graphs) {
  for (format::Instruction &instruction : instructions) {
    if (instruction.origin)
      instruction.origin = origins[*instruction.origin];
    if (instruction.taskGraph)
      instruction.taskGraph = graphs[*instruction.taskGraph];
    if (auto *loop = std::get_if<format::While>(&instruction.operation)) {
      renumber(loop->cond, origins, graphs);
      renumber(loop->body, origins, graphs);
    } else if (auto *choice =
                   std::get_if<format::Case>(&instruction.operation)) {
      for (std::vector<format::Instruction> &branch : choice->branches)
        renumber(branch, origins, graphs);
    }
  }
}

namespace {
/// A list without equal elements.
template <typename T>
class Numbering {
public:
  explicit Numbering(std::vector<T> &list) : list(list) {}
  /// Adds what is new; returns the number of each.
  SmallVector<int64_t> add(std::vector<T> &elements) {
    SmallVector<int64_t> all;
    for (T &element : elements) {
      auto [number, isNew] = numbers.try_emplace(element, int64_t(list.size()));
      if (isNew)
        list.push_back(std::move(element));
      all.push_back(number->second);
    }
    return all;
  }

private:
  std::vector<T> &list;
  std::map<T, int64_t> numbers;
};
} // namespace

LogicalResult ProgramEmitter::gatherBodies() {
  SmallVector<FunctionOpInterface> functions(segments.begin(), segments.end());
  llvm::append_range(functions, classes);
  std::vector<EmittedBody> emitted(functions.size());
  auto emit = [&](size_t number) -> LogicalResult {
    FailureOr<EmittedBody> result =
        ClassEmitter(functions[number], segmentNumbers, options.libraries)
            .emit();
    if (succeeded(result))
      emitted[number] = std::move(*result);
    return result;
  };
  if (failed(failableParallelForEachN(module.getContext(), 0, functions.size(),
                                      emit)))
    return failure();
  program.kernelSignatures.emplace();
  Numbering origins(program.origins);
  Numbering taskGraphs(program.taskGraphs);
  for (auto [function, one] : llvm::zip_equal(functions, emitted)) {
    renumber(one.body.instructions, origins.add(one.origins),
             taskGraphs.add(one.taskGraphs));
    for (auto &[buffer, value] : one.constants)
      one.body.buffers[buffer].offset = constants.add(value);
    for (auto &[symbol, signature] : one.kernels) {
      auto [known, isNew] =
          program.kernelSignatures->try_emplace(symbol, signature);
      if (!isNew)
        known->second.inplace.merge(signature.inplace);
    }
    if (auto schedule = dyn_cast<ScheduleOp>(function.getOperation())) {
      program.classes.push_back(describeClass(schedule));
      static_cast<format::Body &>(program.classes.back()) = std::move(one.body);
    } else {
      format::Function &segment = program.functions.emplace_back();
      segment.operands = function.getNumArguments();
      segment.results = function.getNumResults();
      static_cast<format::Body &>(segment) = std::move(one.body);
    }
  }
  return success();
}

/// Says what a program for a GPU leaves to the processor.
static void explainHostWork(ModuleOp module,
                            const format::Libraries &libraries) {
  auto explain = [](Operation *op, const Twine &what) {
    op->emitRemark(what) << " is computed by the processor: its operands are "
                            "copied there and back";
  };
  module.walk([&](Operation *op) {
    if (auto call = dyn_cast<LibraryCallOp>(op)) {
      if (!libraries.gpuWorkspace(call.getFunction().str(),
                                  describeTensors(call.getInputs()),
                                  describeTensors(call.getOutputs())))
        explain(op, call.getFunction());
    } else if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
      if (!libraries.gpuWorkspace(toFormat(convolution)))
        explain(op, "this convolution");
    }
  });
}

LogicalResult ProgramEmitter::gather() {
  if (failed(collectClasses()) || failed(gatherRanks()) ||
      failed(gatherParameters()) || failed(gatherBodies()))
    return failure();
  auto channels = emitChannels(module, classes);
  if (failed(channels))
    return failure();
  program.channels = std::move(*channels);
  if (isForGpu())
    explainHostWork(module, options.libraries);
  program.target = isForGpu() ? "cuda" : options.target;
  program.name = options.name;
  program.plan = "{}";
  return success();
}

LogicalResult ProgramEmitter::verify() {
  std::optional<format::Fault> fault = format::checkSpaces(program);
  if (!fault)
    fault = format::checkTransfers(program);
  if (!fault)
    fault = format::checkValues(program);
  if (!fault)
    return verifyPrices(module, classes, program.channels);
  return module.emitError("the compiler has made a wrong program: ")
         << fault->path << ": " << fault->what;
}

/// What whoever runs the program would refuse to load is an error now. A plan,
/// which nobody runs, may be of more than any machine computes.
LogicalResult ProgramEmitter::checkText(const format::ProgramText &text) {
  if (options.target == "none")
    return success();
  auto readFile = [&](const std::string &name) { return text.tables.at(name); };
  try {
    format::readProgram(text.manifest, "manifest.json", readFile);
  } catch (const system::Error &error) {
    return module.emitError("the program could not be loaded: ")
           << error.what();
  }
  return success();
}

/// The kernels of each architecture, and which of all texts has each of them.
LogicalResult ProgramEmitter::writePtx(ModuleOp kernels,
                                       ProgramDirectory &directory) {
  std::set<int> capabilities;
  for (const format::RankClass &rankClass : program.classes)
    if (!rankClass.arch.empty())
      capabilities.insert(format::capabilityOf(rankClass.arch));
  // Files of all architectures are counted on.
  size_t first = 0;
  auto writeAll = [&](ArrayRef<std::string> contents, StringRef kind,
                      std::vector<format::File> &files) -> LogicalResult {
    for (auto [number, bytes] : llvm::enumerate(contents)) {
      std::string name = ("kernels." + Twine(first + number) + kind).str();
      if (llvm::Error error = directory.write(name, bytes))
        return fail(std::move(error));
      files.push_back({name, directory.getHashes().at(name)});
    }
    return success();
  };
  for (int capability : capabilities) {
    std::string arch = format::archOf(capability);
    OwningOpRef<ModuleOp> own =
        selectKernels(kernels, /*isForProcessor=*/false, arch);
    if (own->getBody()->empty())
      continue;
    FailureOr<Ptx> ptx = compilePtx(*own, arch);
    if (failed(ptx))
      return failure();
    format::GpuCode &code = program.gpu.emplace_back();
    code.arch = arch;
    if (failed(writeAll(ptx->modules, ".ptx", code.modules)) ||
        failed(writeAll(ptx->cubins, ".cubin", code.cubins)))
      return failure();
    for (auto &[symbol, signature] : *program.kernelSignatures)
      if (auto it = ptx->kernels.find(symbol); it != ptx->kernels.end()) {
        const PtxKernel &kernel = it->second;
        signature.gpu = {int64_t(first + kernel.module), kernel.shape.blocks,
                         kernel.shape.threads};
      }
    first += ptx->modules.size();
  }
  return success();
}

LogicalResult ProgramEmitter::writeKernels(ProgramDirectory &directory) {
  auto kernels = module.lookupSymbol<ModuleOp>(kKernelsModuleName);
  if (isForGpu() && failed(writePtx(kernels, directory)))
    return failure();
  OwningOpRef<ModuleOp> ofProcessor = selectKernels(kernels, true);
  if (options.target == "cuda") {
    if (ofProcessor->getBody()->empty())
      return success();
    kernels = *ofProcessor;
  }
  std::string path = directory.path(kKernelsFile);
  CompileKernelsOptions kernelOptions;
  kernelOptions.cpu = options.cpu;
  bool isNative = options.target == "cpu" || options.target == "cuda";
  if (failed(isNative ? compileKernels(kernels, path, kernelOptions)
                      : compileEmulated(kernels, path, options.capabilityOf(0),
                                        options.cpu)))
    return failure();
  program.kernelFeatures = findKernelFeatures(options.cpu);
  if (llvm::Error error = directory.add(kKernelsFile))
    return fail(std::move(error));
  program.kernels = {kKernelsFile, directory.getHashes().at(kKernelsFile)};
  return success();
}

LogicalResult ProgramEmitter::write(StringRef outDir, std::string plan) {
  program.plan = std::move(plan);
  llvm::Expected<ProgramDirectory> directory = ProgramDirectory::create(outDir);
  if (!directory)
    return fail(directory.takeError());
  if (hasKernels() && failed(writeKernels(*directory)))
    return failure();
  if (hasConstants()) {
    if (llvm::Error error = directory->write(kConstantsFile, constants.bytes()))
      return fail(std::move(error));
    program.constants = {kConstantsFile,
                         directory->getHashes().at(kConstantsFile)};
  }
  auto inParallel = [&](size_t count, auto &function) {
    parallelFor(module.getContext(), 0, count, function);
  };
  format::ProgramText text = format::writeProgram(program, inParallel);
  if (failed(checkText(text)))
    return failure();
  text.tables["manifest.json"] = std::move(text.manifest);
  for (const auto &[name, contents] : text.tables)
    if (llvm::Error error = directory->write(name, contents))
      return fail(std::move(error));
  if (llvm::Error error = directory->commit())
    return fail(std::move(error));
  return success();
}

} // namespace

std::unique_ptr<GatheredProgram> gatherProgram(ModuleOp module,
                                               const EmitOptions &options) {
  auto emitter = std::make_unique<ProgramEmitter>(module, options);
  if (failed(emitter->gather()) ||
      (options.verify && failed(emitter->verify())))
    return nullptr;
  return emitter;
}

LogicalResult emitProgram(ModuleOp module, const EmitOptions &options,
                          StringRef outDir) {
  std::unique_ptr<GatheredProgram> program = gatherProgram(module, options);
  return success(program && succeeded(program->write(outDir, "{}")));
}

} // namespace whale
