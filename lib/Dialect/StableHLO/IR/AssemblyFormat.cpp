//===- AssemblyFormat.cpp - Parts of the text form --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the custom<...> directives of the operations' formats by pairs of
// print and parse functions.
//
// In: operands, types and attributes of an operation, or text. Out: the text
// that StableHLO and JAX use, or what it means; an error at text that cannot be
// parsed. Types that follow from others are left out of the text: where
// operands and results have the same type, it is printed once. Cost: linear in
// the text; the name of each field of a struct is compared with all names that
// the struct may have.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::stablehlo;

//===----------------------------------------------------------------------===//
// Lists and structs of numbers
//===----------------------------------------------------------------------===//

void whale::printList(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

ParseResult whale::parseList(AsmParser &parser,
                             SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

void whale::printStruct(AsmPrinter &printer,
                        ArrayRef<std::pair<StringRef, ArrayRef<int64_t>>> lists,
                        ArrayRef<std::pair<StringRef, int64_t>> numbers) {
  StringRef separator = "";
  printer << '<';
  for (auto [name, values] : lists) {
    if (values.empty())
      continue;
    printer << separator << name << " = ";
    printList(printer, values);
    separator = ", ";
  }
  for (auto [name, value] : numbers) {
    if (value == 0)
      continue;
    printer << separator << name << " = " << value;
    separator = ", ";
  }
  printer << '>';
}

ParseResult
whale::parseStruct(AsmParser &parser,
                   ArrayRef<std::pair<StringRef, SmallVector<int64_t> *>> lists,
                   ArrayRef<std::pair<StringRef, int64_t *>> numbers) {
  llvm::SmallSet<StringRef, 8> seen;
  auto parseField = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    if (!seen.insert(name).second)
      return parser.emitError(loc) << "duplicate field '" << name << "'";
    if (parser.parseEqual())
      return failure();
    for (auto [key, values] : lists)
      if (key == name)
        return parseList(parser, *values);
    for (auto [key, value] : numbers)
      if (key == name)
        return parser.parseInteger(*value);
    return parser.emitError(loc) << "unknown field '" << name << "'";
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                        parseField);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static ParseResult assignTypes(OpAsmParser &parser, SMLoc loc,
                               FunctionType type, ArrayRef<Type *> operands,
                               ArrayRef<Type *> results) {
  if (type.getNumInputs() != operands.size() ||
      type.getNumResults() != results.size())
    return parser.emitError(loc)
           << "expected " << operands.size() << " operand and "
           << results.size() << " result types";
  for (auto [target, source] : llvm::zip_equal(operands, type.getInputs()))
    *target = source;
  for (auto [target, source] : llvm::zip_equal(results, type.getResults()))
    *target = source;
  return success();
}

void stablehlo::printEqualTypes(OpAsmPrinter &printer, ArrayRef<Type> operands,
                                Type result) {
  if (llvm::all_of(operands, [&](Type type) { return type == result; }))
    printer << result;
  else
    printer.printFunctionalType(operands, TypeRange(result));
}

ParseResult stablehlo::parseEqualTypes(OpAsmParser &parser,
                                       ArrayRef<Type *> operands,
                                       Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  if (auto function = dyn_cast<FunctionType>(type))
    return assignTypes(parser, loc, function, operands, &result);
  for (Type *operand : operands)
    *operand = type;
  result = type;
  return success();
}

void stablehlo::printVariadicSameOperandsAndResultType(OpAsmPrinter &printer,
                                                       Operation *,
                                                       OperandRange,
                                                       TypeRange types,
                                                       Type result) {
  printEqualTypes(printer, llvm::to_vector(types), result);
}

ParseResult stablehlo::parseVariadicSameOperandsAndResultType(
    OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> operands,
    SmallVectorImpl<Type> &types, Type &result) {
  types.resize(operands.size());
  SmallVector<Type *> targets;
  for (Type &type : types)
    targets.push_back(&type);
  return parseEqualTypes(parser, targets, result);
}

void stablehlo::printPairwiseOpType(OpAsmPrinter &printer, Operation *,
                                    TypeRange operands, TypeRange results) {
  if (operands == results)
    llvm::interleaveComma(operands, printer);
  else
    printer.printFunctionalType(operands, results);
}

ParseResult stablehlo::parsePairwiseOpType(OpAsmParser &parser,
                                           SmallVectorImpl<Type> &operands,
                                           SmallVectorImpl<Type> &results) {
  if (parser.parseTypeList(operands))
    return failure();
  if (operands.size() == 1) {
    if (auto function = dyn_cast<FunctionType>(operands.front())) {
      operands.assign(function.getInputs().begin(), function.getInputs().end());
      results.assign(function.getResults().begin(),
                     function.getResults().end());
      return success();
    }
  }
  results.assign(operands.begin(), operands.end());
  return success();
}

void stablehlo::printTupleOpType(OpAsmPrinter &printer, Operation *,
                                 TypeRange operands, Type result) {
  auto tuple = dyn_cast<TupleType>(result);
  if (tuple && TypeRange(tuple.getTypes()) == operands)
    printer << result;
  else
    printer.printFunctionalType(operands, TypeRange(result));
}

ParseResult stablehlo::parseTupleOpType(OpAsmParser &parser,
                                        SmallVectorImpl<Type> &operands,
                                        Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  if (auto tuple = dyn_cast<TupleType>(type)) {
    operands.assign(tuple.begin(), tuple.end());
    result = tuple;
    return success();
  }
  auto function = dyn_cast<FunctionType>(type);
  if (!function || function.getNumResults() != 1)
    return parser.emitError(loc, "expected a tuple type");
  operands.assign(function.getInputs().begin(), function.getInputs().end());
  result = function.getResult(0);
  return success();
}

static Type partType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto complex =
      tensor ? dyn_cast<ComplexType>(tensor.getElementType()) : ComplexType();
  return complex ? tensor.clone(complex.getElementType()) : Type();
}

void stablehlo::printComplexOpType(OpAsmPrinter &printer, Operation *, Type lhs,
                                   Type rhs, Type result) {
  Type part = partType(result);
  if (lhs == part && rhs == part)
    printer << result;
  else
    printer.printFunctionalType(ArrayRef<Type>{lhs, rhs}, TypeRange(result));
}

ParseResult stablehlo::parseComplexOpType(OpAsmParser &parser, Type &lhs,
                                          Type &rhs, Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  if (auto function = dyn_cast<FunctionType>(type))
    return assignTypes(parser, loc, function, {&lhs, &rhs}, &result);
  lhs = rhs = partType(type);
  if (!lhs)
    return parser.emitError(loc, "expected a tensor of complex numbers");
  result = type;
  return success();
}

void stablehlo::printSelectOpType(OpAsmPrinter &printer, Operation *, Type pred,
                                  Type onTrue, Type onFalse, Type result) {
  if (onTrue == result && onFalse == result)
    printer << pred << ", " << result;
  else
    printer.printFunctionalType(ArrayRef<Type>{pred, onTrue, onFalse},
                                TypeRange(result));
}

ParseResult stablehlo::parseSelectOpType(OpAsmParser &parser, Type &pred,
                                         Type &onTrue, Type &onFalse,
                                         Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> types;
  if (parser.parseTypeList(types))
    return failure();
  if (types.size() == 2) {
    pred = types[0];
    onTrue = onFalse = result = types[1];
    return success();
  }
  auto function =
      types.size() == 1 ? dyn_cast<FunctionType>(types[0]) : FunctionType();
  if (!function)
    return parser.emitError(loc, "expected a functional type or two types");
  return assignTypes(parser, loc, function, {&pred, &onTrue, &onFalse},
                     &result);
}

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

void stablehlo::printComparisonType(OpAsmPrinter &printer, Operation *op,
                                    ComparisonTypeAttr type) {
  if (!type)
    return;
  printer << ", ";
  printEnum(printer, op, type);
}

ParseResult stablehlo::parseComparisonType(OpAsmParser &parser,
                                           ComparisonTypeAttr &type) {
  if (failed(parser.parseOptionalComma()))
    return success();
  return parseEnum(parser, type);
}

void stablehlo::printVariadicOperandWithAttribute(OpAsmPrinter &printer,
                                                  Operation *,
                                                  OperandRange operands) {
  llvm::interleave(
      operands, printer, [&](Value value) { printer << value; }, ", ");
  if (!operands.empty())
    printer << ',';
}

ParseResult stablehlo::parseVariadicOperandWithAttribute(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  while (true) {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult parsed = parser.parseOptionalOperand(operand);
    if (!parsed.has_value())
      return success();
    if (failed(*parsed) || parser.parseComma())
      return failure();
    operands.push_back(operand);
  }
}

void stablehlo::printSliceRanges(OpAsmPrinter &printer, Operation *,
                                 ArrayRef<int64_t> starts,
                                 ArrayRef<int64_t> limits,
                                 ArrayRef<int64_t> strides) {
  printer << '[';
  llvm::interleaveComma(llvm::zip(starts, limits, strides), printer,
                        [&](auto range) {
                          auto [start, limit, stride] = range;
                          printer << start << ':' << limit;
                          if (stride != 1)
                            printer << ':' << stride;
                        });
  printer << ']';
}

ParseResult stablehlo::parseSliceRanges(OpAsmParser &parser,
                                        DenseI64ArrayAttr &starts,
                                        DenseI64ArrayAttr &limits,
                                        DenseI64ArrayAttr &strides) {
  SmallVector<int64_t> start, limit, stride;
  auto parseRange = [&]() -> ParseResult {
    if (parser.parseInteger(start.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limit.emplace_back()))
      return failure();
    stride.push_back(1);
    if (failed(parser.parseOptionalColon()))
      return success();
    return parser.parseInteger(stride.back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRange))
    return failure();
  Builder &builder = parser.getBuilder();
  starts = builder.getDenseI64ArrayAttr(start);
  limits = builder.getDenseI64ArrayAttr(limit);
  strides = builder.getDenseI64ArrayAttr(stride);
  return success();
}

void stablehlo::printExponentMantissa(OpAsmPrinter &printer, Operation *,
                                      IntegerAttr exponent,
                                      IntegerAttr mantissa) {
  printer << 'e' << exponent.getInt() << 'm' << mantissa.getInt();
}

ParseResult stablehlo::parseExponentMantissa(OpAsmParser &parser,
                                             IntegerAttr &exponent,
                                             IntegerAttr &mantissa) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef format;
  if (parser.parseKeyword(&format))
    return failure();
  auto [first, second] = format.split('m');
  int32_t exponentBits, mantissaBits;
  if (!first.consume_front("e") || first.getAsInteger(10, exponentBits) ||
      second.getAsInteger(10, mantissaBits))
    return parser.emitError(loc)
           << "expected a format such as e8m23, got '" << format << "'";
  exponent = parser.getBuilder().getI32IntegerAttr(exponentBits);
  mantissa = parser.getBuilder().getI32IntegerAttr(mantissaBits);
  return success();
}

void stablehlo::printCustomCallTarget(OpAsmPrinter &printer, Operation *,
                                      StringAttr target) {
  printer.printSymbolName(target.getValue());
}

ParseResult stablehlo::parseCustomCallTarget(OpAsmParser &parser,
                                             StringAttr &target) {
  return parser.parseSymbolName(target);
}

//===----------------------------------------------------------------------===//
// dot_general
//===----------------------------------------------------------------------===//

void stablehlo::printDotDimensionNumbers(OpAsmPrinter &printer, Operation *,
                                         DotDimensionNumbersAttr numbers) {
  if (!numbers.getLhsBatchingDimensions().empty() ||
      !numbers.getRhsBatchingDimensions().empty()) {
    printer << "batching_dims = ";
    whale::printList(printer, numbers.getLhsBatchingDimensions());
    printer << " x ";
    whale::printList(printer, numbers.getRhsBatchingDimensions());
    printer << ", ";
  }
  printer << "contracting_dims = ";
  whale::printList(printer, numbers.getLhsContractingDimensions());
  printer << " x ";
  whale::printList(printer, numbers.getRhsContractingDimensions());
}

ParseResult
stablehlo::parseDotDimensionNumbers(OpAsmParser &parser,
                                    DotDimensionNumbersAttr &numbers) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  auto parsePair = [&](SmallVectorImpl<int64_t> &lhs,
                       SmallVectorImpl<int64_t> &rhs) -> ParseResult {
    return failure(parser.parseEqual() || whale::parseList(parser, lhs) ||
                   parser.parseKeyword("x") || whale::parseList(parser, rhs));
  };
  if (succeeded(parser.parseOptionalKeyword("batching_dims")))
    if (parsePair(lhsBatching, rhsBatching) || parser.parseComma())
      return failure();
  if (parser.parseKeyword("contracting_dims") ||
      parsePair(lhsContracting, rhsContracting))
    return failure();
  numbers =
      DotDimensionNumbersAttr::get(parser.getContext(), lhsBatching,
                                   rhsBatching, lhsContracting, rhsContracting);
  return success();
}

void stablehlo::printPrecisionConfigAndAlgorithm(OpAsmPrinter &printer,
                                                 Operation *,
                                                 ArrayAttr precision,
                                                 DotAlgorithmAttr algorithm) {
  if (precision) {
    printer << ", precision = [";
    llvm::interleaveComma(precision.getAsRange<PrecisionAttr>(), printer,
                          [&](PrecisionAttr attr) {
                            printer << stringifyPrecision(attr.getValue());
                          });
    printer << ']';
  }
  if (algorithm) {
    printer << ", algorithm = ";
    printer.printStrippedAttrOrType(algorithm);
  }
}

ParseResult stablehlo::parsePrecisionConfigAndAlgorithm(
    OpAsmParser &parser, ArrayAttr &precision, DotAlgorithmAttr &algorithm) {
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (name == "algorithm" && !algorithm) {
      if (parser.parseCustomAttributeWithFallback(algorithm))
        return failure();
      continue;
    }
    if (name != "precision" || precision)
      return parser.emitError(loc)
             << "expected 'precision' or 'algorithm' once, got '" << name
             << "'";
    SmallVector<Attribute> values;
    auto parseValue = [&]() -> ParseResult {
      SMLoc valueLoc = parser.getCurrentLocation();
      StringRef keyword;
      if (parser.parseKeyword(&keyword))
        return failure();
      std::optional<Precision> value = symbolizePrecision(keyword);
      if (!value)
        return parser.emitError(valueLoc)
               << "unknown precision '" << keyword << "'";
      values.push_back(PrecisionAttr::get(parser.getContext(), *value));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseValue))
      return failure();
    precision = parser.getBuilder().getArrayAttr(values);
  }
  return success();
}

void stablehlo::printPrecisionConfig(OpAsmPrinter &printer, Operation *op,
                                     ArrayAttr precision) {
  printPrecisionConfigAndAlgorithm(printer, op, precision, {});
}

ParseResult stablehlo::parsePrecisionConfig(OpAsmParser &parser,
                                            ArrayAttr &precision) {
  SMLoc loc = parser.getCurrentLocation();
  DotAlgorithmAttr algorithm;
  if (parsePrecisionConfigAndAlgorithm(parser, precision, algorithm))
    return failure();
  if (algorithm)
    return parser.emitError(loc) << "expected no algorithm";
  return success();
}
