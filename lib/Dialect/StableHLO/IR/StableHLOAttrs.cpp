//===- StableHLOAttrs.cpp - Text form of attributes -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form and verifiers of the dialect's attributes: dimension numbers,
// aliases of outputs, accuracies of results and bounds of types.
//
// In: an attribute, or its text. Out: its text, or the attribute; an error at
// text that cannot be parsed, and for invalid accuracies. Structs of lists and
// numbers share printStruct and parseStruct of AssemblyFormat.cpp: what is
// empty or 0 may be left out. Cost: linear in the text; names of fields are
// compared with all that the attribute has, at most 6.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "whale/Dialect/StableHLO/IR/StableHLOEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOAttrs.cpp.inc"

void StablehloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// GatherDimensionNumbers
//===----------------------------------------------------------------------===//

void GatherDimensionNumbersAttr::print(AsmPrinter &printer) const {
  whale::printStruct(
      printer,
      {{"offset_dims", getOffsetDims()},
       {"collapsed_slice_dims", getCollapsedSliceDims()},
       {"operand_batching_dims", getOperandBatchingDims()},
       {"start_indices_batching_dims", getStartIndicesBatchingDims()},
       {"start_index_map", getStartIndexMap()}},
      {{"index_vector_dim", getIndexVectorDim()}});
}

Attribute GatherDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> offset, collapsed, operandBatching, indicesBatching, map;
  int64_t indexVectorDim = 0;
  if (whale::parseStruct(parser,
                         {{"offset_dims", &offset},
                          {"collapsed_slice_dims", &collapsed},
                          {"operand_batching_dims", &operandBatching},
                          {"start_indices_batching_dims", &indicesBatching},
                          {"start_index_map", &map}},
                         {{"index_vector_dim", &indexVectorDim}}))
    return {};
  return get(parser.getContext(), offset, collapsed, operandBatching,
             indicesBatching, map, indexVectorDim);
}

//===----------------------------------------------------------------------===//
// ScatterDimensionNumbers
//===----------------------------------------------------------------------===//

void ScatterDimensionNumbersAttr::print(AsmPrinter &printer) const {
  whale::printStruct(
      printer,
      {{"update_window_dims", getUpdateWindowDims()},
       {"inserted_window_dims", getInsertedWindowDims()},
       {"input_batching_dims", getInputBatchingDims()},
       {"scatter_indices_batching_dims", getScatterIndicesBatchingDims()},
       {"scatter_dims_to_operand_dims", getScatterDimsToOperandDims()}},
      {{"index_vector_dim", getIndexVectorDim()}});
}

Attribute ScatterDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> window, inserted, inputBatching, indicesBatching, map;
  int64_t indexVectorDim = 0;
  if (whale::parseStruct(parser,
                         {{"update_window_dims", &window},
                          {"inserted_window_dims", &inserted},
                          {"input_batching_dims", &inputBatching},
                          {"scatter_indices_batching_dims", &indicesBatching},
                          {"scatter_dims_to_operand_dims", &map}},
                         {{"index_vector_dim", &indexVectorDim}}))
    return {};
  return get(parser.getContext(), window, inserted, inputBatching,
             indicesBatching, map, indexVectorDim);
}

//===----------------------------------------------------------------------===//
// DotDimensionNumbers
//===----------------------------------------------------------------------===//

void DotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  whale::printStruct(
      printer, {{"lhs_batching_dimensions", getLhsBatchingDimensions()},
                {"rhs_batching_dimensions", getRhsBatchingDimensions()},
                {"lhs_contracting_dimensions", getLhsContractingDimensions()},
                {"rhs_contracting_dimensions", getRhsContractingDimensions()}});
}

Attribute DotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  if (whale::parseStruct(parser,
                         {{"lhs_batching_dimensions", &lhsBatching},
                          {"rhs_batching_dimensions", &rhsBatching},
                          {"lhs_contracting_dimensions", &lhsContracting},
                          {"rhs_contracting_dimensions", &rhsContracting}}))
    return {};
  return get(parser.getContext(), lhsBatching, rhsBatching, lhsContracting,
             rhsContracting);
}

//===----------------------------------------------------------------------===//
// ConvDimensionNumbers
//===----------------------------------------------------------------------===//

void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printConvolutionDimensions(printer, *this);
  printer << '>';
}

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  ConvDimensionNumbersAttr numbers;
  if (parser.parseLess() || parseConvolutionDimensions(parser, numbers) ||
      parser.parseGreater())
    return {};
  return numbers;
}

//===----------------------------------------------------------------------===//
// OutputOperandAlias
//===----------------------------------------------------------------------===//

void OutputOperandAliasAttr::print(AsmPrinter &printer) const {
  printer << "<output_tuple_indices = ";
  whale::printList(printer, getOutputTupleIndices());
  printer << ", operand_index = " << getOperandIndex()
          << ", operand_tuple_indices = ";
  whale::printList(printer, getOperandTupleIndices());
  printer << '>';
}

Attribute OutputOperandAliasAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> output, operand;
  int64_t index = 0;
  if (whale::parseStruct(parser,
                         {{"output_tuple_indices", &output},
                          {"operand_tuple_indices", &operand}},
                         {{"operand_index", &index}}))
    return {};
  return get(parser.getContext(), output, index, operand);
}

//===----------------------------------------------------------------------===//
// ResultAccuracy
//===----------------------------------------------------------------------===//

ResultAccuracyAttr stablehlo::defaultResultAccuracy(MLIRContext *context) {
  return ResultAccuracyAttr::get(
      context, APFloat(0.0), APFloat(0.0), 0,
      ResultAccuracyModeAttr::get(context, ResultAccuracyMode::DEFAULT));
}

void ResultAccuracyAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (!getAtol().isZero()) {
    printer << "atol = ";
    printer.printFloat(getAtol());
    printer << ", ";
  }
  if (!getRtol().isZero()) {
    printer << "rtol = ";
    printer.printFloat(getRtol());
    printer << ", ";
  }
  if (getUlps() != 0)
    printer << "ulps = " << getUlps() << ", ";
  printer << "mode = " << getMode() << '>';
}

Attribute ResultAccuracyAttr::parse(AsmParser &parser, Type) {
  APFloat atol(0.0), rtol(0.0);
  int64_t ulps = 0;
  ResultAccuracyModeAttr mode;
  auto parseField = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (name == "atol")
      return parser.parseFloat(APFloat::IEEEdouble(), atol);
    if (name == "rtol")
      return parser.parseFloat(APFloat::IEEEdouble(), rtol);
    if (name == "ulps")
      return parser.parseInteger(ulps);
    if (name == "mode")
      return parser.parseAttribute(mode);
    return parser.emitError(loc) << "unknown field '" << name << "'";
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseField))
    return {};
  if (!mode) {
    parser.emitError(loc) << "expected field 'mode'";
    return {};
  }
  return parser.getChecked<ResultAccuracyAttr>(parser.getContext(), atol, rtol,
                                               ulps, mode);
}

LogicalResult
ResultAccuracyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           APFloat atol, APFloat rtol, int64_t ulps,
                           ResultAccuracyModeAttr mode) {
  if (atol.isNegative() || rtol.isNegative() || ulps < 0)
    return emitError() << "expects tolerances that are not negative";
  bool hasTolerance = !atol.isZero() || !rtol.isZero() || ulps != 0;
  if (mode.getValue() != ResultAccuracyMode::TOLERANCE && hasTolerance)
    return emitError() << "expects no tolerances in mode "
                       << stringifyResultAccuracyMode(mode.getValue());
  return success();
}

//===----------------------------------------------------------------------===//
// TypeExtensions
//===----------------------------------------------------------------------===//

void TypeExtensionsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getBounds(), printer, [&](int64_t bound) {
    if (ShapedType::isDynamic(bound))
      printer << '?';
    else
      printer << bound;
  });
  printer << '>';
}

Attribute TypeExtensionsAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> bounds;
  auto parseBound = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      bounds.push_back(ShapedType::kDynamic);
      return success();
    }
    return parser.parseInteger(bounds.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseBound))
    return {};
  return get(parser.getContext(), bounds);
}
