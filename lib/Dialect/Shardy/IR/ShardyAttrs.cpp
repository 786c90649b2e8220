//===- ShardyAttrs.cpp - Text form of attributes ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form and verifiers of the sdy attributes: meshes, axes, shardings and
// the parts of sharding rules (their text form is in ShardingRuleFormat.cpp).
//
// In: an attribute, or its text. Out: its text, or the attribute; an error at
// text that cannot be parsed, and for invalid meshes and sub-axes. The
// functions that print and parse what is between the angle brackets serve the
// formats of operations, too. Cost: linear in the text; n device ids of a mesh
// are put in an ordered set, n log n.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/Shardy/IR/AssemblyFormat.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>

using namespace mlir;
using namespace mlir::sdy;

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/Shardy/IR/ShardyAttrs.cpp.inc"

void SdyDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "whale/Dialect/Shardy/IR/ShardyAttrs.cpp.inc"
      >();
}

/// Parses `<` CONTENT `>` and returns the attribute.
template <typename AttrT>
static AttrT parseInAngles(AsmParser &parser,
                           function_ref<ParseResult(AttrT &)> content) {
  AttrT attr;
  if (parser.parseLess() || content(attr) || parser.parseGreater())
    return {};
  return attr;
}

static void printNumbers(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

static ParseResult parseNumbers(AsmParser &parser,
                                SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

static void printMeshAxis(AsmPrinter &printer, MeshAxisAttr axis) {
  printer.printString(axis.getName());
  printer << '=' << axis.getSize();
}

static ParseResult parseMeshAxis(AsmParser &parser, MeshAxisAttr &axis) {
  std::string name;
  int64_t size;
  if (parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size))
    return failure();
  axis = MeshAxisAttr::get(parser.getContext(), name, size);
  return success();
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printMeshAxis(printer, *this);
  printer << '>';
}

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  return parseInAngles<MeshAxisAttr>(
      parser, [&](MeshAxisAttr &axis) { return parseMeshAxis(parser, axis); });
}

void sdy::printMesh(AsmPrinter &printer, MeshAttr mesh) {
  printer << "<[";
  llvm::interleaveComma(mesh.getAxes(), printer, [&](MeshAxisAttr axis) {
    printMeshAxis(printer, axis);
  });
  printer << ']';
  if (!mesh.getDeviceIds().empty()) {
    printer << ", device_ids=";
    printNumbers(printer, mesh.getDeviceIds());
  }
  printer << '>';
}

ParseResult sdy::parseMesh(AsmParser &parser, MeshAttr &mesh) {
  SmallVector<MeshAxisAttr> axes;
  SmallVector<int64_t> deviceIds;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseMeshAxis(parser, axes.emplace_back());
      }))
    return failure();
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("device_ids") || parser.parseEqual() ||
        parseNumbers(parser, deviceIds))
      return failure();
  if (parser.parseGreater())
    return failure();
  mesh = parser.getChecked<MeshAttr>(parser.getContext(), axes, deviceIds);
  return success(mesh != nullptr);
}

void MeshAttr::print(AsmPrinter &printer) const { printMesh(printer, *this); }

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  MeshAttr mesh;
  return failed(parseMesh(parser, mesh)) ? Attribute() : mesh;
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MeshAxisAttr> axes,
                               ArrayRef<int64_t> deviceIds) {
  llvm::SmallSet<StringRef, 4> names;
  int64_t size = 1;
  for (MeshAxisAttr axis : axes) {
    if (axis.getSize() <= 0)
      return emitError() << "expects a positive size of axis '"
                         << axis.getName() << "' (got " << axis.getSize()
                         << ")";
    if (!names.insert(axis.getName()).second)
      return emitError() << "duplicate axis '" << axis.getName() << "'";
    if (llvm::MulOverflow(size, axis.getSize(), size))
      return emitError() << "has more devices than 64 bits can count";
  }
  if (deviceIds.empty())
    return success();
  if (axes.empty() && deviceIds.size() != 1)
    return emitError() << "expects one device in a mesh without axes (got "
                       << deviceIds.size() << ")";
  if (static_cast<int64_t>(deviceIds.size()) != size)
    return emitError() << "expects as many device ids as devices (got "
                       << deviceIds.size() << " and " << size << ")";
  // A DenseSet reserves two int64_t values as keys, so it is not used here.
  std::set<int64_t> seen;
  for (int64_t id : deviceIds)
    if (id < 0 || !seen.insert(id).second)
      return emitError() << "expects each device id once and none negative "
                            "(got "
                         << id << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

void SubAxisInfoAttr::print(AsmPrinter &printer) const {
  printer << '(' << getPreSize() << ')' << getSize();
}

Attribute SubAxisInfoAttr::parse(AsmParser &parser, Type) {
  int64_t preSize, size;
  if (parser.parseLParen() || parser.parseInteger(preSize) ||
      parser.parseRParen() || parser.parseInteger(size))
    return {};
  return parser.getChecked<SubAxisInfoAttr>(parser.getContext(), preSize, size);
}

LogicalResult
SubAxisInfoAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t preSize, int64_t size) {
  if (preSize < 1)
    return emitError() << "expects a positive pre-size of a sub-axis (got "
                       << preSize << ")";
  if (size < 2)
    return emitError() << "expects a size of a sub-axis greater than 1 (got "
                       << size << ")";
  return success();
}

static void printAxis(AsmPrinter &printer, AxisRefAttr axis) {
  printer.printString(axis.getName());
  if (SubAxisInfoAttr info = axis.getSubAxisInfo()) {
    printer << ':';
    info.print(printer);
  }
}

static ParseResult parseAxis(AsmParser &parser, AxisRefAttr &axis) {
  std::string name;
  SubAxisInfoAttr info;
  if (parser.parseString(&name))
    return failure();
  if (succeeded(parser.parseOptionalColon())) {
    info = dyn_cast_if_present<SubAxisInfoAttr>(
        SubAxisInfoAttr::parse(parser, Type()));
    if (!info)
      return failure();
  }
  axis = AxisRefAttr::get(parser.getContext(), name, info);
  return success();
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxis(printer, *this);
  printer << '>';
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  return parseInAngles<AxisRefAttr>(
      parser, [&](AxisRefAttr &axis) { return parseAxis(parser, axis); });
}

static void printAxes(AsmPrinter &printer, ArrayRef<AxisRefAttr> axes) {
  llvm::interleaveComma(axes, printer,
                        [&](AxisRefAttr axis) { printAxis(printer, axis); });
}

static ParseResult parseAxes(AsmParser &parser,
                             SmallVectorImpl<AxisRefAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&] {
    return parseAxis(parser, axes.emplace_back());
  });
}

void sdy::printManualAxes(AsmPrinter &printer, ManualAxesAttr axes) {
  printer << '{';
  llvm::interleaveComma(axes.getValue(), printer, [&](StringAttr axis) {
    printer.printString(axis.getValue());
  });
  printer << '}';
}

ParseResult sdy::parseManualAxes(AsmParser &parser, ManualAxesAttr &axes) {
  SmallVector<StringAttr> names;
  auto parseName = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseName))
    return failure();
  axes = ManualAxesAttr::get(parser.getContext(), names);
  return success();
}

void ManualAxesAttr::print(AsmPrinter &printer) const {
  printManualAxes(printer, *this);
}

Attribute ManualAxesAttr::parse(AsmParser &parser, Type) {
  ManualAxesAttr axes;
  return failed(parseManualAxes(parser, axes)) ? Attribute() : axes;
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

void DimensionShardingAttr::print(AsmPrinter &printer) const {
  printer << '{';
  printAxes(printer, getAxes());
  if (!getIsClosed())
    printer << (getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (getPriority())
    printer << 'p' << *getPriority();
}

Attribute DimensionShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisRefAttr> axes;
  bool isClosed = true;
  if (parser.parseLBrace())
    return {};
  if (failed(parser.parseOptionalRBrace())) {
    while (true) {
      if (succeeded(parser.parseOptionalQuestion())) {
        isClosed = false;
        break;
      }
      if (parseAxis(parser, axes.emplace_back()))
        return {};
      if (failed(parser.parseOptionalComma()))
        break;
    }
    if (parser.parseRBrace())
      return {};
  }
  std::optional<int64_t> priority;
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    int64_t number;
    if (!keyword.consume_front("p") || keyword.getAsInteger(10, number) ||
        number < 0) {
      parser.emitError(loc, "expected a priority such as p1");
      return {};
    }
    priority = number;
  }
  return get(parser.getContext(), axes, isClosed, priority);
}

void sdy::printSharding(AsmPrinter &printer, TensorShardingAttr sharding) {
  printer << '<';
  if (auto mesh = dyn_cast<MeshAttr>(sharding.getMeshOrRef())) {
    printer << "mesh";
    printMesh(printer, mesh);
  } else {
    printer.printAttributeWithoutType(sharding.getMeshOrRef());
  }
  printer << ", [";
  llvm::interleaveComma(
      sharding.getDimShardings(), printer,
      [&](DimensionShardingAttr dimension) { dimension.print(printer); });
  printer << ']';
  if (!sharding.getReplicatedAxes().empty()) {
    printer << ", replicated={";
    printAxes(printer, sharding.getReplicatedAxes());
    printer << '}';
  }
  if (!sharding.getUnreducedAxes().empty()) {
    printer << ", unreduced={";
    printAxes(printer, sharding.getUnreducedAxes());
    printer << '}';
  }
  printer << '>';
}

ParseResult sdy::parseSharding(AsmParser &parser,
                               TensorShardingAttr &sharding) {
  Attribute meshOrRef;
  SmallVector<DimensionShardingAttr> dimensions;
  SmallVector<AxisRefAttr> replicated, unreduced;
  if (parser.parseLess())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mesh"))) {
    MeshAttr mesh;
    if (parseMesh(parser, mesh))
      return failure();
    meshOrRef = mesh;
  } else {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
    meshOrRef = FlatSymbolRefAttr::get(name);
  }
  auto parseDimension = [&]() -> ParseResult {
    auto dimension = dyn_cast_if_present<DimensionShardingAttr>(
        DimensionShardingAttr::parse(parser, Type()));
    dimensions.push_back(dimension);
    return success(dimension != nullptr);
  };
  if (parser.parseComma() || parser.parseCommaSeparatedList(
                                 AsmParser::Delimiter::Square, parseDimension))
    return failure();
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    auto &axes = name == "replicated" ? replicated : unreduced;
    if ((name != "replicated" && name != "unreduced") || !axes.empty())
      return parser.emitError(loc)
             << "expected 'replicated' or 'unreduced' once, got '" << name
             << "'";
    if (parseAxes(parser, axes))
      return failure();
  }
  if (parser.parseGreater())
    return failure();
  sharding = TensorShardingAttr::get(parser.getContext(), meshOrRef, dimensions,
                                     replicated, unreduced);
  return success();
}

void TensorShardingAttr::print(AsmPrinter &printer) const {
  printSharding(printer, *this);
}

Attribute TensorShardingAttr::parse(AsmParser &parser, Type) {
  TensorShardingAttr sharding;
  return failed(parseSharding(parser, sharding)) ? Attribute() : sharding;
}

void sdy::printShardings(AsmPrinter &printer,
                         TensorShardingPerValueAttr shardings) {
  printer << '[';
  llvm::interleaveComma(
      shardings.getShardings(), printer,
      [&](TensorShardingAttr sharding) { printSharding(printer, sharding); });
  printer << ']';
}

ParseResult sdy::parseShardings(AsmParser &parser,
                                TensorShardingPerValueAttr &shardings) {
  SmallVector<TensorShardingAttr> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseSharding(parser, values.emplace_back());
      }))
    return failure();
  shardings = TensorShardingPerValueAttr::get(parser.getContext(), values);
  return success();
}

void TensorShardingPerValueAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printShardings(printer, *this);
  printer << '>';
}

Attribute TensorShardingPerValueAttr::parse(AsmParser &parser, Type) {
  return parseInAngles<TensorShardingPerValueAttr>(
      parser, [&](TensorShardingPerValueAttr &shardings) {
        return parseShardings(parser, shardings);
      });
}

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

void DimMappingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNumbers(printer, getFactorIndices());
  printer << '>';
}

Attribute DimMappingAttr::parse(AsmParser &parser, Type) {
  return parseInAngles<DimMappingAttr>(parser, [&](DimMappingAttr &mapping) {
    SmallVector<int64_t> factors;
    if (parseNumbers(parser, factors))
      return ParseResult(failure());
    mapping = DimMappingAttr::get(parser.getContext(), factors);
    return ParseResult(success());
  });
}

void TensorMappingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDimMappings(), printer, [&](DimMappingAttr mapping) {
    mapping.print(printer);
  });
  printer << "]>";
}

Attribute TensorMappingAttr::parse(AsmParser &parser, Type) {
  return parseInAngles<TensorMappingAttr>(
      parser, [&](TensorMappingAttr &mapping) -> ParseResult {
        SmallVector<DimMappingAttr> dimensions;
        auto parseDimension = [&]() -> ParseResult {
          auto dimension = dyn_cast_if_present<DimMappingAttr>(
              DimMappingAttr::parse(parser, Type()));
          dimensions.push_back(dimension);
          return success(dimension != nullptr);
        };
        if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                           parseDimension))
          return failure();
        mapping = TensorMappingAttr::get(parser.getContext(), dimensions);
        return success();
      });
}

void OpShardingRuleAttr::print(AsmPrinter &printer) const {
  printShardingRule(printer, *this);
}

Attribute OpShardingRuleAttr::parse(AsmParser &parser, Type) {
  OpShardingRuleAttr rule;
  return failed(parseShardingRule(parser, rule)) ? Attribute() : rule;
}
