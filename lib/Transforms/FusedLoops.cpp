//===- FusedLoops.cpp - What kernels will compute of StableHLO ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expression grows from an operation towards its operands, as
// whale-fuse-kernels takes in what makes them. Cost: at most kMostSteps
// operations for each value, with the users of each.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/FusedLoops.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Operations to look at. Those that move elements are no arithmetic, so there
/// may be any number of them.
static constexpr unsigned kMostSteps = 256;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static int64_t countElements(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements();
}

static bool movesElements(Operation *op) {
  return isa<hlo::BroadcastInDimOp, hlo::TransposeOp>(op);
}

/// Whether an operation reduces dimensions of size one alone.
static bool reducesNothing(Operation *op) {
  auto reduce = dyn_cast<hlo::ReduceOp>(op);
  return reduce && countElements(reduce.getInputs()[0]) ==
                       countElements(reduce->getResult(0));
}

/// Whether the operation is a loop that gives one element at a time.
static bool isParallel(Operation *op) {
  return op->getNumResults() == 1 &&
         (op->hasTrait<OpTrait::Elementwise>() || movesElements(op) ||
          reducesNothing(op) ||
          isa<hlo::SelectOp, hlo::ClampOp, hlo::IotaOp>(op));
}

/// Whether what is stored is computed in without more than a conversion between
/// floating-point types.
static bool isPlain(Type type) {
  type = getElementTypeOrSelf(type);
  if (isa<FloatType>(type))
    return type.getIntOrFloatBitWidth() >= 16;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && (integer.getWidth() == 1 || integer.getWidth() >= 8);
}

static std::optional<unsigned> countArithmetic(hlo::ConvertOp op) {
  Type from = getElementTypeOrSelf(op.getOperand().getType());
  Type to = getElementTypeOrSelf(op.getType());
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return 0;
  // What is out of range has values of its own.
  bool isRounded = isa<FloatType>(from) && !to.isInteger(1);
  return isRounded ? std::nullopt : std::optional(1u);
}

std::optional<unsigned> countArithmetic(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || movesElements(op) ||
      isa<hlo::ReshapeOp, hlo::OptimizationBarrierOp>(op))
    return 0;
  if (!llvm::all_of(op->getOperandTypes(), isPlain) ||
      !llvm::all_of(op->getResultTypes(), isPlain))
    return std::nullopt;
  if (isa<hlo::IotaOp>(op))
    return kCounterArithmetic +
           isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  if (auto convert = dyn_cast<hlo::ConvertOp>(op))
    return countArithmetic(convert);
  if (auto compare = dyn_cast<hlo::CompareOp>(op))
    return compare.getCompareType() == hlo::ComparisonType::TOTALORDER
               ? std::nullopt
               : std::optional(1u);
  if (isa<hlo::ClampOp>(op))
    return 2;
  if (reducesNothing(op))
    return countArithmetic(&op->getRegion(0).front().front());
  if (isa<hlo::AbsOp, hlo::AddOp, hlo::AndOp, hlo::MaxOp, hlo::MinOp,
          hlo::MulOp, hlo::NegOp, hlo::NotOp, hlo::OrOp, hlo::SelectOp,
          hlo::SubtractOp, hlo::XorOp>(op))
    return 1;
  return std::nullopt;
}

bool isFarSmaller(Value value, Operation *op) {
  return op->getNumResults() > 0 && isa<ShapedType>(value.getType()) &&
         isa<ShapedType>(op->getResult(0).getType()) &&
         isFarSmaller(countElements(value), countElements(op->getResult(0)));
}

bool becomesLoop(Operation *op) {
  return isParallel(op) || isa<hlo::ReduceOp>(op);
}

/// How the loop that an operation becomes reads an operand.
static LoopRead describeRead(OpOperand &operand) {
  Operation *op = operand.getOwner();
  LoopRead read;
  llvm::SmallPtrSet<Operation *, 4> readers;
  for (Operation *user : operand.get().getUsers())
    readers.insert(user);
  read.readers = readers.size();
  if (isa<hlo::TransposeOp>(op)) {
    read.isPrefix = false;
    return read;
  }
  auto from = cast<ShapedType>(operand.get().getType());
  auto to = cast<ShapedType>(op->getResult(0).getType());
  if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) {
    // The loops are those of an operand, and an initial value is a scalar.
    if (operand.getOperandNumber() < reduce.getInputs().size())
      return read;
  } else if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
    bool isWhole = llvm::all_of(llvm::enumerate(dims), [&](auto dim) {
      return from.getDimSize(dim.index()) == to.getDimSize(dim.value());
    });
    read.isPrefix = isWhole;
    for (auto [position, dim] : llvm::enumerate(dims))
      read.isPrefix &= dim == int64_t(position);
    read.isPermutation = read.readsOnce =
        isWhole && from.getRank() == to.getRank();
    return read;
  }
  // What is one for all elements is read for each of them.
  read.isPermutation = read.readsOnce = from.getRank() == to.getRank();
  return read;
}

//===----------------------------------------------------------------------===//
// Cheap expressions
//===----------------------------------------------------------------------===//

/// Whether kernels have a constant as a number.
static bool isSplat(Operation *constant) {
  DenseElementsAttr elements;
  return matchPattern(constant, m_Constant(&elements)) && elements.isSplat();
}

/// Whether a product can write it transposed.
static bool isTransposedProduct(Operation *op) {
  return isa<hlo::TransposeOp>(op) &&
         op->getOperand(0).getDefiningOp<hlo::DotGeneralOp>();
}

std::optional<CheapExpression> CheapExpression::find(Value value) {
  unsigned steps = 0;
  return find(value, steps);
}

std::optional<CheapExpression> CheapExpression::find(Value value,
                                                     unsigned &steps) {
  Operation *op = value.getDefiningOp();
  CheapExpression expression;
  if (!isParallel(op) || isTransposedProduct(op) || !expression.add(op, steps))
    return std::nullopt;
  auto isLarge = [&](Value input) { return !isFarSmaller(input, op); };
  expression.work.largeInputs = llvm::count_if(expression.leaves, isLarge);
  for (Operation *constant : expression.ops)
    if (constant->hasTrait<OpTrait::ConstantLike>() && !isSplat(constant))
      expression.work.largeInputs += isLarge(constant->getResult(0));
  if (!isCheap(expression.work))
    return std::nullopt;
  return expression;
}

/// Adds an operation and what is taken in with it. `steps` counts the
/// operations looked at, for the expressions that this one asks for, too.
bool CheapExpression::add(Operation *op, unsigned &steps) {
  std::optional<unsigned> own = countArithmetic(op);
  if (!own || (*work.arithmetic += *own) > kMostCheapArithmetic ||
      ++steps > kMostSteps)
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *producer = operand.get().getDefiningOp();
    if (producer && producer->hasTrait<OpTrait::ConstantLike>()) {
      ops.insert(producer);
    } else if (producer && producer->getBlock() == op->getBlock() &&
               isTakenIn(operand, steps)) {
      if (!ops.contains(producer) && !add(producer, steps))
        return false;
    } else if (isTakenInUnseen(operand, steps)) {
      return false;
    } else {
      leaves.insert(operand.get());
    }
  }
  ops.insert(op);
  return true;
}

/// Whether the loop takes in, with an operand, more than expressions have:
/// elements at computed places, or what takes long and is only seen in another
/// shape.
bool CheapExpression::isTakenInUnseen(OpOperand &operand, unsigned &steps) {
  Value value = operand.get();
  bool isAlone = value.hasOneUse();
  while (auto reshape = value.getDefiningOp<hlo::ReshapeOp>()) {
    value = reshape.getOperand();
    isAlone &= value.hasOneUse();
  }
  Operation *producer = value.getDefiningOp();
  if (!producer || producer->getBlock() != operand.getOwner()->getBlock())
    return false;
  if (isa<hlo::DynamicSliceOp>(producer))
    return true;
  if (isa<hlo::ConcatenateOp, hlo::GatherOp, hlo::PadOp>(producer))
    return isAlone;
  return isParallel(producer) && isAlone && value != operand.get() &&
         !find(value, steps);
}

/// Whether what makes an operand is a part of the same loop: where this is its
/// only reader, or where it is cheap itself.
bool CheapExpression::isTakenIn(OpOperand &operand, unsigned &steps) {
  Operation *producer = operand.get().getDefiningOp();
  if (!isParallel(producer) || isTransposedProduct(producer))
    return false;
  return willFuse(LoopWork(), describeRead(operand)) == Fusion::Alone ||
         find(operand.get(), steps);
}

} // namespace whale
