//===- RecomputeRows.cpp - Long rows that are not kept --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of a kernel of rows for a GPU, of which a row is too long
// to be kept from one to the next. Out: the same operations, but what they
// alone need of each element of a row is computed by each that reads it. What
// is one value for a row stays.
//
// A softmax reads its operand for the maximum, for the sum of exponentials and
// for the quotients, and computes the exponentials twice: less memory is moved
// than if they were stored, and a block of threads that reads its row again
// finds it in the second-level cache.
//
// Cost: an operation has the body of each of those that it takes in once, what
// is the same in several is merged.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"
#include "Fusion/FuseRows.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "whale/Dialect/Whale/IR/Reads.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// The loops of the operation that makes what `read` reads, by those of the
/// reader; nothing if they are not loops of the reader or constant zero.
static std::optional<SmallVector<AffineExpr>> findLoops(OpOperand &read) {
  auto reader = cast<GenericOp>(read.getOwner());
  auto made = cast<OpResult>(read.get());
  auto maker = cast<GenericOp>(made.getOwner());
  AffineExpr zero = getAffineConstantExpr(0, maker.getContext());
  SmallVector<AffineExpr> loops(maker.getNumLoops());
  for (auto [to, from] :
       llvm::zip_equal(maker.getIndexingMapMatchingResult(made).getResults(),
                       reader.getMatchingIndexingMap(&read).getResults())) {
    if (!isa<AffineDimExpr>(from) && from != zero)
      return {};
    if (to == zero && from == zero)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(to);
    if (!dim || loops[dim.getPosition()])
      return {};
    loops[dim.getPosition()] = from;
  }
  // The extent of each of the reader's loops must follow from an operand that
  // it will read.
  for (auto [dim, loop] : llvm::enumerate(loops))
    if (!loop || llvm::none_of(maker.getDpsInputOperands(), [&](auto *input) {
          return maker.getMatchingIndexingMap(input).isFunctionOfDim(dim);
        }))
      return {};
  return loops;
}

/// Whether a value of the body follows from what the operation reads alone, not
/// from what it accumulates.
static bool isPointwise(GenericOp op, Value yielded) {
  llvm::SmallPtrSet<Value, 32> needed = {yielded};
  for (Operation &inner : llvm::reverse(op.getRegion().front()))
    if (llvm::any_of(inner.getResults(),
                     [&](Value made) { return needed.contains(made); }))
      forEachRead(&inner, [&](Value value) { needed.insert(value); });
  return llvm::none_of(op.getRegionOutputArgs(),
                       [&](Value out) { return needed.contains(out); });
}

bool whale::canRecompute(ArrayRef<GenericOp> members, ArrayRef<int64_t> rows) {
  auto canBeTaken = [&](OpOperand *read) {
    auto made = dyn_cast<OpResult>(read->get());
    if (!made || !isLocalLine(made, members, rows))
      return true;
    auto maker = cast<GenericOp>(made.getOwner());
    Operation *end = maker.getRegion().front().getTerminator();
    return findLoops(*read).has_value() &&
           isPointwise(maker, end->getOperand(made.getResultNumber()));
  };
  return llvm::all_of(members, [&](GenericOp op) {
    return llvm::all_of(op.getDpsInputOperands(), canBeTaken);
  });
}

/// The reader with the body of the operation that makes what `read` reads.
static GenericOp takeIn(RewriterBase &rewriter, OpOperand &read) {
  auto op = cast<GenericOp>(read.getOwner());
  auto made = cast<OpResult>(read.get());
  auto maker = cast<GenericOp>(made.getOwner());
  SmallVector<AffineExpr> loops = *findLoops(read);
  AffineMap change =
      AffineMap::get(op.getNumLoops(), 0, loops, op.getContext());
  AffineMap same = rewriter.getMultiDimIdentityMap(op.getNumLoops());
  SmallVector<Value> inputs(op.getInputs());
  llvm::append_range(inputs, maker.getInputs());
  inputs.erase(inputs.begin() + read.getOperandNumber());
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input != &read)
      maps.push_back(op.getMatchingIndexingMap(input));
  for (OpOperand *input : maker.getDpsInputOperands())
    maps.push_back(maker.getMatchingIndexingMap(input).compose(change));
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  rewriter.setInsertionPoint(op);
  auto taken = GenericOp::create(
      rewriter, rewriter.getFusedLoc({maker.getLoc(), op.getLoc()}),
      op.getResultTypes(), inputs, op.getOutputs(), maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        SmallVector<Value> making, yielded;
        IRMapping first, second;
        first.map(maker.getRegionInputArgs(),
                  arguments.drop_front(op.getNumDpsInputs() - 1)
                      .take_front(maker.getNumDpsInputs()));
        inlineBody(b, maker, loops, first, making);
        unsigned next = 0;
        for (auto [number, argument] : llvm::enumerate(op.getRegionInputArgs()))
          second.map(argument, number == read.getOperandNumber()
                                   ? making[made.getResultNumber()]
                                   : arguments[next++]);
        second.map(op.getRegionOutputArgs(),
                   arguments.take_back(op.getNumDpsInits()));
        inlineBody(b, op, same.getResults(), second, yielded);
        linalg::YieldOp::create(b, loc, yielded);
      });
  // What the maker accumulates has come, too, but for its arguments.
  for (Operation &inner :
       llvm::make_early_inc_range(llvm::reverse(taken.getRegion().front())))
    if (isOpTriviallyDead(&inner))
      rewriter.eraseOp(&inner);
  rewriter.replaceOp(op, taken.getResults());
  return taken;
}

SmallVector<GenericOp> whale::recomputeLines(RewriterBase &rewriter,
                                             ArrayRef<GenericOp> members,
                                             ArrayRef<int64_t> rows) {
  SmallVector<GenericOp> result(members);
  DominanceInfo dominance;
  for (GenericOp &op : result) {
    auto isKept = [&](OpOperand *input) {
      return isLocalLine(input->get(), result, rows);
    };
    while (true) {
      SmallVector<OpOperand *> inputs = op.getDpsInputOperands();
      auto read = llvm::find_if(inputs, isKept);
      if (read == inputs.end())
        break;
      op = mergeInputs(rewriter, takeIn(rewriter, **read));
      eliminateCommonSubExpressions(rewriter, dominance, op);
    }
  }
  for (GenericOp &op : llvm::reverse(result)) {
    op = dropUnusedResults(rewriter, op);
    if (op->use_empty()) {
      rewriter.eraseOp(op);
      op = {};
    }
  }
  llvm::erase(result, GenericOp());
  return result;
}
