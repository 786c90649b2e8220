//===- StableHLODialect.cpp - Registration of the dialect -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "whale/Dialect/StableHLO/IR/StableHLODialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOTypes.cpp.inc"

void StablehloDialect::initialize() {
  registerAttributes();
  addTypes<
#define GET_TYPEDEF_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOUnaryOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOBinaryOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOShapeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOIndexingOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOReductionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOLinearAlgebraOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOControlFlowOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLOCollectiveOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/StableHLO/IR/StableHLORandomOps.cpp.inc"
      >();
}

Operation *StablehloDialect::materializeConstant(OpBuilder &builder,
                                                 Attribute value, Type type,
                                                 Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

static bool areCompatible(Type lhs, Type rhs) {
  if (lhs == rhs)
    return true;
  auto lhsTuple = dyn_cast<TupleType>(lhs);
  auto rhsTuple = dyn_cast<TupleType>(rhs);
  if (lhsTuple && rhsTuple)
    return areCompatibleTypes(lhsTuple.getTypes(), rhsTuple.getTypes());
  auto lhsTensor = dyn_cast<RankedTensorType>(lhs);
  auto rhsTensor = dyn_cast<RankedTensorType>(rhs);
  return lhsTensor && rhsTensor &&
         lhsTensor.getElementType() == rhsTensor.getElementType() &&
         succeeded(verifyCompatibleShape(lhsTensor, rhsTensor));
}

DenseIntElementsAttr stablehlo::makePadding(MLIRContext *context,
                                            ArrayRef<int64_t> padding) {
  auto type =
      RankedTensorType::get({static_cast<int64_t>(padding.size()) / 2, 2},
                            IntegerType::get(context, 64));
  return DenseIntElementsAttr::get(type, padding);
}

bool stablehlo::areCompatibleTypes(TypeRange lhs, TypeRange rhs) {
  return lhs.size() == rhs.size() &&
         llvm::all_of(llvm::zip_equal(lhs, rhs), [](auto pair) {
           return areCompatible(std::get<0>(pair), std::get<1>(pair));
         });
}
