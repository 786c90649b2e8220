//===- ScatterRuns.cpp - Scatter of updates that can be combined ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the items of a scatter, in the order of where they go, and runs of them
// of one length. Out: two kernels.
//
// - A thread walks a run: what goes to an element whose first item is in the
//   run is combined with the element, what is left of one that began in an
//   earlier run is kept.
// - A thread combines an element whose items are in several runs with what is
//   left of it, run after run.
//
// Each has a thread for each run and element of the free dimensions. The first
// reads each item once; a thread of the second finds the last run of an element
// by halves, and reads one value of each.
//
//===----------------------------------------------------------------------===//

#include "Gpu/ScatterBlocks.h"
#include "Kernel/KernelWork.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "whale/Transforms/OpCost.h"
#include <numeric>

using namespace mlir;
using namespace whale;

/// What a thread of walkRuns knows of its run.
struct ScatterBlocks::Run {
  ValueRange number; // Of the run, and of the element of the free dimensions.
  Value begin, last;
  Value isContinued; // The first element began in an earlier run.
};

/// The sum with the item, the next item's key, whether that is the first one of
/// an element, and whether one of this run is; `now` has the same of the item
/// before.
SmallVector<Value> ScatterBlocks::walkItem(KernelBuilder &k, const Run &run,
                                           Value item, ArrayRef<Value> now) {
  unsigned keyBuffer = 2 * count, results = keyBuffer + 2;
  auto isEqual = [&](Value lhs, Value rhs) {
    return k.compare(arith::CmpIPredicate::eq, lhs, rhs);
  };
  auto both = [&](Value lhs, Value rhs) {
    return arith::AndIOp::create(k.b, loc, lhs, rhs).getResult();
  };
  ArrayRef<Value> old = now.take_front(count);
  Value key = now[count], isFirst = now[count + 1], owns = now[count + 2];
  Values at(dims.updates.getRank());
  decode(k, run.number[1], freeDims, at);
  decode(k, loadKey(k, keyBuffer + 1, item), itemDims, at);
  Values update = load(k, count, at);
  Value isThere = k.inside(key, dims.operand.getNumElements());
  Value place = addFree(k, key, at);
  auto base = scf::IfOp::create(k.b, loc, ValueRange(old).getTypes(),
                                both(isFirst, isThere),
                                /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(base.thenBlock());
    scf::YieldOp::create(k.b, loc, load(k, results, place));
    k.b.setInsertionPointToStart(base.elseBlock());
    scf::YieldOp::create(k.b, loc, old);
  }
  // What is left of an element begins with an update.
  Value isRest = both(isEqual(item, run.begin), run.isContinued);
  Values sum;
  for (auto [first, whole] :
       llvm::zip_equal(update, combine(k, Values(base.getResults()), update)))
    sum.push_back(arith::SelectOp::create(k.b, loc, isRest, first, whole));
  Value nextItem = arith::MinUIOp::create(k.b, loc, k.add(item, k.index(1)),
                                          k.index(items - 1));
  Value nextKey = loadKey(k, keyBuffer, nextItem);
  Value isEnd = k.compare(arith::CmpIPredicate::ne, nextKey, key);
  Value isDone = arith::OrIOp::create(k.b, loc, isEnd, isEqual(item, run.last));
  k.when(both(isDone, isThere), [&] {
    auto branch = scf::IfOp::create(k.b, loc, owns, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    store(k, results, place, sum);
    k.b.setInsertionPointToStart(branch.elseBlock());
    store(k, results + count, run.number, sum);
  });
  Values next(sum);
  next.append({nextKey, isEnd,
               arith::OrIOp::create(k.b, loc, isEnd, owns).getResult()});
  return next;
}

/// The results but for what is left of elements that began in earlier runs, and
/// this, by run and element of the free dimensions.
FailureOr<SmallVector<Value>> ScatterBlocks::walkRuns(Value keys, Value order) {
  Values all(inputs);
  llvm::append_range(all, updates);
  all.append({keys, order});
  SmallVector<Type> resultTypes(types);
  for (Type type : types)
    resultTypes.push_back(
        RankedTensorType::get({runs, width}, getElementTypeOrSelf(type)));
  unsigned keyBuffer = 2 * count;
  auto build = [&](KernelBuilder &k) {
    flatten(k, keyBuffer + 2);
    k.parallel({runs, width}, [&](ValueRange number) {
      Run run{number, k.mul(number[0], k.index(runItems)), {}, {}};
      Value end = arith::MinUIOp::create(
          k.b, loc, k.add(run.begin, k.index(runItems)), k.index(items));
      run.last = arith::SubIOp::create(k.b, loc, end, k.index(1));
      // Items beyond the first and the last have the key of that one: whether
      // there are any is asked for apart.
      Value key = loadKey(k, keyBuffer, run.begin);
      Value before = loadKey(k, keyBuffer, findPrevious(k, run.begin));
      run.isContinued = arith::AndIOp::create(
          k.b, loc, k.compare(arith::CmpIPredicate::ne, run.begin, k.index(0)),
          k.compare(arith::CmpIPredicate::eq, before, key));
      Value isOwn = arith::XOrIOp::create(
          k.b, loc, run.isContinued,
          arith::ConstantOp::create(k.b, loc, k.b.getBoolAttr(true)));
      // What is carried to the first item is not used.
      Values carried;
      for (Type type : types)
        carried.push_back(makeZero(k.b, loc, getElementTypeOrSelf(type)));
      carried.append({key, isOwn, isOwn});
      auto loop =
          scf::ForOp::create(k.b, loc, run.begin, end, k.index(1), carried);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      scf::YieldOp::create(k.b, loc,
                           walkItem(k, run, loop.getInductionVar(),
                                    Values(loop.getRegionIterArgs())));
    });
    return success(good);
  };
  auto kernel =
      makeKernel(rewriter, loc, /*blocks=*/true, resultTypes, all, build);
  if (failed(kernel))
    return failure();
  SmallVector<int64_t> updated(2 * count, -1);
  std::iota(updated.begin(), updated.begin() + count, 0);
  kernel->setUpdates(updated);
  noteWork(*kernel, op);
  return Values(kernel->getResults());
}

/// The results with what is left of elements in runs after that where they
/// began.
FailureOr<SmallVector<Value>> ScatterBlocks::joinRuns(ArrayRef<Value> results,
                                                      ArrayRef<Value> rests,
                                                      Value keys) {
  Values all(results);
  llvm::append_range(all, rests);
  all.push_back(keys);
  unsigned keyBuffer = 2 * count, outputs = keyBuffer + 1;
  auto build = [&](KernelBuilder &k) {
    flatten(k, outputs);
    k.parallel({runs - 1, width}, [&](ValueRange number) {
      Value run = number[0], free = number[1];
      Value begin = k.mul(run, k.index(runItems));
      Value next = k.add(begin, k.index(runItems));
      Values at(dims.updates.getRank());
      decode(k, free, freeDims, at);
      auto keyAt = [&](Value item) { return loadKey(k, keyBuffer, item); };
      // Only whole runs have one behind them.
      Value key = keyAt(arith::SubIOp::create(k.b, loc, next, k.index(1)));
      Value before = findPrevious(k, begin);
      Value isFirst = arith::OrIOp::create(
          k.b, loc, k.compare(arith::CmpIPredicate::eq, run, k.index(0)),
          k.compare(arith::CmpIPredicate::ne, keyAt(before), key));
      Value goesOn = arith::AndIOp::create(
          k.b, loc, isFirst,
          k.compare(arith::CmpIPredicate::eq, keyAt(next), key));
      goesOn = arith::AndIOp::create(
          k.b, loc, goesOn, k.inside(key, dims.operand.getNumElements()));
      k.when(goesOn, [&] {
        Value place = addFree(k, key, at);
        Value start = k.add(run, k.index(1));
        Value end = findEnd(k, start, k.index(runs), runs, [&](Value other) {
          return keyAt(k.mul(other, k.index(runItems)));
        });
        auto loop = scf::ForOp::create(k.b, loc, start, end, k.index(1),
                                       load(k, outputs, place));
        {
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToStart(loop.getBody());
          scf::YieldOp::create(
              k.b, loc,
              combine(k, Values(loop.getRegionIterArgs()),
                      load(k, count, {loop.getInductionVar(), free})));
        }
        store(k, outputs, place, Values(loop.getResults()));
      });
    });
    return success(good);
  };
  return updateResults(all, multiplyCosts(runs, width), build);
}

LogicalResult ScatterBlocks::runSorted() {
  FailureOr<Values> sorted = sortItems();
  if (failed(sorted))
    return failure();
  FailureOr<Values> walked = walkRuns((*sorted)[0], (*sorted)[1]);
  if (failed(walked))
    return failure();
  ArrayRef<Value> results = ArrayRef(*walked).take_front(count);
  FailureOr<Values> joined = Values(results);
  if (runs > 1)
    joined =
        joinRuns(results, ArrayRef(*walked).drop_front(count), (*sorted)[0]);
  if (failed(joined))
    return failure();
  replaceWithStored(rewriter, op, *joined);
  return success();
}
