//===- SinkConversions.cpp - Widen behind loops what they only move -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main. Out: where a loop or branch widens numbers of a type with a small
// range and then only moves them, as into a row of a stack of gradients, it
// moves the narrow ones, and what comes behind it widens them.
//
// A sum over samples is rounded to its type before it becomes wider, as a
// number beyond f16 becomes infinite. In a loop, that would take the sum of all
// samples in each round; behind it, the sums of all rounds are complete at
// once. Cost: for each carried value and result, a walk over what moves it.
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_SINKCONVERSIONS
#include "whale/Transforms/Import/Passes.h.inc"

namespace {

bool isMove(Operation *op) {
  return isa<hlo::BroadcastInDimOp, hlo::ConcatenateOp, hlo::DynamicSliceOp,
             hlo::DynamicUpdateSliceOp, hlo::PadOp, hlo::ReshapeOp,
             hlo::ReverseOp, hlo::SelectOp, hlo::SliceOp, hlo::TransposeOp>(op);
}

/// The type of a value if elements of a type with a smaller range, without
/// sums of them, are widened to it; else null.
FloatType widenedFrom(Value value) {
  auto convert = value.getDefiningOp<hlo::ConvertOp>();
  if (!convert)
    return nullptr;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(convert.getOperand()));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(value));
  bool isExact = from && to && hasSmallRange(from) &&
                 llvm::APFloat::isRepresentableBy(from.getFloatSemantics(),
                                                  to.getFloatSemantics());
  return isExact ? from : nullptr;
}

/// The one number of a constant in a narrower type, if it has it.
std::optional<APFloat> narrowConstant(Value value, FloatType narrow) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return std::nullopt;
  APFloat number = splat.getSplatValue<APFloat>();
  bool losesInfo = false;
  number.convert(narrow.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return losesInfo ? std::nullopt : std::optional(number);
}

/// How a value is moved together from narrow ones that were widened.
class MovedValue {
public:
  /// `carried` is a value that becomes narrow, if there is one.
  explicit MovedValue(Value value, Value carried = nullptr)
      : value(value), carried(carried) {
    SetVector<Value> values;
    values.insert(value);
    for (unsigned i = 0; i < values.size() && isMoved; ++i) {
      Value next = values[i];
      Operation *op = next.getDefiningOp();
      if (next == carried)
        continue;
      if (FloatType from = widenedFrom(next)) {
        isMoved = !narrow || narrow == from;
        narrow = from;
        leaves.push_back(op);
      } else if (op && matchPattern(next, m_Constant())) {
        constants.push_back(next);
        leaves.push_back(op);
      } else if (op && isMove(op) && op->getBlock() == value.getParentBlock()) {
        moves.push_back(op);
        values.insert_range(llvm::make_filter_range(
            op->getOperands(), [&](Value operand) { return isData(operand); }));
      } else {
        isMoved = false;
      }
    }
    llvm::sort(moves, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
  }

  /// The type that all of it had, or null where there is no number that was
  /// widened, or are others.
  FloatType getNarrow() const { return isMoved ? narrow : nullptr; }

  bool canBe(FloatType type) const {
    return isMoved && (!narrow || narrow == type) &&
           llvm::all_of(constants, [&](Value constant) {
             return narrowConstant(constant, type).has_value();
           });
  }

  /// Whether nothing but `end` reads what the carried value becomes.
  bool isCarriedOnlyTo(OpOperand &end) const {
    SetVector<Value> values;
    values.insert(carried);
    for (unsigned i = 0; i < values.size(); ++i)
      for (OpOperand &use : values[i].getUses()) {
        if (&use == &end)
          continue;
        if (!llvm::is_contained(moves, use.getOwner()))
          return false;
        values.insert(use.getOwner()->getResult(0));
      }
    return true;
  }

  /// The same value, narrow. The carried value is narrow already.
  Value makeNarrow(FloatType type) {
    IRMapping map;
    for (Operation *move : moves) {
      OpBuilder builder(move);
      for (Value operand : move->getOperands())
        if (isData(operand) && !map.contains(operand))
          map.map(operand, leafOf(builder, move, operand, type));
      Operation *copy = builder.clone(*move, map);
      retype(copy->getResult(0), type);
    }
    OpBuilder builder(value.getContext());
    if (Operation *op = value.getDefiningOp())
      builder.setInsertionPointAfter(op);
    return map.contains(value)
               ? map.lookup(value)
               : leafOf(builder, value.getDefiningOp(), value, type);
  }

  /// Removes the moves, and what they moved, that nothing uses any more.
  void eraseUnused() {
    for (Operation *op :
         llvm::concat<Operation *>(llvm::reverse(moves), leaves))
      if (op->use_empty())
        op->erase();
  }

  static void retype(Value value, FloatType element) {
    value.setType(cast<RankedTensorType>(value.getType()).clone(element));
  }

private:
  /// Whether an operand of a move is moved, and no index or predicate.
  bool isData(Value operand) const {
    return getElementTypeOrSelf(operand) == getElementTypeOrSelf(value);
  }

  Value leafOf(OpBuilder &builder, Operation *user, Value leaf,
               FloatType type) const {
    if (leaf == carried)
      return leaf;
    if (widenedFrom(leaf))
      return leaf.getDefiningOp()->getOperand(0);
    auto shape = cast<RankedTensorType>(leaf.getType()).clone(type);
    Operation *constant = hlo::ConstantOp::create(
        builder, leaf.getLoc(),
        DenseElementsAttr::get(shape, *narrowConstant(leaf, type)));
    carryAttributes(user, constant);
    return constant->getResult(0);
  }

  Value value, carried;
  FloatType narrow;
  bool isMoved = true;
  /// The operations that move, and those that make what is moved.
  SmallVector<Operation *> moves, leaves;
  SmallVector<Value> constants;
};

/// Widens a result that has become narrow, where it is read: rows of it one by
/// one.
void widen(Value result, Type wide) {
  Operation *op = result.getDefiningOp();
  OpBuilder builder(op->getContext());
  auto convert = [&](Value narrow, Operation *from) {
    auto type = cast<RankedTensorType>(narrow.getType())
                    .clone(getElementTypeOrSelf(wide));
    Operation *made =
        hlo::ConvertOp::create(builder, narrow.getLoc(), type, narrow);
    carryAttributes(from, made);
    return made->getResult(0);
  };
  builder.setInsertionPointAfter(op);
  Value whole = convert(result, op);
  result.replaceAllUsesExcept(whole, whole.getDefiningOp());
  for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
    if (!isa<hlo::SliceOp, hlo::DynamicSliceOp>(user))
      continue;
    user->setOperand(0, result);
    MovedValue::retype(user->getResult(0),
                       cast<FloatType>(getElementTypeOrSelf(result)));
    builder.setInsertionPointAfter(user);
    Value rows = convert(user->getResult(0), user);
    user->getResult(0).replaceAllUsesExcept(rows, rows.getDefiningOp());
  }
  if (whole.use_empty())
    whole.getDefiningOp()->erase();
}

void sinkFromLoop(hlo::WhileOp loop, unsigned index) {
  BlockArgument carried = loop.getBody().getArgument(index);
  OpOperand &next = loop.getBody().front().getTerminator()->getOpOperand(index);
  MovedValue moved(next.get(), carried), start(loop->getOperand(index));
  FloatType narrow = moved.getNarrow();
  if (!narrow || !moved.canBe(narrow) || !start.canBe(narrow) ||
      !moved.isCarriedOnlyTo(next) ||
      !loop.getCond().getArgument(index).use_empty())
    return;
  Type wide = carried.getType();
  loop->setOperand(index, start.makeNarrow(narrow));
  start.eraseUnused();
  for (Value value : {Value(carried), Value(loop.getResult(index)),
                      Value(loop.getCond().getArgument(index))})
    MovedValue::retype(value, narrow);
  next.set(moved.makeNarrow(narrow));
  moved.eraseUnused();
  widen(loop.getResult(index), wide);
}

void sinkFromBranch(OpResult result) {
  SmallVector<OpOperand *> yields;
  SmallVector<MovedValue> moved;
  FloatType narrow;
  for (Region &region : result.getOwner()->getRegions()) {
    yields.push_back(&region.front().getTerminator()->getOpOperand(
        result.getResultNumber()));
    moved.emplace_back(yields.back()->get());
    if (FloatType type = moved.back().getNarrow())
      narrow = type;
  }
  if (!narrow || llvm::any_of(moved, [&](const MovedValue &value) {
        return !value.canBe(narrow);
      }))
    return;
  Type wide = result.getType();
  for (auto [yield, value] : llvm::zip_equal(yields, moved)) {
    yield->set(value.makeNarrow(narrow));
    value.eraseUnused();
  }
  MovedValue::retype(result, narrow);
  widen(result, wide);
}

struct SinkConversionsPass : impl::SinkConversionsBase<SinkConversionsPass> {
  using SinkConversionsBase::SinkConversionsBase;

  void runOnOperation() final {
    // From the inside: what an inner loop leaves narrow, an outer one moves.
    getOperation().walk([](Operation *op) {
      if (!hlo::isControlFlow(op))
        return;
      for (OpResult result : op->getResults()) {
        if (!isa<FloatType>(getElementTypeOrSelf(result)))
          continue;
        if (auto loop = dyn_cast<hlo::WhileOp>(op))
          sinkFromLoop(loop, result.getResultNumber());
        else
          sinkFromBranch(result);
      }
    });
  }
};

} // namespace
} // namespace whale
