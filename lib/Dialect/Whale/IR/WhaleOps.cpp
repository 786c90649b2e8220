//===- WhaleOps.cpp - Operations of planning ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Custom directives
//===----------------------------------------------------------------------===//

/// Parses an integer without its type.
static ParseResult parseInt(OpAsmParser &parser, IntegerAttr &attr) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  attr = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printInt(OpAsmPrinter &printer, Operation *, IntegerAttr attr) {
  printer << attr.getInt();
}

/// Parses a placement: its alias or, without one, its short form. After the
/// form with the dialect's name, a colon would start its type.
static ParseResult parsePlacement(OpAsmParser &parser, PlacementAttr &attr) {
  return parser.parseCustomAttributeWithFallback(attr);
}

static void printPlacement(OpAsmPrinter &printer, Operation *,
                           PlacementAttr attr) {
  printer.printStrippedAttrOrType(attr);
}

static ParseResult parsePhase(OpAsmParser &parser, PhaseAttr &attr) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Phase> phase = symbolizePhase(keyword);
  if (!phase)
    return parser.emitError(loc, "unknown phase '")
           << keyword << "', expected forward, backward or apply";
  attr = PhaseAttr::get(parser.getContext(), *phase);
  return success();
}

static void printPhase(OpAsmPrinter &printer, Operation *, PhaseAttr attr) {
  printer << stringifyPhase(attr.getValue());
}

/// Parses lists of device ids: `[[0, 1], [4, 5]]`.
static ParseResult parseDeviceGroups(OpAsmParser &parser, ArrayAttr &attr) {
  SmallVector<Attribute> groups;
  auto parseGroup = [&]() -> ParseResult {
    SmallVector<int64_t> group;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(group.emplace_back());
        }))
      return failure();
    groups.push_back(parser.getBuilder().getDenseI64ArrayAttr(group));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseGroup))
    return failure();
  attr = parser.getBuilder().getArrayAttr(groups);
  return success();
}

static void printDeviceGroups(OpAsmPrinter &printer, Operation *,
                              ArrayAttr attr) {
  printer << '[';
  llvm::interleaveComma(attr.getAsRange<DenseI64ArrayAttr>(), printer,
                        [&](DenseI64ArrayAttr group) {
                          printer << '[';
                          llvm::interleaveComma(group.asArrayRef(), printer);
                          printer << ']';
                        });
  printer << ']';
}

#include "whale/Dialect/Whale/IR/WhaleOpInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleOps.cpp.inc"
