//===- OperationWork.cpp - What operations do -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a kernel, what its function notes (KernelWork.h), of a call what it notes
// itself; of all else, what its operands are. Cost: linear in operands, and in
// what is inside of reductions and the like.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/OperationWork.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/ProgramFormat/DType.h"
#include "whale/Transforms/OpCost.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace whale {

bool isDefault(std::optional<ArrayAttr> precision) {
  return !precision || llvm::all_of(*precision, [](Attribute attribute) {
    return cast<stablehlo::PrecisionAttr>(attribute).getValue() ==
           stablehlo::Precision::DEFAULT;
  });
}

bool mayRoundToTf32(Operation *op) {
  bool isFloat = llvm::all_of(op->getOperandTypes(), [](Type type) {
    return getElementTypeOrSelf(type).isF32();
  });
  if (!isFloat)
    return false;
  std::optional<ArrayAttr> precision;
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
    precision = dot.getPrecisionConfig();
    if (auto algorithm = dot.getAlgorithm())
      return algorithm->getLhsPrecisionType().isTF32() &&
             algorithm->getLhsComponentCount() == 1;
  } else {
    precision = cast<stablehlo::ConvolutionOp>(op).getPrecisionConfig();
  }
  return isDefault(precision) &&
         Config(op->getParentOfType<ModuleOp>()).allowsTf32();
}

/// Integers are stored without their signs, in whole bytes.
static Type getStoredType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return type;
  unsigned width = integer.getWidth();
  return IntegerType::get(type.getContext(),
                          width == 1 ? 1 : std::max(width, 8u));
}

Type getComputedType(Operation *op) {
  auto typeOf = [](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  if (op->getNumOperands() == 0)
    return typeOf(op->getResult(0));
  Type type = typeOf(op->getOperand(0));
  if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp, MatmulOp,
          ConvolutionOp>(op)) {
    Type other = typeOf(op->getOperand(1));
    if (getElementBytes(other) > getElementBytes(type))
      type = other;
  } else if (isa<stablehlo::SelectOp>(op)) {
    // The first operand is the condition.
    type = typeOf(op->getOperand(1));
  }
  // Routines for matrices know no halves.
  if (isa<stablehlo::CholeskyOp, stablehlo::CustomCallOp,
          stablehlo::TriangularSolveOp>(op) &&
      isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(type.getContext());
  return getStoredType(type);
}

/// A name that stays; f32 stands for what programs have no name for.
static std::string_view nameOf(Type type) {
  std::optional<format::DType> dtype = format::parseDType(getDTypeName(type));
  return format::name(dtype.value_or(format::DType::F32));
}

static double numberOf(Operation *op, StringRef name) {
  auto number = op->getAttrOfType<IntegerAttr>(name);
  return number ? double(number.getInt()) : 0;
}

static OpClass classOf(Operation *op, OpClass otherwise) {
  auto name = op->getAttrOfType<StringAttr>(kClassAttrName);
  return name ? parseOpClass(name.getValue()).value_or(otherwise) : otherwise;
}

/// What is noted at a call or at the function of a kernel.
static void addNoted(Operation *noted, OpCost &work) {
  work.opClass = classOf(noted, work.opClass);
  work.flops = numberOf(noted, kFlopsAttrName);
  work.bytes = numberOf(noted, kBytesAttrName);
  if (auto type = noted->getAttrOfType<TypeAttr>(kComputesInAttrName))
    work.dtype = nameOf(type.getValue());
}

/// Of a matrix product's three extents; 0 where one of them is.
static double smallestExtent(stablehlo::DotGeneralOp dot) {
  auto lhs = cast<ShapedType>(dot.getLhs().getType());
  auto rhs = cast<ShapedType>(dot.getRhs().getType());
  auto numbers = dot.getDotDimensionNumbers();
  double batch = 1, contracted = 1;
  for (int64_t dim : numbers.getLhsBatchingDimensions())
    batch *= double(lhs.getDimSize(dim));
  for (int64_t dim : numbers.getLhsContractingDimensions())
    contracted *= double(lhs.getDimSize(dim));
  double shared = batch * contracted;
  if (shared == 0)
    return 0;
  return std::min({contracted, double(lhs.getNumElements()) / shared,
                   double(rhs.getNumElements()) / shared});
}

/// How many places the window of a convolution has, along these dimensions of
/// its filter, or the result where these are fewer: of the gradient of a filter
/// those of the filter.
static double windowPlaces(Value filter, ArrayRef<int64_t> filterDims,
                           Value result, ArrayRef<int64_t> resultDims) {
  auto placesOf = [](Value value, ArrayRef<int64_t> dims) {
    double places = 1;
    for (int64_t dim : dims)
      places *= double(cast<ShapedType>(value.getType()).getDimSize(dim));
    return places;
  };
  return std::min(placesOf(filter, filterDims), placesOf(result, resultDims));
}

static double extentOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case(smallestExtent)
      .Case([](MatmulOp op) {
        return double(std::min({op.getM()[0], op.getN()[0], op.getK()[0]}));
      })
      .Case([](stablehlo::ConvolutionOp op) {
        auto numbers = op.getDimensionNumbers();
        return windowPlaces(op.getRhs(), numbers.getKernelSpatialDimensions(),
                            op.getResult(),
                            numbers.getOutputSpatialDimensions());
      })
      .Case([](ConvolutionOp op) {
        return windowPlaces(op.getRhs(), op.getKernelSpatialDimensions(),
                            op.getOutput(), op.getOutputSpatialDimensions());
      })
      .Default(0.0);
}

static bool roundsToTf32(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<MatmulOp, ConvolutionOp>([](auto op) { return op.getTf32(); })
      .Case<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(
          [](auto op) { return mayRoundToTf32(op); })
      .Default(false);
}

static bool isWork(Operation *op) {
  if (isa<LaunchOp, LibraryCallOp, MatmulOp, ConvolutionOp, AttentionOp,
          AttentionGradientOp>(op))
    return true;
  return op->getNumResults() > 0 && !isa<WhaleDialect>(op->getDialect()) &&
         !op->hasTrait<OpTrait::ConstantLike>() &&
         !isa<stablehlo::OptimizationBarrierOp, stablehlo::ReshapeOp>(op);
}

std::optional<OpCost> operationWork(Operation *op,
                                    SymbolTableCollection *symbols) {
  if (!isWork(op))
    return std::nullopt;
  OpCost work;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    work.opClass = OpClass::Elementwise;
    if (op->getNumResults() > 0)
      work.dtype =
          nameOf(getStoredType(getElementTypeOrSelf(op->getResult(0))));
    func::FuncOp kernel = symbols ? launch.getKernelFunc(*symbols) : nullptr;
    if (kernel)
      addNoted(kernel, work);
    return work;
  }
  if (op->getNumOperands() + op->getNumResults() > 0)
    work.dtype = roundsToTf32(op) ? "tf32" : nameOf(getComputedType(op));
  if (isa<LibraryCallOp>(op)) {
    addNoted(op, work);
    return work;
  }
  work.opClass = opClassOf(op);
  work.flops = double(opFlops(op));
  work.bytes = double(opBytes(op));
  work.extent = extentOf(op);
  return work;
}

} // namespace whale
