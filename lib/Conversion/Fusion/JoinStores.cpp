//===- JoinStores.cpp - Loops that store slices join their source ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a block of linalg operations. Out: fewer of them. A value that a loop (as
// of lax.scan) carries on and also keeps for later is made by one operation and
// stored by others. Those have the same points, so they become further results
// of the one that makes it, or of another that reads the same. Cost: an
// operation that only stores looks for one that it can join among the makers
// and readers of its operands: quadratic in their number, as they are kept in a
// list. A join copies both bodies and looks through all linalg operations of
// the block.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"

#include "LoopNest/LinalgToKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"

using namespace mlir;
using linalg::GenericOp;

/// Beyond these a loop spends its time with addresses.
static constexpr unsigned kMaxOperands = 48;

/// Whether all results are stored in slices and nothing else.
static bool onlyStores(GenericOp op) {
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (!whale::findStore(op, number))
      return false;
  return true;
}

bool whale::isBefore(Value value, Operation *op) {
  Operation *maker = value.getDefiningOp();
  return !maker || maker->getBlock() != op->getBlock() ||
         maker->isBeforeInBlock(op);
}

/// The map of `to` with which it sees `value` element by element: that of a
/// result, or of an input.
static std::optional<AffineMap> getMap(GenericOp to, Value value) {
  if (value.getDefiningOp() == to)
    return to.getIndexingMapMatchingResult(cast<OpResult>(value));
  for (OpOperand *input : to.getDpsInputOperands())
    if (input->get() == value)
      return to.getMatchingIndexingMap(input);
  return {};
}

/// For each loop of `op` the loop of `to` that it is, given a tensor that both
/// see as a whole; loops of size one may be none. Empty if they differ.
static SmallVector<AffineExpr> matchLoops(GenericOp op, AffineMap map,
                                          AffineMap toMap, GenericOp to) {
  if (!toMap.isIdentity())
    return {};
  Builder b(op.getContext());
  SmallVector<AffineExpr> loops(map.getNumDims());
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
      if (loops[loop.getPosition()])
        return {};
      loops[loop.getPosition()] = b.getAffineDimExpr(dim);
    } else if (to.getStaticLoopRanges()[dim] != 1) {
      return {};
    }
  }
  for (auto [loop, size] : llvm::zip_equal(loops, op.getStaticLoopRanges())) {
    if (!loop && size != 1)
      return {};
    if (!loop)
      loop = b.getAffineConstantExpr(0);
  }
  return loops;
}

GenericOp whale::joinOperations(RewriterBase &rewriter, GenericOp to,
                                GenericOp op, ArrayRef<AffineExpr> loops) {
  AffineMap change =
      AffineMap::get(to.getNumLoops(), 0, loops, rewriter.getContext());
  SmallVector<Value> inputs(to.getInputs()), outs(to.getOutputs());
  SmallVector<AffineMap> maps, outMaps;
  for (OpOperand *input : to.getDpsInputOperands())
    maps.push_back(to.getMatchingIndexingMap(input));
  for (OpOperand &init : to.getDpsInitsMutable())
    outMaps.push_back(to.getMatchingIndexingMap(&init));
  // By input of `op` which input of the new operation it becomes, if any.
  SmallVector<unsigned> places;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input).compose(change);
    unsigned place = 0;
    while (place < inputs.size() &&
           (inputs[place] != input->get() || maps[place] != map))
      ++place;
    places.push_back(place);
    if (place == inputs.size() && input->get().getDefiningOp() != to) {
      inputs.push_back(input->get());
      maps.push_back(map);
    }
  }
  rewriter.setInsertionPoint(to);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto type = cast<RankedTensorType>(init.get().getType());
    outs.push_back(op.payloadUsesValueFromOperand(&init)
                       ? init.get()
                       : tensor::EmptyOp::create(rewriter, op.getLoc(),
                                                 type.getShape(),
                                                 type.getElementType()));
    outMaps.push_back(op.getMatchingIndexingMap(&init).compose(change));
  }
  maps.append(outMaps);
  AffineMap same = rewriter.getMultiDimIdentityMap(to.getNumLoops());
  SmallVector<Type> types(to->getResultTypes());
  llvm::append_range(types, op->getResultTypes());
  auto joined = GenericOp::create(
      rewriter, rewriter.getFusedLoc({to.getLoc(), op.getLoc()}), types, inputs,
      outs, maps, to.getIteratorTypesArray(),
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        ValueRange accumulated = arguments.drop_front(inputs.size());
        SmallVector<Value> yielded;
        IRMapping first, second;
        first.map(to.getRegionInputArgs(),
                  arguments.take_front(to.getNumDpsInputs()));
        first.map(to.getRegionOutputArgs(),
                  accumulated.take_front(to.getNumDpsInits()));
        whale::inlineBody(b, to, same.getResults(), first, yielded);
        for (auto [number, input] : llvm::enumerate(op.getDpsInputOperands()))
          second.map(
              op.getRegionInputArgs()[number],
              input->get().getDefiningOp() == to
                  ? yielded[cast<OpResult>(input->get()).getResultNumber()]
                  : arguments[places[number]]);
        second.map(op.getRegionOutputArgs(),
                   accumulated.take_back(op.getNumDpsInits()));
        whale::inlineBody(b, op, loops, second, yielded);
        linalg::YieldOp::create(b, loc, yielded);
      });
  rewriter.replaceOp(to, joined.getResults().take_front(to->getNumResults()));
  rewriter.replaceOp(op, joined.getResults().take_back(op->getNumResults()));
  return joined;
}

/// The operation that `op` can join, with how their loops correspond: of those
/// that make or read one of its operands, the last.
static GenericOp findHost(GenericOp op, SmallVectorImpl<AffineExpr> &loops) {
  SmallVector<GenericOp> candidates;
  auto consider = [&](Operation *other) {
    auto generic = dyn_cast_or_null<GenericOp>(other);
    if (generic && generic != op && generic->getBlock() == op->getBlock() &&
        generic->isBeforeInBlock(op) && whale::isParallel(generic) &&
        !llvm::is_contained(candidates, generic))
      candidates.push_back(generic);
  };
  for (Value input : op.getInputs()) {
    consider(input.getDefiningOp());
    for (Operation *user : input.getUsers())
      consider(user);
  }
  llvm::sort(candidates,
             [](GenericOp a, GenericOp b) { return b->isBeforeInBlock(a); });
  llvm::SetVector<Value> captured = whale::getCaptures(op.getRegion());
  llvm::SetVector<Value> needed = captured;
  needed.insert_range(op.getInputs());
  auto canStore = [&](GenericOp to) {
    for (unsigned number = 0; number < op->getNumResults(); ++number)
      if (!whale::canStoreAt(whale::findStore(op, number), to))
        return false;
    return true;
  };
  for (GenericOp to : candidates) {
    if (to->getNumOperands() + op->getNumOperands() > kMaxOperands ||
        !llvm::all_of(needed,
                      [&](Value value) {
                        return value.getDefiningOp() == to ||
                               whale::isBefore(value, to);
                      }) ||
        !canStore(to))
      continue;
    // All that `op` reads of `to` it must see at the same point.
    bool same = true;
    loops.clear();
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<AffineMap> toMap = getMap(to, input->get());
      bool made = input->get().getDefiningOp() == to;
      if (!toMap || (!made && !loops.empty()))
        continue;
      SmallVector<AffineExpr> found =
          matchLoops(op, op.getMatchingIndexingMap(input), *toMap, to);
      if (loops.empty())
        loops = found;
      same &= !made || (!found.empty() && found == loops);
    }
    // A tensor that is captured is read at any point.
    same &= llvm::none_of(
        captured, [&](Value value) { return value.getDefiningOp() == to; });
    if (same && !loops.empty())
      return to;
  }
  return {};
}

void whale::joinStores(RewriterBase &rewriter, Block &block) {
  SmallVector<GenericOp> generics(block.getOps<GenericOp>());
  for (GenericOp op : generics) {
    SmallVector<AffineExpr> loops;
    if (!whale::isParallel(op) || !onlyStores(op))
      continue;
    if (GenericOp to = findHost(op, loops)) {
      GenericOp joined = whale::joinOperations(rewriter, to, op, loops);
      llvm::replace(generics, to, joined);
    }
  }
}
