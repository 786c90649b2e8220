//===- SplitLoop.cpp - One loop as several --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a counted loop, and runs of its iterations, each with a strategy. Out: a
// loop for each run, one after the other.
//
// An index in the body is followed to factor * iteration + offset, through sums
// and differences of the counter and constants. Where iteration after iteration
// reads, or fills, the next or the previous row of an array, and all of it, a
// piece of the loop takes only its own rows, and the index is shifted. All
// other carried values pass from one piece to the next.
//
// Cost: for each piece, a copy of the body, a walk through it, and each index
// followed anew. Rows of an array that an earlier loop has put together are
// searched among its pieces: the square of their number.
//
//===----------------------------------------------------------------------===//

#include "SplitLoop.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/Attributes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

namespace {

/// factor * (number of the iteration) + offset.
struct Row {
  int64_t factor = 0, offset = 0;

  /// The first of the rows that iterations [begin, end) touch.
  int64_t first(int64_t begin, int64_t end) const {
    return std::min(factor * begin, factor * (end - 1)) + offset;
  }
};

std::optional<int64_t> constantOf(Value value) {
  DenseIntElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  return attr.getSplatValue<APInt>().getSExtValue();
}

/// What an index inside the body is, if it follows from the counter.
std::optional<Row> rowOf(hlo::WhileOp loop, const CountedLoop &counted,
                         Value value) {
  // Of each value that it is computed from, too.
  llvm::DenseMap<Value, std::optional<Row>> rows;
  SmallVector<Value> missing{value};
  while (!missing.empty()) {
    Value next = missing.back();
    if (rows.contains(next)) {
      missing.pop_back();
      continue;
    }
    std::optional<Row> row;
    Operation *op = next.getDefiningOp();
    if (next == loop.getBody().getArgument(counted.counter)) {
      row = Row{counted.step, counted.start};
    } else if (std::optional<int64_t> constant = constantOf(next)) {
      row = Row{0, *constant};
    } else if (isa_and_nonnull<hlo::AddOp, hlo::SubtractOp>(op)) {
      auto lhs = rows.find(op->getOperand(0));
      auto rhs = rows.find(op->getOperand(1));
      if (lhs == rows.end() || rhs == rows.end()) {
        llvm::append_range(missing, op->getOperands());
        continue;
      }
      auto combine = [&](int64_t a, int64_t b, int64_t &result) {
        return isa<hlo::AddOp>(op) ? !llvm::AddOverflow(a, b, result)
                                   : !llvm::SubOverflow(a, b, result);
      };
      Row sum;
      if (lhs->second && rhs->second &&
          combine(lhs->second->factor, rhs->second->factor, sum.factor) &&
          combine(lhs->second->offset, rhs->second->offset, sum.offset))
        row = sum;
    }
    rows[next] = row;
  }
  return rows.lookup(value);
}

/// The row of `array` that indices choose, if each iteration takes another one
/// and all of it.
std::optional<Row> wholeRow(hlo::WhileOp loop, const CountedLoop &counted,
                            Value array, ValueRange indices,
                            ArrayRef<int64_t> sizes) {
  auto type = dyn_cast<RankedTensorType>(array.getType());
  if (!type || type.getRank() == 0 || sizes.front() != 1 ||
      sizes.drop_front() != type.getShape().drop_front())
    return std::nullopt;
  for (Value index : indices.drop_front())
    if (constantOf(index) != 0)
      return std::nullopt;
  std::optional<Row> row = rowOf(loop, counted, indices.front());
  if (!row || std::abs(row->factor) != 1)
    return std::nullopt;
  int64_t first = row->first(0, counted.trips);
  // An index outside would be clamped.
  if (first < 0 || first + counted.trips > type.getDimSize(0))
    return std::nullopt;
  return row;
}

/// The update of a carried value that is filled row by row.
std::pair<hlo::DynamicUpdateSliceOp, Row>
stackedUpdate(hlo::WhileOp loop, const CountedLoop &counted, unsigned index) {
  Value argument = loop.getBody().getArgument(index);
  Value next = loop.getBody().front().getTerminator()->getOperand(index);
  auto update = next.getDefiningOp<hlo::DynamicUpdateSliceOp>();
  if (!update || update.getOperand() != argument || !argument.hasOneUse() ||
      !next.hasOneUse() || !loop.getCond().getArgument(index).use_empty())
    return {};
  auto type = cast<RankedTensorType>(update.getUpdate().getType());
  std::optional<Row> row = wholeRow(loop, counted, argument,
                                    update.getStartIndices(), type.getShape());
  // Rows that nothing fills keep what was there.
  if (!row ||
      cast<RankedTensorType>(argument.getType()).getDimSize(0) != counted.trips)
    return {};
  return {update, *row};
}

RankedTensorType withRows(Type type, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[0] = rows;
  return tensor.clone(shape);
}

/// `index` counted from row `first` on.
void shift(OpOperand &index, int64_t first) {
  if (first == 0)
    return;
  OpBuilder builder(index.getOwner());
  Location loc = index.getOwner()->getLoc();
  auto type = cast<RankedTensorType>(index.get().getType());
  Value offset = hlo::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(
          type, builder.getIntegerAttr(type.getElementType(), first)));
  index.set(hlo::SubtractOp::create(builder, loc, index.get(), offset));
}

/// Lets the cloned loop stop after the counter has had `count` values from
/// `start` on.
void setRange(hlo::WhileOp loop, const CountedLoop &counted, int64_t begin,
              int64_t end) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto type =
      cast<RankedTensorType>(loop.getOperands()[counted.counter].getType());
  auto constant = [&](int64_t iteration) -> Value {
    int64_t value = counted.start + iteration * counted.step;
    return hlo::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(
            type, builder.getIntegerAttr(type.getElementType(), value)));
  };
  loop->setOperand(counted.counter, constant(begin));
  Block &cond = loop.getCond().front();
  auto compare =
      cond.getTerminator()->getOperand(0).getDefiningOp<hlo::CompareOp>();
  builder.setInsertionPoint(compare);
  compare->setOperand(0, cond.getArgument(counted.counter));
  compare->setOperand(1, constant(end));
  compare.setComparisonDirection(hlo::ComparisonDirection::LT);
}

} // namespace

bool LoopSplitter::canSplit(hlo::WhileOp loop) {
  std::optional<CountedLoop> counted = countedLoop(loop);
  // Beyond, it is a loop over samples or moments rather than layers.
  constexpr int64_t kMost = 1024;
  if (!counted || counted->trips < 2 || counted->trips > kMost)
    return false;
  // The counter has to hold all values of the pieces' limits.
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  return std::abs(counted->start) < kLargest / 2 &&
         counted->step < kLargest / 2 / kMost &&
         getElementTypeOrSelf(loop.getOperands()[counted->counter].getType())
                 .getIntOrFloatBitWidth() >= 32;
}

llvm::SmallDenseSet<unsigned> LoopSplitter::stackedResults(hlo::WhileOp loop) {
  llvm::SmallDenseSet<unsigned> stacked;
  std::optional<CountedLoop> counted = countedLoop(loop);
  for (unsigned i = 0; counted && i < loop.getNumResults(); ++i)
    if (stackedUpdate(loop, *counted, i).first)
      stacked.insert(i);
  return stacked;
}

bool LoopSplitter::readsRows(hlo::WhileOp loop, Value value) {
  std::optional<CountedLoop> counted = countedLoop(loop);
  return counted && llvm::all_of(value.getUses(), [&](OpOperand &use) {
           if (!loop->isAncestor(use.getOwner()))
             return true;
           auto slice = dyn_cast<hlo::DynamicSliceOp>(use.getOwner());
           return slice && slice->getParentOp() == loop &&
                  use.getOperandNumber() == 0 &&
                  wholeRow(loop, *counted, value, slice.getStartIndices(),
                           slice.getSliceSizes());
         });
}

Value LoopSplitter::rowsOf(OpBuilder &builder, Value value, int64_t begin,
                           int64_t size, StrategyAttr owner) {
  auto type = withRows(value.getType(), size);
  if (type == value.getType())
    return value;
  // A concatenation that was made for another loop has them as a piece.
  if (auto whole = value.getDefiningOp<hlo::ConcatenateOp>();
      whole && whole.getDimension() == 0) {
    int64_t at = 0;
    for (Value piece : whole->getOperands()) {
      if (at == begin && piece.getType() == type)
        return piece;
      at += cast<RankedTensorType>(piece.getType()).getDimSize(0);
    }
  }
  auto constant = value.getDefiningOp<hlo::ConstantOp>();
  if (auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                            : SplatElementsAttr())
    return hlo::ConstantOp::create(builder, constant.getLoc(),
                                   splat.resizeSplat(type));
  Value &known = rows[{value, begin, size}];
  if (known)
    return known;
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  SmallVector<int64_t> limits(type.getShape());
  starts[0] = begin;
  limits[0] = begin + size;
  // As early as it can be, for a later loop to find.
  OpBuilder::InsertionGuard guard(builder);
  Attribute phase = PhaseAttr::get(builder.getContext(), Phase::Forward);
  if (Operation *producer = value.getDefiningOp()) {
    builder.setInsertionPointAfter(producer);
    if (auto made = producer->getAttrOfType<StrategyAttr>(kStrategyAttr))
      owner = made;
    if (Attribute own = producer->getAttr(kPhaseAttr))
      phase = own;
  } else {
    builder.setInsertionPointToStart(value.getParentBlock());
  }
  auto slice = hlo::SliceOp::create(builder, value.getLoc(), type, value,
                                    starts, limits, steps);
  slice->setAttr(kStrategyAttr, owner);
  slice->setAttr(kPhaseAttr, phase);
  return known = slice;
}

void LoopSplitter::split(hlo::WhileOp loop, ArrayRef<LoopPiece> pieces,
                         StrategyAttr owner) {
  CountedLoop counted = *countedLoop(loop);
  OpBuilder builder(loop);
  unsigned count = loop.getNumResults();
  SmallVector<std::optional<Row>> stacked(count);
  for (unsigned i = 0; i < count; ++i)
    if (auto [update, row] = stackedUpdate(loop, counted, i); update)
      stacked[i] = row;

  SmallVector<Value> carried(loop.getOperands());
  // Of each stacked result the pieces, by the first row.
  SmallVector<std::map<int64_t, Value>> filled(count);
  for (const LoopPiece &piece : pieces) {
    int64_t size = piece.end - piece.begin;
    auto firstRow = [&](const Row &row) {
      return row.first(piece.begin, piece.end);
    };
    SmallVector<Value> operands = carried;
    for (unsigned i = 0; i < count; ++i)
      if (stacked[i])
        operands[i] = rowsOf(builder, loop.getOperands()[i],
                             firstRow(*stacked[i]), size, piece.strategy);
    IRMapping mapping;
    auto part = cast<hlo::WhileOp>(builder.clone(*loop, mapping));
    part->setOperands(operands);
    part->setAttr(kStrategyAttr, piece.strategy);

    // Reads of rows, found in the loop as it was. The rows are before the
    // piece.
    OpBuilder before(part);
    loop.getBody().walk([&](hlo::DynamicSliceOp slice) {
      Value array = slice.getOperand();
      std::optional<Row> row;
      if (slice->getParentOp() == loop &&
          !loop->isAncestor(array.getParentBlock()->getParentOp()))
        row = wholeRow(loop, counted, array, slice.getStartIndices(),
                       slice.getSliceSizes());
      if (!row)
        return;
      auto read = mapping.lookup(slice.getOperation());
      read->setOperand(0, rowsOf(before, array, firstRow(*row), size, owner));
      shift(read->getOpOperand(1), firstRow(*row));
    });
    for (unsigned i = 0; i < count; ++i) {
      if (!stacked[i])
        continue;
      Operation *update =
          mapping.lookup(stackedUpdate(loop, counted, i).first.getOperation());
      Type type = operands[i].getType();
      part.getCond().getArgument(i).setType(type);
      part.getBody().getArgument(i).setType(type);
      part.getResult(i).setType(type);
      update->getResult(0).setType(cast<RankedTensorType>(type));
      shift(update->getOpOperand(2), firstRow(*stacked[i]));
      filled[i][firstRow(*stacked[i])] = part.getResult(i);
    }
    setRange(part, counted, piece.begin, piece.end);
    carried.assign(part->result_begin(), part->result_end());
  }

  for (unsigned i = 0; i < count; ++i) {
    Value result = loop.getResult(i);
    if (result.use_empty())
      continue;
    if (stacked[i]) {
      SmallVector<Value> parts;
      for (auto &[first, part] : filled[i])
        parts.push_back(part);
      auto whole = hlo::ConcatenateOp::create(builder, loop.getLoc(),
                                              result.getType(), parts, 0);
      whole->setAttr(kStrategyAttr, pieces.back().strategy);
      whole->setAttr(kPhaseAttr, loop->getAttr(kPhaseAttr));
      carried[i] = whole;
    }
    result.replaceAllUsesWith(carried[i]);
  }
  loop.erase();
}

} // namespace whale
