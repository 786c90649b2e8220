//===- WhaleAttrs.cpp - Attributes ----------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form and verifiers of the dialect's attributes: strategies, reductions,
// placements and orders.
//
// In: an attribute, or its text. Out: its text, or the attribute; an error at
// text that cannot be parsed, and for invalid strategies and orders. The text
// of a placement is read twice: tokens are skipped to find its end, then
// whale::Placement parses it. Cost: linear in the text; an order is verified in
// d log d for d devices, and for each step a look-up among the kinds and chunks
// of steps.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "whale/Cluster/DeviceIds.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>
#include <set>

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

/// Skips one token of a placement's text other than `>`; returns false at any
/// other token.
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
  // Find where the text ends and let Placement parse it, which defines the
  // grammar.
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

//===----------------------------------------------------------------------===//
// OrderAttr
//===----------------------------------------------------------------------===//

/// In the order of ScheduleStep::Kind.
static constexpr StringLiteral kStepKinds[] = {"forward", "backward",
                                               "weight_gradient"};

static std::string describe(const ScheduleStep &step) {
  std::string text =
      (kStepKinds[step.kind] + " " + Twine(step.microBatch)).str();
  return step.chunk == 0 ? text : text + " chunk " + std::to_string(step.chunk);
}

static ParseResult parseStep(AsmParser &parser, ScheduleStep &step) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  const auto *kind = llvm::find(kStepKinds, keyword);
  if (kind == std::end(kStepKinds))
    return parser.emitError(loc, "unknown step '")
           << keyword << "', expected forward, backward or weight_gradient";
  step.kind = ScheduleStep::Kind(kind - std::begin(kStepKinds));
  step.chunk = 0;
  if (parser.parseInteger(step.microBatch))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("chunk")))
    return parser.parseInteger(step.chunk);
  return success();
}

Attribute OrderAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> devices;
  SmallVector<ScheduleStep> steps;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] { return parser.parseInteger(devices.emplace_back()); }) ||
      parser.parseColon() || parser.parseCommaSeparatedList([&] {
        return parseStep(parser, steps.emplace_back());
      }) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<OrderAttr>(loc, parser.getContext(), devices, steps);
}

void OrderAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDevices(), printer);
  printer << "]: ";
  llvm::interleaveComma(getSteps(), printer, [&](const ScheduleStep &step) {
    printer << describe(step);
  });
  printer << '>';
}

LogicalResult OrderAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> devices,
                                ArrayRef<ScheduleStep> steps) {
  if (devices.empty())
    return emitError() << "order has no devices";
  if (steps.empty())
    return emitError() << "order has no steps";
  std::set<int64_t> seen;
  for (int64_t device : devices) {
    if (const char *fault = findDeviceFault(device))
      return emitError() << "device " << device << fault;
    if (!seen.insert(device).second)
      return emitError() << "device " << device << " appears twice";
  }
  // The last step of each kind and chunk.
  std::map<std::pair<ScheduleStep::Kind, int64_t>, ScheduleStep> last;
  for (const ScheduleStep &step : steps) {
    if (step.microBatch < 0 || step.chunk < 0)
      return emitError() << "step '" << describe(step)
                         << "' has a negative number";
    auto [before, isFirst] = last.try_emplace({step.kind, step.chunk}, step);
    if (!isFirst && before->second.microBatch >= step.microBatch)
      return emitError() << "step '" << describe(step) << "' comes after '"
                         << describe(before->second)
                         << "'; micro-batches pass in ascending order";
    before->second = step;
  }
  return success();
}
