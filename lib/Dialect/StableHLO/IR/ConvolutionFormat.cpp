//===- ConvolutionFormat.cpp - Text form of convolutions --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form of convolutions: dimension numbers such as `[b, 0, 1, f]x[0, 1, i,
// o]->[b, 0, 1, f]` and window attributes.
//
// In: attributes, or text. Out: text, or attributes; an error at a dimension or
// field that is unknown, missing or there twice. To print a tensor's
// dimensions, each name is put at its number. What is parsed has the spatial
// dimensions in any order, so they are sorted by their number. Cost: linear in
// the text, but for this sort.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {
/// The dimensions of one tensor in order: two named ones and the spatial ones.
struct Dimensions {
  int64_t first = -1;
  int64_t second = -1;
  SmallVector<int64_t> spatial;
};
} // namespace

static void printDimensions(AsmPrinter &printer, char firstName, int64_t first,
                            char secondName, int64_t second,
                            ArrayRef<int64_t> spatial) {
  // Numbers that are not a permutation leave gaps; the verifier reports these.
  int64_t rank = 2 + spatial.size();
  SmallVector<std::string> names(rank, "?");
  auto name = [&](int64_t dimension, std::string text) {
    if (dimension >= 0 && dimension < rank)
      names[dimension] = std::move(text);
  };
  for (auto [index, dimension] : llvm::enumerate(spatial))
    name(dimension, std::to_string(index));
  name(first, std::string(1, firstName));
  name(second, std::string(1, secondName));
  printer << '[';
  llvm::interleaveComma(names, printer);
  printer << ']';
}

static ParseResult parseDimensions(AsmParser &parser, StringRef firstName,
                                   StringRef secondName,
                                   Dimensions &dimensions) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t position = 0;
  SmallVector<std::pair<int64_t, int64_t>> spatial;
  auto parseDimension = [&]() -> ParseResult {
    SMLoc dimensionLoc = parser.getCurrentLocation();
    int64_t number;
    OptionalParseResult parsed = parser.parseOptionalInteger(number);
    if (parsed.has_value()) {
      if (failed(*parsed))
        return failure();
      spatial.emplace_back(number, position++);
      return success();
    }
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (keyword != firstName && keyword != secondName)
      return parser.emitError(dimensionLoc)
             << "expected '" << firstName << "', '" << secondName
             << "' or a number, got '" << keyword << "'";
    int64_t &target =
        keyword == firstName ? dimensions.first : dimensions.second;
    if (target != -1)
      return parser.emitError(dimensionLoc)
             << "duplicate dimension '" << keyword << "'";
    target = position++;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseDimension))
    return failure();
  if (dimensions.first == -1 || dimensions.second == -1)
    return parser.emitError(loc) << "expected dimensions '" << firstName
                                 << "' and '" << secondName << "'";
  llvm::sort(spatial);
  for (auto [index, entry] : llvm::enumerate(spatial)) {
    if (entry.first != static_cast<int64_t>(index))
      return parser.emitError(loc) << "expected each spatial dimension 0 to "
                                   << spatial.size() - 1 << " once";
    dimensions.spatial.push_back(entry.second);
  }
  return success();
}

void stablehlo::printConvolutionDimensions(AsmPrinter &printer,
                                           ConvDimensionNumbersAttr numbers) {
  printDimensions(printer, 'b', numbers.getInputBatchDimension(), 'f',
                  numbers.getInputFeatureDimension(),
                  numbers.getInputSpatialDimensions());
  printer << 'x';
  printDimensions(printer, 'i', numbers.getKernelInputFeatureDimension(), 'o',
                  numbers.getKernelOutputFeatureDimension(),
                  numbers.getKernelSpatialDimensions());
  printer << "->";
  printDimensions(printer, 'b', numbers.getOutputBatchDimension(), 'f',
                  numbers.getOutputFeatureDimension(),
                  numbers.getOutputSpatialDimensions());
}

ParseResult
stablehlo::parseConvolutionDimensions(AsmParser &parser,
                                      ConvDimensionNumbersAttr &numbers) {
  Dimensions input, kernel, output;
  if (parseDimensions(parser, "b", "f", input) || parser.parseKeyword("x") ||
      parseDimensions(parser, "i", "o", kernel) || parser.parseArrow() ||
      parseDimensions(parser, "b", "f", output))
    return failure();
  numbers = ConvDimensionNumbersAttr::get(
      parser.getContext(), input.first, input.second, input.spatial,
      kernel.first, kernel.second, kernel.spatial, output.first, output.second,
      output.spatial);
  return success();
}

void stablehlo::printWindowAttributes(OpAsmPrinter &printer, Operation *,
                                      DenseI64ArrayAttr strides,
                                      DenseIntElementsAttr padding,
                                      DenseI64ArrayAttr lhsDilation,
                                      DenseI64ArrayAttr rhsDilation,
                                      DenseBoolArrayAttr reversal) {
  StringRef separator = "{";
  auto printName = [&](StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
  };
  auto printNumbers = [&](StringRef name, DenseI64ArrayAttr values) {
    if (!values)
      return;
    printName(name);
    whale::printList(printer, values);
  };
  printNumbers("stride", strides);
  if (padding) {
    printName("pad");
    SmallVector<int64_t> values(padding.getValues<int64_t>());
    printer << '[';
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      printer << (i == 0 ? "[" : ", [") << values[i] << ", " << values[i + 1]
              << ']';
    printer << ']';
  }
  printNumbers("lhs_dilate", lhsDilation);
  printNumbers("rhs_dilate", rhsDilation);
  if (reversal) {
    printName("reverse");
    printer << '[';
    llvm::interleaveComma(reversal.asArrayRef(), printer, [&](bool value) {
      printer << (value ? "true" : "false");
    });
    printer << ']';
  }
  printer << (separator == "{" ? "{}" : "}");
}

static ParseResult parsePadding(OpAsmParser &parser,
                                DenseIntElementsAttr &padding) {
  SmallVector<int64_t> values;
  auto parseRow = [&]() -> ParseResult {
    return failure(
        parser.parseLSquare() || parser.parseInteger(values.emplace_back()) ||
        parser.parseComma() || parser.parseInteger(values.emplace_back()) ||
        parser.parseRSquare());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRow))
    return failure();
  padding = makePadding(parser.getContext(), values);
  return success();
}

ParseResult stablehlo::parseWindowAttributes(OpAsmParser &parser,
                                             DenseI64ArrayAttr &strides,
                                             DenseIntElementsAttr &padding,
                                             DenseI64ArrayAttr &lhsDilation,
                                             DenseI64ArrayAttr &rhsDilation,
                                             DenseBoolArrayAttr &reversal) {
  auto parseNumbers = [&](DenseI64ArrayAttr &target) -> ParseResult {
    SmallVector<int64_t> values;
    if (whale::parseList(parser, values))
      return failure();
    target = parser.getBuilder().getDenseI64ArrayAttr(values);
    return success();
  };
  auto parseBools = [&]() -> ParseResult {
    SmallVector<bool> values;
    auto parseBool = [&]() -> ParseResult {
      if (succeeded(parser.parseOptionalKeyword("true"))) {
        values.push_back(true);
        return success();
      }
      values.push_back(false);
      return parser.parseKeyword("false");
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseBool))
      return failure();
    reversal = parser.getBuilder().getDenseBoolArrayAttr(values);
    return success();
  };
  auto parseField = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    auto parseOnce = [&](Attribute current,
                         function_ref<ParseResult()> parse) -> ParseResult {
      if (current)
        return parser.emitError(loc) << "duplicate field '" << name << "'";
      return failure(parser.parseEqual() || parse());
    };
    if (name == "stride")
      return parseOnce(strides, [&] { return parseNumbers(strides); });
    if (name == "pad")
      return parseOnce(padding, [&] { return parsePadding(parser, padding); });
    if (name == "lhs_dilate")
      return parseOnce(lhsDilation, [&] { return parseNumbers(lhsDilation); });
    if (name == "rhs_dilate")
      return parseOnce(rhsDilation, [&] { return parseNumbers(rhsDilation); });
    if (name == "reverse")
      return parseOnce(reversal, parseBools);
    return parser.emitError(loc) << "unknown field '" << name << "'";
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                        parseField);
}
