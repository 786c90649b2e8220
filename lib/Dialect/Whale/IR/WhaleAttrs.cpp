//===- WhaleAttrs.cpp - Attributes ----------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace whale;

#include "whale/Dialect/Whale/IR/WhaleAttrInterfaces.cpp.inc"
#include "whale/Dialect/Whale/IR/WhaleEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/Whale/IR/WhaleAttrs.cpp.inc"

void WhaleDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "whale/Dialect/Whale/IR/WhaleAttrs.cpp.inc"
      >();
}

#define GET_TYPEDEF_CLASSES
#include "whale/Dialect/Whale/IR/WhaleTypes.cpp.inc"

void WhaleDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "whale/Dialect/Whale/IR/WhaleTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Strategies
//===----------------------------------------------------------------------===//

static LogicalResult
verifyStrategy(function_ref<InFlightDiagnostic()> emitError,
               std::optional<int64_t> devices, std::optional<int64_t> scope) {
  if (devices && *devices < 1)
    return emitError() << "devices is " << *devices
                       << ", a strategy needs at least 1";
  if (scope && *scope < 0)
    return emitError() << "scope is " << *scope << ", it can't be negative";
  return success();
}

LogicalResult
ReplicateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      std::optional<int64_t> devices, StringRef,
                      std::optional<int64_t> scope) {
  return verifyStrategy(emitError, devices, scope);
}

LogicalResult SplitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                std::optional<int64_t> devices, StringRef,
                                std::optional<int64_t> scope) {
  return verifyStrategy(emitError, devices, scope);
}

//===----------------------------------------------------------------------===//
// ReductionAttr
//===----------------------------------------------------------------------===//

Attribute ReductionAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword) || parser.parseGreater())
    return {};
  std::optional<Reduction> value = parseReduction(keyword);
  if (!value) {
    parser.emitError(loc, "unknown reduction '")
        << keyword << "', expected sum, product, min, max, and or or";
    return {};
  }
  return ReductionAttr::get(parser.getContext(), *value);
}

void ReductionAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyReduction(getValue()) << '>';
}

//===----------------------------------------------------------------------===//
// PlacementAttr
//===----------------------------------------------------------------------===//

/// Skips one token of a placement's text other than `>`; false at anything
/// else.
static bool skipToken(AsmParser &parser) {
  int64_t number;
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword)))
    return true;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value())
    return succeeded(*isNumber);
  return succeeded(parser.parseOptionalLSquare()) ||
         succeeded(parser.parseOptionalRSquare()) ||
         succeeded(parser.parseOptionalLParen()) ||
         succeeded(parser.parseOptionalRParen()) ||
         succeeded(parser.parseOptionalLBrace()) ||
         succeeded(parser.parseOptionalRBrace()) ||
         succeeded(parser.parseOptionalComma()) ||
         succeeded(parser.parseOptionalColon()) ||
         succeeded(parser.parseOptionalEqual());
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  // The planner knows the grammar; find where the text ends and hand it over.
  SMLoc begin = parser.getCurrentLocation();
  while (skipToken(parser))
    ;
  const char *end = parser.getCurrentLocation().getPointer();
  if (parser.parseGreater())
    return {};
  StringRef text(begin.getPointer(), end - begin.getPointer());
  llvm::Expected<Placement> placement = Placement::parse(text);
  if (!placement) {
    parser.emitError(begin, "invalid placement: ")
        << llvm::toString(placement.takeError());
    return {};
  }
  return PlacementAttr::get(parser.getContext(), *placement);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << '<';
  getValue().print(printer.getStream());
  printer << '>';
}
