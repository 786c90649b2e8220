//===- WhaleDiscardableAttrs.cpp - Attributes on foreign ops --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `whale.` attributes that stand on operations of other dialects: on the
// module, on functions and their arguments, on StableHLO.
// docs/dialects/whale.md lists them.
//

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace whale;

static InFlightDiagnostic wrongKind(Operation *op, NamedAttribute attr,
                                    StringRef expected) {
  return op->emitError("attribute '")
         << attr.getName().getValue() << "' is " << attr.getValue()
         << ", expected " << expected;
}

static LogicalResult verifyRanks(Operation *op, NamedAttribute attr) {
  auto ranks = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
  if (!ranks)
    return wrongKind(op, attr, "a list of ranks as array<i64: ...>");
  if (ranks.empty())
    return wrongKind(op, attr, "at least one rank");
  llvm::SmallSet<int64_t, 16> seen;
  for (int64_t rank : ranks.asArrayRef())
    if (rank < 0 || !seen.insert(rank).second)
      return op->emitError("attribute '")
             << attr.getName().getValue() << "': rank " << rank
             << (rank < 0 ? " is negative" : " stands twice");
  return success();
}

/// One placement for each of `types`, of its shape.
static LogicalResult verifyPlacements(Operation *op, NamedAttribute attr,
                                      TypeRange types) {
  auto list = dyn_cast<ArrayAttr>(attr.getValue());
  if (!list || !llvm::all_of(list, llvm::IsaPred<PlacementAttr>))
    return wrongKind(op, attr, "a list of #whale.placement");
  if (list.size() != types.size())
    return op->emitError("attribute '")
           << attr.getName().getValue() << "' has " << list.size()
           << " placements, expected " << types.size();
  for (auto [element, type] : llvm::zip(list, types)) {
    const Placement &placement = cast<PlacementAttr>(element).getValue();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !placement.isViewOf(tensor.getShape()))
      return op->emitError("attribute '")
             << attr.getName().getValue() << "': " << placement.str()
             << " is no placement of " << type;
  }
  return success();
}

static bool isLoopBytes(Attribute attr) {
  auto entry = dyn_cast<DictionaryAttr>(attr);
  if (!entry || !entry.getAs<DenseI64ArrayAttr>("devices") ||
      !entry.getAs<IntegerAttr>("fixed") ||
      !entry.getAs<IntegerAttr>("outside"))
    return false;
  auto kept = entry.getAs<DictionaryAttr>("kept");
  return kept && llvm::all_of(kept, [](NamedAttribute bytes) {
           return isa<IntegerAttr>(bytes.getValue());
         });
}

LogicalResult WhaleDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  StringRef name = attr.getName();
  Attribute value = attr.getValue();
  if (name == "whale.default_strategy" || name == "whale.strategy") {
    if (!isa<StrategyAttr>(value))
      return wrongKind(op, attr, "#whale.replicate or #whale.split");
  } else if (name == "whale.phase") {
    if (!isa<PhaseAttr>(value))
      return wrongKind(op, attr, "a #whale.phase");
  } else if (name == Config::kAttr) {
    if (!isa<DictionaryAttr>(value))
      return wrongKind(op, attr, "a dictionary");
    return Config::verify(op, cast<DictionaryAttr>(value));
  } else if (name == "whale.virtual_devices") {
    auto lists = dyn_cast<ArrayAttr>(value);
    if (!lists || !llvm::all_of(lists, llvm::IsaPred<DenseI64ArrayAttr>))
      return wrongKind(op, attr, "a list of array<i64: ...>");
  } else if (name == "whale.loop_bytes") {
    auto entries = dyn_cast<ArrayAttr>(value);
    if (!entries || !llvm::all_of(entries, isLoopBytes))
      return wrongKind(op, attr,
                       "a list of {devices = array<i64: ...>, fixed = i64, "
                       "kept = {NAME = i64, ...}, outside = i64}");
  } else if (name == kRanksAttrName) {
    return verifyRanks(op, attr);
  } else if (name == "whale.placements") {
    return verifyPlacements(op, attr, op->getResultTypes());
  } else if (name == "whale.operand_placements") {
    return verifyPlacements(op, attr, op->getOperandTypes());
  }
  return success();
}

LogicalResult WhaleDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attr) {
  StringRef name = attr.getName();
  Attribute value = attr.getValue();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == "whale.batch_dim") {
    auto dim = dyn_cast<IntegerAttr>(value);
    if (!dim || !dim.getType().isSignlessInteger(64))
      return wrongKind(op, attr, "an i64");
    auto type =
        function
            ? dyn_cast<RankedTensorType>(function.getArgumentTypes()[index])
            : RankedTensorType();
    if (function &&
        (!type || dim.getInt() < 0 || dim.getInt() >= type.getRank()))
      return op->emitError("attribute 'whale.batch_dim' of argument ")
             << index << " is " << dim.getInt() << ", which is no dimension of "
             << function.getArgumentTypes()[index];
  } else if (name == "whale.fed_by") {
    auto result = dyn_cast<IntegerAttr>(value);
    if (!result || !result.getType().isSignlessInteger(64))
      return wrongKind(op, attr, "an i64");
    if (function && (result.getInt() < 0 ||
                     result.getInt() >= int64_t(function.getNumResults())))
      return op->emitError("attribute 'whale.fed_by' of argument ")
             << index << " is " << result.getInt() << ", the function has "
             << function.getNumResults() << " results";
  } else if (name == "whale.donated") {
    if (!isa<UnitAttr>(value))
      return wrongKind(op, attr, "no value");
  } else if (name == "whale.placement") {
    if (!isa<PlacementAttr>(value))
      return wrongKind(op, attr, "a #whale.placement");
  }
  return success();
}

LogicalResult WhaleDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                        unsigned,
                                                        NamedAttribute attr) {
  if (attr.getName() == "whale.placement" &&
      !isa<PlacementAttr>(attr.getValue()))
    return wrongKind(op, attr, "a #whale.placement");
  return success();
}
