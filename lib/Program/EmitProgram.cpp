//===- EmitProgram.cpp - Write a program directory --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/EmitProgram.h"

#include "ChannelEmitter.h"
#include "ClassEmitter.h"
#include "ConstantTable.h"
#include "ProgramDirectory.h"
#include "whale/Conversion/CompileKernels.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Planner/Cluster.h"
#include "whale/Transforms/Attributes.h"

#include "mlir/IR/Threading.h"

using namespace mlir;

namespace whale {
namespace {

constexpr const char *kKernelsFile = "kernels.so";
constexpr const char *kConstantsFile = "constants.bin";

class ProgramEmitter {
public:
  ProgramEmitter(ModuleOp module, const EmitOptions &options)
      : module(module), options(options) {}

  /// Fills the manifest, but for the hashes of the files that it names.
  LogicalResult gather();
  /// These files, and the manifest after it has been gathered.
  LogicalResult write(StringRef outDir);

private:
  bool hasKernels() const {
    return options.target == "cpu" && !kernelSignatures.empty();
  }
  bool hasConstants() const { return !constants.bytes().empty(); }
  LogicalResult collectClasses();
  FailureOr<Json> ranks();
  LogicalResult parameters(Json &arguments, Json &results);
  FailureOr<std::vector<std::string>> emitClasses();
  LogicalResult layout(Json &json, Type local, Attribute placement,
                       Attribute globalType, Location loc);
  void field(const char *name, const Json &value) {
    manifest.next(name);
    printField(text, value);
  }
  LogicalResult fail(llvm::Error error) {
    return emitError(UnknownLoc::get(module.getContext()))
           << llvm::toString(std::move(error));
  }

  ModuleOp module;
  const EmitOptions &options;
  SmallVector<func::FuncOp> classes;
  /// By rank: its class.
  std::map<int64_t, size_t> classOf;
  /// The first argument or result with a placement.
  llvm::DenseMap<Attribute, std::string> namedPlacements;
  ConstantTable constants;
  std::map<std::string, Json> kernelSignatures;
  std::string text;
  JsonLines manifest{text, /*isList=*/false, 0};
};

LogicalResult ProgramEmitter::collectClasses() {
  for (auto function : module.getOps<func::FuncOp>()) {
    std::optional<ArrayRef<int64_t>> ranks = getRanks(function);
    if (!ranks)
      continue;
    for (int64_t rank : *ranks)
      if (!classOf.emplace(rank, classes.size()).second)
        return function.emitError("rank ") << rank << " is in two classes";
    classes.push_back(function);
  }
  if (classes.empty())
    return module.emitError("has no functions with whale.ranks");
  if (classOf.begin()->first != 0 ||
      classOf.rbegin()->first != int64_t(classOf.size()) - 1)
    return module.emitError("the ranks of the classes are not 0, 1, 2, ...");
  return success();
}

FailureOr<Json> ProgramEmitter::ranks() {
  std::optional<Cluster> cluster;
  for (ClusterOp op : module.getOps<ClusterOp>())
    cluster = op.getCluster();
  if (cluster && cluster->devices.size() != classOf.size())
    return module.emitError("the cluster has ")
           << cluster->devices.size() << " devices, but there are "
           << classOf.size() << " ranks";
  Json list = Json::array();
  for (auto [rank, number] : classOf) {
    Json json{{"device", rank}, {"class", number}};
    if (cluster) {
      json["kind"] = cluster->kindOf(rank).name;
      json["node"] = cluster->devices[rank].node;
      json["slowdown"] = cluster->devices[rank].slowdown;
    } else {
      json["kind"] = "cpu";
      json["node"] = 0;
      json["slowdown"] = 1.0;
    }
    list.push_back(std::move(json));
  }
  return list;
}

// The whole tensor's type, and each rank's box of it.
LogicalResult ProgramEmitter::layout(Json &json, Type local,
                                     Attribute placement, Attribute globalType,
                                     Location loc) {
  auto type = cast<RankedTensorType>(local);
  if (auto global = dyn_cast_or_null<TypeAttr>(globalType)) {
    type = dyn_cast<RankedTensorType>(global.getValue());
    if (!type)
      return emitError(loc) << "whale.global_type is no tensor type";
  }
  json["dtype"] = getDTypeName(type.getElementType());
  json["shape"] = toJson(type.getShape());
  auto boxToJson = [](const Box &box) {
    return Json::array({toJson(box.start), toJson(box.size)});
  };
  Json boxes = Json::array();
  if (auto attr = dyn_cast_or_null<PlacementAttr>(placement)) {
    const Placement &value = attr.getValue();
    json["view"] = toJson(value.view());
    // On many ranks a list is long, and the same for many tensors.
    constexpr size_t kManyRanks = 16;
    auto [known, isNew] =
        namedPlacements.try_emplace(attr, json["name"].get<std::string>());
    if (!isNew && classOf.size() > kManyRanks) {
      json["boxes"] = known->second;
      return success();
    }
    for (auto [rank, number] : classOf) {
      std::optional<Box> box = value.box(rank);
      boxes.push_back(box ? boxToJson(*box) : Json());
    }
  } else {
    json["view"] = toJson(type.getShape());
    for (size_t rank = 0; rank < classOf.size(); ++rank)
      boxes.push_back(boxToJson(Box::whole(type.getShape())));
  }
  json["boxes"] = std::move(boxes);
  return success();
}

LogicalResult ProgramEmitter::parameters(Json &arguments, Json &results) {
  func::FuncOp first = classes.front();
  for (func::FuncOp other : classes)
    if (other.getNumArguments() != first.getNumArguments() ||
        other.getNumResults() != first.getNumResults())
      return other.emitError("has another number of arguments or results than "
                             "the other classes");
  auto number = [](Attribute attribute) {
    auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
    return integer ? Json(integer.getInt()) : Json();
  };
  for (unsigned i = 0; i < first.getNumArguments(); ++i) {
    auto get = [&](StringRef name) { return first.getArgAttr(i, name); };
    Location loc = first.getArgument(i).getLoc();
    Json json;
    json["name"] = "arg" + std::to_string(i);
    auto label = dyn_cast_or_null<StringAttr>(get("whale.label"));
    json["label"] = label ? label.str() : getLabel(loc);
    if (failed(layout(json, first.getArgumentTypes()[i], get("whale.placement"),
                      get("whale.global_type"), loc)))
      return failure();
    bool donated = get("whale.donated") || get("jax.buffer_donor") ||
                   get("tf.aliasing_output");
    Json fedBy = number(get(kFedByAttr));
    json["role"] = get(kBatchDimAttr)            ? "batch"
                   : donated || !fedBy.is_null() ? "state"
                                                 : "input";
    json["batch_dim"] = number(get(kBatchDimAttr));
    json["donated"] = donated;
    json["fed_by"] = std::move(fedBy);
    arguments.push_back(std::move(json));
  }
  for (unsigned i = 0; i < first.getNumResults(); ++i) {
    auto get = [&](StringRef name) { return first.getResultAttr(i, name); };
    Json json;
    json["name"] = "result" + std::to_string(i);
    auto label = dyn_cast_or_null<StringAttr>(get("jax.result_info"));
    json["label"] = label ? label.str() : "";
    if (failed(layout(json, first.getResultTypes()[i], get("whale.placement"),
                      get("whale.global_type"), first.getLoc())))
      return failure();
    json["alias"] = number(get("whale.alias"));
    results.push_back(std::move(json));
  }
  return success();
}

/// Each class on its own, after what they share in their order; printed.
FailureOr<std::vector<std::string>> ProgramEmitter::emitClasses() {
  std::vector<EmittedClass> emitted(classes.size());
  auto emitClass = [&](size_t number) -> LogicalResult {
    FailureOr<EmittedClass> result = ClassEmitter(classes[number]).emit();
    if (succeeded(result))
      emitted[number] = std::move(*result);
    return result;
  };
  MLIRContext *context = module.getContext();
  if (failed(failableParallelForEachN(context, 0, classes.size(), emitClass)))
    return failure();
  for (EmittedClass &one : emitted) {
    for (auto &[buffer, value] : one.constants)
      one.json["buffers"][buffer]["offset"] = constants.add(value);
    kernelSignatures.merge(one.kernels);
  }
  std::vector<std::string> printed(classes.size());
  parallelFor(context, 0, classes.size(), [&](size_t number) {
    printed[number] = printElement(emitted[number].json);
    emitted[number].json.clear();
  });
  return printed;
}

LogicalResult ProgramEmitter::gather() {
  if (failed(collectClasses()))
    return failure();
  FailureOr<Json> rankList = ranks();
  Json arguments = Json::array(), results = Json::array();
  if (failed(rankList) || failed(parameters(arguments, results)))
    return failure();
  FailureOr<std::vector<std::string>> printedClasses = emitClasses();
  if (failed(printedClasses))
    return failure();
  auto channels = emitChannels(module, classes);
  if (failed(channels))
    return failure();
  Json signatures = Json::object();
  for (const auto &[symbol, signature] : kernelSignatures)
    signatures[symbol] = signature;

  field("format", "whale");
  field("version", 1);
  field("target", options.target);
  field("name", options.name);
  field("ranks", *rankList);
  field("arguments", arguments);
  field("results", results);
  manifest.next("classes");
  JsonLines classLines(text, /*isList=*/true, 1);
  for (const std::string &printed : *printedClasses) {
    classLines.next();
    text += printed;
  }
  classLines.end();
  manifest.next("channels");
  JsonLines channelLines(text, /*isList=*/false, 1);
  for (const auto &[name, printed] : *channels) {
    channelLines.next(name);
    text += printed;
  }
  channelLines.end();
  field("kernels", hasKernels() ? Json(kKernelsFile) : Json());
  field("kernel_signatures", signatures);
  field("constants", hasConstants() ? Json(kConstantsFile) : Json());
  field("plan",
        options.plan.empty() ? Json::object() : Json::parse(options.plan));
  return success();
}

LogicalResult ProgramEmitter::write(StringRef outDir) {
  llvm::Expected<ProgramDirectory> directory = ProgramDirectory::create(outDir);
  if (!directory)
    return fail(directory.takeError());
  if (hasKernels()) {
    auto kernels = module.lookupSymbol<ModuleOp>("kernels");
    if (failed(compileKernels(kernels, directory->path(kKernelsFile))))
      return failure();
    if (llvm::Error error = directory->add(kKernelsFile))
      return fail(std::move(error));
  }
  if (hasConstants())
    if (llvm::Error error = directory->write(kConstantsFile, constants.bytes()))
      return fail(std::move(error));
  field("hashes", directory->getHashes());
  manifest.end();
  text += "\n";
  if (llvm::Error error = directory->write("manifest.json", text))
    return fail(std::move(error));
  if (llvm::Error error = directory->commit())
    return fail(std::move(error));
  return success();
}

} // namespace

LogicalResult emitProgram(ModuleOp module, const EmitOptions &options,
                          StringRef outDir) {
  ProgramEmitter emitter(module, options);
  if (failed(emitter.gather()))
    return failure();
  return emitter.write(outDir);
}

} // namespace whale
