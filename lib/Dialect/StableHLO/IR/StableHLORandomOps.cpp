//===- StableHLORandomOps.cpp - Random numbers ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLORandomOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verifiers and inference
//===----------------------------------------------------------------------===//

LogicalResult RngOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto type = tensorType(adaptor.getA().getType());
  auto shapeType = tensorType(adaptor.getShape().getType());
  // rng_c1
  if (failed(check.sameElements("operands", type, adaptor.getB().getType())))
    return failure();
  // rng_c2
  if (adaptor.getRngDistribution() == RngDistribution::NORMAL &&
      !isa<FloatType>(type.getElementType()))
    return check.error("expects floats for distribution NORMAL (got ",
                       type.getElementType(), ")");
  // rng_c3: the shape is the value of the operand if that is a constant;
  // otherwise its sizes are unknown.
  if (shapeType.isDynamicDim(0))
    return check.error("expects a shape of static size");
  SmallVector<int64_t> shape(shapeType.getDimSize(0), ShapedType::kDynamic);
  DenseIntElementsAttr constant;
  if (matchPattern(adaptor.getShape(), m_Constant(&constant)))
    for (auto [size, value] :
         llvm::zip_equal(shape, constant.getValues<APInt>())) {
      if (value.isNegative() || value.getActiveBits() > 63)
        return check.error("expects a shape that is not negative");
      size = value.getSExtValue();
    }
  results.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult RngBitGeneratorOp::verify() {
  Checker check(*this);
  // rng_bit_generator_c1
  if (!areCompatibleTypes(getInitialState().getType(),
                          getOutputState().getType()))
    return check.error("expects output_state of the type of initial_state");
  // rng_bit_generator_c2
  RankedTensorType state = getInitialState().getType();
  auto integer = dyn_cast<IntegerType>(state.getElementType());
  if (!integer || state.getRank() != 1)
    return check.error("expects a 1-dimensional state of integers (got ", state,
                       ")");
  Type element = getOutput().getType().getElementType();
  if (!isa<IntegerType, FloatType>(element))
    return check.error("expects integers or floats (got ", element, ")");
  if (getRngAlgorithm() == RngAlgorithm::DEFAULT || !integer.isInteger(64) ||
      state.isDynamicDim(0))
    return success();
  int64_t size = state.getDimSize(0);
  bool isPhilox = getRngAlgorithm() == RngAlgorithm::PHILOX;
  if (size != 2 && !(isPhilox && size == 3))
    return check.error("expects a state of 2", isPhilox ? " or 3" : "",
                       " elements (got ", size, ")");
  return success();
}
