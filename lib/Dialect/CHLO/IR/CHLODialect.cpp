//===- CHLODialect.cpp - Dialect and attributes -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::chlo;

#include "whale/Dialect/CHLO/IR/CHLODialect.cpp.inc"
#include "whale/Dialect/CHLO/IR/CHLOEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/CHLO/IR/CHLOAttrs.cpp.inc"

void ChloDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "whale/Dialect/CHLO/IR/CHLOAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/CHLO/IR/CHLOOps.cpp.inc"
      >();
}

Operation *ChloDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return stablehlo::ConstantOp::create(builder, loc, type, elements);
}

//===----------------------------------------------------------------------===//
// RaggedDotDimensionNumbers
//===----------------------------------------------------------------------===//

void RaggedDotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  whale::printStruct(
      printer, {{"lhs_batching_dimensions", getLhsBatchingDimensions()},
                {"rhs_batching_dimensions", getRhsBatchingDimensions()},
                {"lhs_contracting_dimensions", getLhsContractingDimensions()},
                {"rhs_contracting_dimensions", getRhsContractingDimensions()},
                {"lhs_ragged_dimensions", getLhsRaggedDimensions()},
                {"rhs_group_dimensions", getRhsGroupDimensions()}});
}

Attribute RaggedDotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting,
      ragged, group;
  if (whale::parseStruct(parser,
                         {{"lhs_batching_dimensions", &lhsBatching},
                          {"rhs_batching_dimensions", &rhsBatching},
                          {"lhs_contracting_dimensions", &lhsContracting},
                          {"rhs_contracting_dimensions", &rhsContracting},
                          {"lhs_ragged_dimensions", &ragged},
                          {"rhs_group_dimensions", &group}}))
    return {};
  return get(parser.getContext(), lhsBatching, rhsBatching, lhsContracting,
             rhsContracting, ragged, group);
}
