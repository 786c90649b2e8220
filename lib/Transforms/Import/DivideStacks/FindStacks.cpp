//===- FindStacks.cpp - What is stored row by row in stages ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cut is read off the slices of rows of one value: ranges that do not
// overlap, those of each stage side by side. From all values with this cut the
// stack grows to the operations that use or make them, and on to their other
// operands and results, as long as rows are a factor of the operation's
// sharding rule that can be computed in parts. In the end it loses again what
// its stage could not compute alone, until nothing changes.
//
// Cost: growing looks at each use once; each round of pruning at all of the
// stack.
//
//===----------------------------------------------------------------------===//

#include "FindStacks.h"

#include "../ImportScopes/StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Sharding/OpRule.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Import/StackPieces.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

bool isRowSlice(Operation *op) {
  auto slice = dyn_cast<hlo::SliceOp>(op);
  if (!slice || slice.getType().getRank() == 0)
    return false;
  ArrayRef<int64_t> from = slice.getOperand().getType().getShape();
  ArrayRef<int64_t> shape = slice.getType().getShape();
  return slice.getStrides().front() == 1 && shape.front() < from.front() &&
         shape.drop_front() == from.drop_front();
}

std::optional<SmallVector<SmallVector<Value>>>
alignedPieces(Value value, const StackCut &cut) {
  auto whole = value.getDefiningOp<hlo::ConcatenateOp>();
  if (!whole || whole.getDimension() != 0)
    return std::nullopt;
  SmallVector<SmallVector<Value>> pieces(cut.size());
  size_t index = 0;
  int64_t at = 0;
  for (Value operand : whole->getOperands()) {
    int64_t end = at + cast<RankedTensorType>(operand.getType()).getDimSize(0);
    while (index < cut.size() && cut[index].end <= at)
      ++index;
    if (index == cut.size() || end > cut[index].end)
      return std::nullopt;
    pieces[index].push_back(operand);
    at = end;
  }
  if (at != cut.back().end)
    return std::nullopt;
  return pieces;
}

std::optional<size_t> paddedPiece(Value value, const StackCut &cut) {
  auto pad = value.getDefiningOp<hlo::PadOp>();
  if (!pad || pad.getType().getRank() == 0 ||
      !matchPattern(pad.getPaddingValue(), m_Constant()))
    return std::nullopt;
  auto isZero = [](ArrayRef<int64_t> list) {
    return llvm::all_of(list, [](int64_t size) { return size == 0; });
  };
  int64_t begin = pad.getEdgePaddingLow().front();
  int64_t end = pad.getType().getDimSize(0) - pad.getEdgePaddingHigh().front();
  if (!isZero(pad.getEdgePaddingLow().drop_front()) ||
      !isZero(pad.getEdgePaddingHigh().drop_front()) ||
      !isZero(pad.getInteriorPadding()))
    return std::nullopt;
  for (auto [index, rows] : llvm::enumerate(cut))
    if (begin >= rows.begin && end <= rows.end)
      return index;
  return std::nullopt;
}

std::optional<RowsOfOp> rowsOfOp(Operation *op, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() == 0 || op->getNumResults() == 0 ||
      isa<hlo::ConstantOp>(op))
    return std::nullopt;
  // Counts rows.
  if (auto iota = dyn_cast<hlo::IotaOp>(op);
      iota && iota.getIotaDimension() == 0)
    return std::nullopt;
  std::optional<OpRule> rule = getOpRule(op);
  if (!rule)
    return std::nullopt;
  DimPiece rows{0, type.getDimSize(0), 1};
  std::optional<SubFactor> factor;
  auto find = [&](auto values, ArrayRef<DimFactors> dims) {
    for (auto [other, factors] : llvm::zip_equal(values, dims))
      if (other == value && !factor)
        factor = findSubFactor(*rule, factors, rows);
  };
  find(op->getOperands(), rule->operands);
  find(op->getResults(), rule->results);
  if (!factor || rule->factors[factor->factor].extent != rows.extent)
    return std::nullopt;

  RowsOfOp found;
  auto mark = [&](auto values, ArrayRef<DimFactors> dims,
                  SmallVector<bool> &marks) {
    for (auto [other, factors] : llvm::zip_equal(values, dims)) {
      std::optional<DimPiece> piece = findPiece(*rule, factors, *factor);
      marks.push_back(piece.has_value());
      if (piece ? !(*piece == rows) ||
                      cast<RankedTensorType>(other.getType()).getDimSize(0) !=
                          rows.extent
                : other == value)
        return false;
    }
    return true;
  };
  if (!mark(op->getOperands(), rule->operands, found.operands) ||
      !mark(op->getResults(), rule->results, found.results))
    return std::nullopt;
  const Factor &kind = rule->factors[factor->factor];
  if (kind.kind == FactorKind::Parallel &&
      !llvm::is_contained(found.results, false))
    return found;
  if (kind.kind != FactorKind::Reduction ||
      llvm::is_contained(found.results, true))
    return std::nullopt;
  found.reduction = kind.reduction;
  return found;
}

namespace {

StrategyAttr strategyOf(Operation *op) {
  return op->getAttrOfType<StrategyAttr>(kStrategyAttr);
}

class StackFinder {
public:
  explicit StackFinder(func::FuncOp main)
      : main(main), body(&main.front()), feeds(findFeedback(main)) {
    for (Operation &op : *body)
      if (phaseOf(&op) == Phase::Forward)
        if (StrategyAttr strategy = strategyOf(&op))
          stages.try_emplace(strategy, stages.size());
    findData();
  }

  std::optional<Stack> run(ArrayRef<StackCut> known,
                           llvm::function_ref<bool(const StackCut &)> isApart) {
    SmallVector<Value> values(main.getArguments());
    for (Operation &op : *body)
      llvm::append_range(values, op.getResults());
    std::optional<StackCut> cut;
    for (Value value : values) {
      std::optional<StackCut> own = cutOf(value);
      if (!own || llvm::is_contained(known, *own))
        continue;
      if (!cut && isApart(*own))
        cut = own;
      if (cut == own)
        add(value);
    }
    if (!cut)
      return std::nullopt;
    stack.cut = *cut;
    grow();
    prune();
    for (Value value : members)
      if (comesInPieces(value))
        stack.inPieces.insert(value);
    return std::move(stack);
  }

private:
  /// What depends on the mini-batch: of each micro-batch another value.
  void findData() {
    bool hasBatch = false;
    for (BlockArgument argument : main.getArguments())
      hasBatch |= isBatch(argument);
    bool hasState = llvm::any_of(feeds, [](auto &next) { return bool(next); });
    for (BlockArgument argument : main.getArguments())
      if (hasBatch ? isBatch(argument)
                   : hasState && !feeds[argument.getArgNumber()])
        data.insert(argument);
    for (Operation &op : *body) {
      bool isData = false;
      forEachRead(&op, [&](Value value) { isData |= data.contains(value); });
      if (isData)
        data.insert_range(op.getResults());
    }
  }

  bool isBatch(BlockArgument argument) {
    return bool(main.getArgAttr(argument.getArgNumber(), kBatchDimAttr));
  }

  /// The cut between the slices of a value.
  std::optional<StackCut> cutOf(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() == 0)
      return std::nullopt;
    // The first stage that uses the rows, by where they begin.
    std::map<std::pair<int64_t, int64_t>, unsigned> users;
    for (Operation *op : value.getUsers()) {
      if (op->getBlock() != body || !isRowSlice(op))
        continue;
      auto slice = cast<hlo::SliceOp>(op);
      std::pair<int64_t, int64_t> range(slice.getStartIndices().front(),
                                        slice.getLimitIndices().front());
      for (Operation *user : slice->getUsers()) {
        StrategyAttr strategy = strategyOf(body->findAncestorOpInBlock(*user));
        auto stage = stages.find(strategy);
        if (!strategy || stage == stages.end())
          continue;
        auto [it, isNew] = users.try_emplace(range, stage->second);
        it->second = std::min(it->second, stage->second);
      }
    }
    StackCut cut;
    int64_t end = 0;
    for (auto &[range, stage] : users) {
      if (range.first < end)
        return std::nullopt;
      end = range.second;
      StrategyAttr strategy = stages.begin()[stage].first;
      if (!cut.empty() && cut.back().stage == strategy)
        continue;
      if (llvm::any_of(cut, [&](const StackRows &rows) {
            return rows.stage == strategy;
          }))
        return std::nullopt;
      if (!cut.empty())
        cut.back().end = range.first;
      cut.push_back({cut.empty() ? 0 : range.first, 0, strategy});
    }
    if (cut.size() < 2)
      return std::nullopt;
    cut.back().end = type.getDimSize(0);
    return cut;
  }

  void add(Value value) {
    if (members.insert(value).second)
      work.push_back(value);
  }

  /// Goes from values to the operations that make and use them, and on to what
  /// these have the same rows of.
  void grow() {
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        addArgument(argument);
      } else if (!comesInPieces(value)) {
        visit(value.getDefiningOp(), value);
      }
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (user == body->getTerminator()) {
          for (auto [argument, next] : llvm::enumerate(feeds))
            if (next == use.getOperandNumber())
              add(main.getArgument(argument));
        } else if (user->getBlock() == body) {
          visit(user, value);
        }
      }
    }
  }

  void addArgument(BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    if (data.contains(argument) || getStackPiece(main.getArgAttrDict(number)))
      return;
    stack.arguments.insert(argument);
    if (std::optional<unsigned> next = feeds[number])
      add(body->getTerminator()->getOperand(*next));
  }

  void visit(Operation *op, Value value) {
    if (stack.operations.contains(op))
      return;
    std::optional<RowsOfOp> rows = rowsOfOp(op, value);
    if (!rows || !mayDivide(op, *rows))
      return;
    for (auto [operand, isMember] :
         llvm::zip_equal(op->getOperands(), rows->operands))
      if (isMember)
        add(operand);
    for (auto [result, isMember] :
         llvm::zip_equal(op->getResults(), rows->results))
      if (isMember)
        add(result);
    stack.operations.insert({op, std::move(*rows)});
  }

  /// Before the optimizer, stages only wait for one another along the pipeline:
  /// what a piece is computed from must be there in its stage.
  bool mayDivide(Operation *op, const RowsOfOp &rows) {
    if (phaseOf(op) == Phase::Apply)
      return true;
    for (auto [operand, isMember] :
         llvm::zip_equal(op->getOperands(), rows.operands))
      if (data.contains(operand) &&
          (!isMember || rows.reduction || phaseOf(op) == Phase::Forward))
        return false;
    return true;
  }

  /// Whether the rows of each stage are made apart.
  bool isDivided(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return stack.arguments.contains(argument);
    return stack.operations.contains(value.getDefiningOp()) ||
           comesInPieces(value);
  }

  /// Whether it is put together from rows of the stages.
  bool comesInPieces(Value value) {
    auto isOf = [&](Value rows, StrategyAttr stage) {
      Operation *producer = rows.getDefiningOp();
      return !data.contains(rows) ||
             (producer && strategyOf(producer) == stage);
    };
    if (std::optional<size_t> piece = paddedPiece(value, stack.cut))
      return isOf(value.getDefiningOp()->getOperand(0),
                  stack.cut[*piece].stage);
    auto pieces = alignedPieces(value, stack.cut);
    if (!pieces)
      return false;
    for (auto [rows, own] : llvm::zip_equal(stack.cut, *pieces))
      for (Value piece : own)
        if (!isOf(piece, rows.stage))
          return false;
    return true;
  }

  void prune() {
    for (bool hasChanged = true; hasChanged;) {
      size_t before = stack.arguments.size() + stack.operations.size();
      stack.operations.remove_if([&](auto &entry) {
        auto &[op, rows] = entry;
        if (phaseOf(op) == Phase::Apply)
          return false;
        for (auto [operand, isMember] :
             llvm::zip_equal(op->getOperands(), rows.operands))
          if (isMember && data.contains(operand) && !isDivided(operand))
            return true;
        return false;
      });
      stack.arguments.remove_if([&](BlockArgument argument) {
        std::optional<unsigned> next = feeds[argument.getArgNumber()];
        return next && !isDivided(body->getTerminator()->getOperand(*next));
      });
      hasChanged = before != stack.arguments.size() + stack.operations.size();
    }
  }

  func::FuncOp main;
  Block *body;
  SmallVector<std::optional<unsigned>> feeds;
  /// In the order of their first forward operation.
  llvm::MapVector<StrategyAttr, unsigned> stages;
  llvm::DenseSet<Value> data, members;
  SmallVector<Value> work;
  Stack stack;
};

} // namespace

std::optional<Stack>
findStack(func::FuncOp main, ArrayRef<StackCut> known,
          llvm::function_ref<bool(const StackCut &)> isApart) {
  return StackFinder(main).run(known, isApart);
}

} // namespace whale
