//===- WhaleDiscardableAttrs.cpp - Attributes on foreign ops --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of the `whale.` attributes of other dialects' operations, of
// arguments and of results: which of these may have the attribute, and its
// valid values. docs/dialects/whale.md lists those that annotated text may
// have.
//
// In: an attribute, and the operation, argument or result that has it. Out:
// success, or an error: there is no such attribute (with the most similar
// name), it belongs elsewhere, or its value is invalid. Cost: a search through
// the table of about 40 entries for each attribute, and a check that is linear
// in its value.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "whale/Cluster/DeviceIds.h"
#include "whale/Cluster/OpClass.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/GpuArchAttribute.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace whale;

namespace {
/// The kind of entity that an attribute is on; sets of them are bit masks.
enum Owner : unsigned {
  kOnModule = 1,
  kOnFunction = 2,
  kOnArgument = 4,
  kOnResult = 8,
  kOnTaskGraph = 16,
  kOnMicroBatches = 32,
  kOnKernel = 64,
  kOnOther = 128,
  kOnAnyOp = kOnTaskGraph | kOnMicroBatches | kOnKernel | kOnOther,
};

/// The operation, argument or result that has an attribute.
struct Site {
  Operation *op;
  Owner owner;
  /// Index of the argument or result.
  unsigned index = 0;
  /// Type of the argument or result; null if the operation is not a function.
  Type type;
};

/// The error of a value, as the rest of a sentence that begins with the
/// attribute; empty if the value is valid.
using Fault = std::string;

struct KnownAttribute {
  StringLiteral name;
  /// Bits of the owners that may have it.
  unsigned owners;
  Fault (*findFault)(const Site &site, Attribute value);
  bool isInput = false;
};
} // namespace

static Fault expected(Attribute value, const Twine &what) {
  return llvm::formatv(" is {0}, expected {1}", value, what.str()).str();
}

template <typename... Kinds>
static Fault needs(Attribute value, const Twine &what) {
  return isa<Kinds...>(value) ? Fault() : expected(value, what);
}

static bool isI64(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64);
}

static Fault findUnitFault(const Site &, Attribute value) {
  return needs<UnitAttr>(value, "no value");
}

static Fault findStringFault(const Site &, Attribute value) {
  return needs<StringAttr>(value, "a string");
}

static Fault findArchFault(const Site &, Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  StringRef number = name ? name.getValue() : "";
  if (number.consume_front("sm_") && !number.empty() && number.size() <= 3 &&
      llvm::all_of(number, llvm::isDigit))
    return {};
  return expected(value, "an architecture such as \"sm_90\"");
}

static Fault findStrategyFault(const Site &, Attribute value) {
  return needs<StrategyAttr>(value, "#whale.replicate or #whale.split");
}

/// Checks a strategy for each pattern of names, with slashes between.
static Fault findScopesFault(const Site &, Attribute value) {
  auto scopes = dyn_cast<DictionaryAttr>(value);
  if (!scopes || scopes.empty() ||
      !llvm::all_of(scopes, [](NamedAttribute scope) {
        return isa<StrategyAttr>(scope.getValue());
      }))
    return expected(value, "{PATTERN = #whale.replicate or #whale.split, ...}");
  for (NamedAttribute scope : scopes) {
    StringRef pattern = scope.getName();
    if (pattern.starts_with("/") || pattern.ends_with("/") ||
        pattern.contains("//"))
      return ": '" + pattern.str() + "' is not names with slashes between";
  }
  return {};
}

/// Checks a list of names for each pattern.
static Fault findScopeNamesFault(const Site &, Attribute value) {
  auto patterns = dyn_cast<DictionaryAttr>(value);
  if (!patterns || !llvm::all_of(patterns, [](NamedAttribute pattern) {
        auto names = dyn_cast<ArrayAttr>(pattern.getValue());
        return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
      }))
    return expected(value, "{PATTERN = [\"NAME\", ...], ...}");
  return {};
}

static Fault findPhaseFault(const Site &, Attribute value) {
  return needs<PhaseAttr>(value, "a #whale.phase");
}

/// Checks a number that counts something.
static Fault findCountFault(const Site &, Attribute value) {
  if (isI64(value) && cast<IntegerAttr>(value).getInt() >= 0)
    return {};
  return expected(value, "an i64 that is not negative");
}

static Fault findCountsFault(const Site &, Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (list && llvm::all_of(list.asArrayRef(), [](int64_t n) { return n >= 0; }))
    return {};
  return expected(value, "array<i64: ...> without negative numbers");
}

/// Checks distinct ids of devices, at least one.
static Fault findDevicesFault(ArrayRef<int64_t> devices) {
  if (devices.empty())
    return ": there is no device";
  llvm::SmallSet<int64_t, 16> seen;
  for (int64_t device : devices) {
    const char *fault = findDeviceFault(device);
    if (!fault && !seen.insert(device).second)
      fault = " appears twice";
    if (fault)
      return (": device " + Twine(device) + fault).str();
  }
  return {};
}

static Fault findVirtualDevicesFault(const Site &, Attribute value) {
  auto lists = dyn_cast<ArrayAttr>(value);
  if (!lists || lists.empty() ||
      !llvm::all_of(lists, llvm::IsaPred<DenseI64ArrayAttr>))
    return expected(value, "a list of array<i64: ...>");
  for (auto list : lists.getAsRange<DenseI64ArrayAttr>())
    if (Fault fault = findDevicesFault(list); !fault.empty())
      return fault;
  return {};
}

static Fault findLikeDevicesFault(const Site &site, Attribute value) {
  auto likes = dyn_cast<DictionaryAttr>(value);
  if (!likes)
    return expected(value, "a dictionary of lists of array<i64: ...>");
  for (NamedAttribute like : likes)
    if (Fault fault = findVirtualDevicesFault(site, like.getValue());
        !fault.empty())
      return fault;
  return {};
}

static Fault findBatchDimFault(const Site &site, Attribute value) {
  if (!isI64(value))
    return expected(value, "an i64");
  if (!site.type)
    return {};
  int64_t dim = cast<IntegerAttr>(value).getInt();
  auto type = dyn_cast<RankedTensorType>(site.type);
  if (type && dim >= 0 && dim < type.getRank())
    return {};
  return llvm::formatv(" is {0}, which is no dimension of '{1}'", dim,
                       site.type)
      .str();
}

/// Checks the index of one of the `count` results or arguments of a function.
static Fault findNumberFault(Attribute value, int64_t count, StringRef things) {
  int64_t number = cast<IntegerAttr>(value).getInt();
  if (number >= 0 && number < count)
    return {};
  return llvm::formatv(" is {0}, the function has {1} {2}", number, count,
                       things)
      .str();
}

static Fault findFedByFault(const Site &site, Attribute value) {
  if (!isI64(value))
    return expected(value, "an i64");
  auto function = dyn_cast<FunctionOpInterface>(site.op);
  return function ? findNumberFault(value, function.getNumResults(), "results")
                  : Fault();
}

static Fault findInitialFault(const Site &site, Attribute value) {
  if (!isa<DenseI64ArrayAttr>(value))
    return expected(value, "an array of i64");
  // A rank that has no part of the argument has none of its elements.
  auto type = dyn_cast_or_null<RankedTensorType>(site.type);
  bool isOfF32 = !site.type ||
                 (type && type.getElementType().isF32() && type.getRank() == 1);
  return isOfF32 ? Fault() : Fault(" needs f32 of one dimension");
}

static Fault findAliasFault(const Site &site, Attribute value) {
  if (!isI64(value))
    return expected(value, "an i64");
  auto function = dyn_cast<FunctionOpInterface>(site.op);
  return function
             ? findNumberFault(value, function.getNumArguments(), "arguments")
             : Fault();
}

static Fault findPlacementFault(const Site &, Attribute value) {
  return needs<PlacementAttr>(value, "a #whale.placement");
}

/// Checks where a program wants a tensor that another one has, or gives.
static Fault findGivenPlacementFault(const Site &site, Attribute value) {
  auto attribute = dyn_cast<PlacementAttr>(value);
  if (!attribute)
    return expected(value, "a #whale.placement");
  const Placement &placement = attribute.getValue();
  auto type = dyn_cast_or_null<RankedTensorType>(site.type);
  if (type && !placement.isViewOf(type.getShape()))
    return llvm::formatv(": {0} is no placement of '{1}'", placement.str(),
                         site.type)
        .str();
  if (placement.isPartial() || placement.hasWindows())
    return ": " + placement.str() + " has terms or windows";
  return {};
}

static Fault findTypeFault(const Site &, Attribute value) {
  auto type = dyn_cast<TypeAttr>(value);
  return type && isa<RankedTensorType>(type.getValue())
             ? Fault()
             : expected(value, "a tensor type");
}

static Fault findElementTypeFault(const Site &, Attribute value) {
  auto type = dyn_cast<TypeAttr>(value);
  return type && (type.getValue().isIntOrFloat() ||
                  isa<ComplexType>(type.getValue()))
             ? Fault()
             : expected(value, "a type of numbers");
}

static Fault findClassFault(const Site &, Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && parseOpClass(name.getValue())
             ? Fault()
             : expected(value, "a class of operations such as \"reduction\"");
}

static Fault findStackPieceFault(const Site &, Attribute value) {
  auto piece = dyn_cast<DictionaryAttr>(value);
  auto begin = piece ? piece.getAs<IntegerAttr>("begin") : IntegerAttr();
  auto stack = piece ? piece.getAs<IntegerAttr>("stack") : IntegerAttr();
  auto whole = piece ? piece.getAs<TypeAttr>("whole") : TypeAttr();
  auto type =
      whole ? dyn_cast<RankedTensorType>(whole.getValue()) : RankedTensorType();
  if (begin && isI64(begin) && type && type.getRank() > 0 &&
      begin.getInt() >= 0 && begin.getInt() < type.getDimSize(0) && stack &&
      isI64(stack) && stack.getInt() >= 0)
    return {};
  return expected(value, "{begin = i64, stack = i64, whole = TYPE}");
}

/// Checks one placement for each of `types`, of its shape.
static Fault findPlacementsFault(Attribute value, TypeRange types) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || !llvm::all_of(list, llvm::IsaPred<PlacementAttr>))
    return expected(value, "a list of #whale.placement");
  if (list.size() != types.size())
    return (" has " + Twine(list.size()) + " placements, expected " +
            Twine(types.size()))
        .str();
  for (auto [element, type] : llvm::zip(list, types)) {
    const Placement &placement = cast<PlacementAttr>(element).getValue();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !placement.isViewOf(tensor.getShape()))
      return llvm::formatv(": {0} is no placement of '{1}'", placement.str(),
                           type)
          .str();
  }
  return {};
}

static Fault findResultPlacementsFault(const Site &site, Attribute value) {
  return findPlacementsFault(value, site.op->getResultTypes());
}

static Fault findOperandPlacementsFault(const Site &site, Attribute value) {
  return findPlacementsFault(value, site.op->getOperandTypes());
}

static bool isLoopBytes(Attribute attr) {
  auto entry = dyn_cast<DictionaryAttr>(attr);
  if (!entry || !entry.getAs<DenseI64ArrayAttr>("devices") ||
      !entry.getAs<IntegerAttr>("fixed") ||
      !entry.getAs<IntegerAttr>("outside"))
    return false;
  return llvm::all_of(ArrayRef{"kept", "sums"}, [&](StringRef key) {
    auto amounts = entry.getAs<DictionaryAttr>(key);
    return amounts && llvm::all_of(amounts, [](NamedAttribute bytes) {
             return isa<IntegerAttr>(bytes.getValue());
           });
  });
}

static Fault findLoopBytesFault(const Site &, Attribute value) {
  auto entries = dyn_cast<ArrayAttr>(value);
  if (entries && llvm::all_of(entries, isLoopBytes)) {
    for (auto entry : entries.getAsRange<DictionaryAttr>())
      if (Fault fault = findDevicesFault(
              entry.getAs<DenseI64ArrayAttr>("devices").asArrayRef());
          !fault.empty())
        return fault;
    return {};
  }
  return expected(value, "a list of {devices = array<i64: ...>, fixed = i64, "
                         "kept = {NAME = i64, ...}, outside = i64, "
                         "sums = {NAME = i64, ...}}");
}

static Fault findBuffersFault(const Site &, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (list && llvm::all_of(list, llvm::IsaPred<DictionaryAttr>))
    return {};
  return expected(value, "a list of dictionaries");
}

static Fault findLocalsFault(const Site &, Attribute value) {
  auto segments = dyn_cast<DictionaryAttr>(value);
  if (segments && llvm::all_of(segments, [](NamedAttribute segment) {
        auto layouts = dyn_cast<ArrayAttr>(segment.getValue());
        return layouts && llvm::all_of(layouts, [](Attribute offsets) {
                 return isa<DenseI64ArrayAttr>(offsets);
               });
      }))
    return {};
  return expected(value, "a dictionary of lists of array<i64: ...>");
}

static Fault findPeakFault(const Site &, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (list && llvm::all_of(list, [](Attribute attr) {
        auto entry = dyn_cast<DictionaryAttr>(attr);
        return entry && entry.getAs<IntegerAttr>("bytes") &&
               entry.getAs<LocationAttr>("of");
      }))
    return {};
  return expected(value, "a list of {bytes = i64, of = LOCATION}");
}

static Fault findCallbackFault(const Site &, Attribute value) {
  auto callback = dyn_cast<DictionaryAttr>(value);
  if (callback && callback.getAs<IntegerAttr>("index") &&
      callback.getAs<IntegerAttr>("order") &&
      callback.getAs<DenseI64ArrayAttr>("loops"))
    return {};
  return expected(value, "{index = i64, order = i64, loops = array<i64: ...>}");
}

static Fault findGivenPlanFault(const Site &, Attribute value) {
  auto parts = dyn_cast<ArrayAttr>(value);
  if (parts && parts.size() == 2 && isa<StringAttr>(parts[0]) &&
      isa<StringAttr>(parts[1]))
    return {};
  return expected(value, "a file's name and its text");
}

/// Config checks the keys of the dictionary and reports them itself.
static Fault findConfigFault(const Site &, Attribute value) {
  return needs<DictionaryAttr>(value, "a dictionary");
}

// In the order in which messages list them.
static constexpr KnownAttribute kKnown[] = {
    {"whale.batch_dim", kOnArgument, findBatchDimFault, /*isInput=*/true},
    {"whale.fed_by", kOnArgument, findFedByFault, /*isInput=*/true},
    {"whale.donated", kOnArgument, findUnitFault, /*isInput=*/true},
    {"whale.label", kOnArgument, findStringFault, /*isInput=*/true},
    {"whale.given_placement", kOnArgument | kOnResult, findGivenPlacementFault,
     /*isInput=*/true},
    {"whale.strategy", kOnAnyOp, findStrategyFault, /*isInput=*/true},
    {"whale.phase", kOnAnyOp, findPhaseFault, /*isInput=*/true},
    {"whale.default_strategy", kOnModule, findStrategyFault, /*isInput=*/true},
    {Config::kAttr, kOnModule, findConfigFault, /*isInput=*/true},
    {"whale.virtual_devices", kOnModule, findVirtualDevicesFault,
     /*isInput=*/true},
    {"whale.like_devices", kOnModule, findLikeDevicesFault, /*isInput=*/true},
    {"whale.scopes", kOnModule, findScopesFault, /*isInput=*/true},
    {kCheckpointNameAttr, kOnOther, findStringFault, /*isInput=*/true},
    {"whale.scope_names", kOnModule, findScopeNamesFault},
    {"whale.given_plan", kOnModule, findGivenPlanFault},
    {"whale.plan", kOnModule, findStringFault},

    {"whale.loop_bytes", kOnMicroBatches, findLoopBytesFault},
    {kChunkAttr, kOnTaskGraph, findCountFault},
    {kWeightGradientAttr, kOnTaskGraph, findUnitFault},
    {"whale.initial", kOnArgument, findInitialFault},
    {"whale.stack_piece", kOnArgument | kOnResult, findStackPieceFault},
    {"whale.feedback_found", kOnFunction, findUnitFault},
    {kCallbackAttr, kOnResult, findCallbackFault},
    {kInHostAttr, kOnArgument | kOnResult, findUnitFault},

    {"whale.placements", kOnAnyOp, findResultPlacementsFault},
    {"whale.operand_placements", kOnAnyOp, findOperandPlacementsFault},
    {"whale.placement", kOnArgument | kOnResult, findPlacementFault},
    {"whale.global_type", kOnArgument | kOnResult, findTypeFault},
    {"whale.segment", kOnFunction, findUnitFault},
    {kForProcessorAttrName, kOnFunction, findUnitFault},
    {kGpuArchAttrName, kOnFunction, findArchFault},
    {"whale.moment", kOnOther, findCountFault},
    {"whale.last_use", kOnArgument, findUnitFault},

    {kExtentAttrName, kOnFunction, findCountFault},
    {kThreadsAttrName, kOnFunction | kOnKernel, findCountFault},
    {kFlopsAttrName, kOnFunction | kOnKernel | kOnOther, findCountFault},
    {kWorkspaceAttrName, kOnOther, findCountFault},
    {kBytesAttrName, kOnFunction | kOnKernel | kOnOther, findCountFault},
    {kClassAttrName, kOnFunction | kOnKernel | kOnOther, findClassFault},
    {kComputesInAttrName, kOnFunction | kOnKernel, findElementTypeFault},
    {kTripsAttrName, kOnOther, findCountFault},
    {kTilesAttrName, kOnOther, findUnitFault},
    {kParallelAttrName, kOnFunction | kOnKernel, findUnitFault},
    {"whale.buffers", kOnFunction, findBuffersFault},
    {"whale.arena_bytes", kOnFunction, findCountFault},
    {"whale.locals", kOnFunction, findLocalsFault},
    {"whale.peak", kOnFunction, findPeakFault},
    {"whale.result_buffers", kOnFunction, findCountsFault},
    {"whale.alias", kOnResult, findAliasFault},
    {"whale.out", kOnAnyOp, findCountsFault},
    {"whale.copies", kOnAnyOp, findCountsFault},
    {"whale.layout", kOnAnyOp, findCountFault},
};

/// Describes a set of owners.
static std::string describeOwners(unsigned owners) {
  if (owners & kOnOther)
    return "an operation of a function's body";
  SmallVector<StringRef> names;
  for (auto [owner, name] : {std::pair(kOnModule, "the module"),
                             {kOnFunction, "a function"},
                             {kOnArgument, "an argument of a function"},
                             {kOnResult, "a result of a function"},
                             {kOnTaskGraph, "whale.task_graph"},
                             {kOnMicroBatches, "whale.micro_batches"},
                             {kOnKernel, "whale.kernel"}})
    if (owners & owner)
      names.push_back(name);
  return llvm::join(names, " or ");
}

/// Returns "argument 1" and the like, for a message located at the function.
static std::string describe(const Site &site) {
  if (site.owner & (kOnArgument | kOnResult))
    return ((site.owner == kOnArgument ? " of argument " : " of result ") +
            Twine(site.index))
        .str();
  return "";
}

static LogicalResult emitUnknown(const Site &site, StringRef name) {
  InFlightDiagnostic error = site.op->emitError("unknown attribute '")
                             << name << "'" << describe(site);
  const KnownAttribute *nearest = nullptr;
  unsigned least = 3; // More than 3 changes make another word.
  SmallVector<StringRef> valid;
  for (const KnownAttribute &known : kKnown) {
    if (!known.isInput)
      continue;
    if (known.owners & site.owner)
      valid.push_back(known.name);
    unsigned distance = name.edit_distance(known.name, true, least + 1);
    if (distance <= least && (!nearest || distance < least)) {
      nearest = &known;
      least = distance;
    }
  }
  if (nearest)
    error << "; did you mean '" << nearest->name << "'?";
  if (valid.empty())
    return error << "; " << describeOwners(site.owner)
                 << " has no attributes of this dialect";
  return error << "; " << describeOwners(site.owner) << " may have "
               << llvm::join(valid, ", ");
}

static LogicalResult verify(const Site &site, NamedAttribute attr) {
  StringRef name = attr.getName();
  const KnownAttribute *known = llvm::find_if(
      kKnown, [&](const KnownAttribute &entry) { return entry.name == name; });
  if (known == std::end(kKnown))
    return emitUnknown(site, name);
  if (!(known->owners & site.owner))
    return site.op->emitError("attribute '")
           << name << "'" << describe(site)
           << " is not allowed here: it belongs "
           << "on " << describeOwners(known->owners);
  if (Fault fault = known->findFault(site, attr.getValue()); !fault.empty())
    return site.op->emitError("attribute '")
           << name << "'" << describe(site) << fault;
  return success();
}

bool whale::isInputAttribute(StringRef name) {
  return llvm::any_of(kKnown, [&](const KnownAttribute &known) {
    return known.isInput && known.name == name;
  });
}

static Owner ownerOf(Operation *op) {
  if (isa<ModuleOp>(op))
    return kOnModule;
  if (isa<FunctionOpInterface>(op))
    return kOnFunction;
  if (isa<TaskGraphOp>(op))
    return kOnTaskGraph;
  if (isa<MicroBatchesOp>(op))
    return kOnMicroBatches;
  return isa<KernelOp>(op) ? kOnKernel : kOnOther;
}

LogicalResult WhaleDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  if (failed(verify({op, ownerOf(op), 0, Type()}, attr)))
    return failure();
  return attr.getName() == Config::kAttr
             ? Config::verify(op, cast<DictionaryAttr>(attr.getValue()))
             : success();
}

LogicalResult WhaleDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verify({op, kOnArgument, index,
                 function ? function.getArgumentTypes()[index] : Type()},
                attr);
}

LogicalResult WhaleDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                        unsigned index,
                                                        NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verify({op, kOnResult, index,
                 function ? function.getResultTypes()[index] : Type()},
                attr);
}
