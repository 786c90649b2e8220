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

#include "ScatterBlocks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace whale;

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
  unsigned keyBuffer = 2 * count, results = keyBuffer + 2;
  unsigned rests = results + count;
  auto build = [&](KernelBuilder &k) {
    flatten(k, results);
    auto isEqual = [&](Value lhs, Value rhs) {
      return k.compare(arith::CmpIPredicate::eq, lhs, rhs);
    };
    auto choose = [&](Value condition, ValueRange yes, ValueRange no) {
      Values chosen;
      for (auto [a, b] : llvm::zip_equal(yes, no))
        chosen.push_back(arith::SelectOp::create(k.b, loc, condition, a, b));
      return chosen;
    };
    k.parallel({runs, width}, [&](ValueRange number) {
      Value run = number[0], free = number[1];
      Value begin = k.mul(run, k.index(runItems));
      Value end = arith::MinUIOp::create(
          k.b, loc, k.add(begin, k.index(runItems)), k.index(items));
      Value last = arith::SubIOp::create(k.b, loc, end, k.index(1));
      Values at(dims.updates.getRank());
      decode(k, free, freeDims, at);
      auto loadUpdate = [&](Value item) {
        decode(k, loadKey(k, keyBuffer + 1, item), itemDims, at);
        return load(k, count, at);
      };
      // Items beyond the first and the last have the key of that one: whether
      // there are any is asked for apart.
      Value before = findPrevious(k, begin);
      Value isContinued = arith::AndIOp::create(
          k.b, loc, k.compare(arith::CmpIPredicate::ne, begin, k.index(0)),
          isEqual(loadKey(k, keyBuffer, before), loadKey(k, keyBuffer, begin)));
      Value isOwn = arith::XOrIOp::create(
          k.b, loc, isContinued,
          arith::ConstantOp::create(k.b, loc, k.b.getBoolAttr(true)));
      // What is carried to the first item is not used.
      Values carried;
      for (Type type : types)
        carried.push_back(makeZero(k.b, loc, getElementTypeOrSelf(type)));
      carried.append({loadKey(k, keyBuffer, begin), isOwn, isOwn});
      auto loop = scf::ForOp::create(k.b, loc, begin, end, k.index(1), carried);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      Value item = loop.getInductionVar();
      Values now(loop.getRegionIterArgs());
      // The key, whether it is the first item of it, whether one of this run
      // is.
      Value key = now[count], isFirst = now[count + 1], owns = now[count + 2];
      ArrayRef<Value> old = ArrayRef(now).take_front(count);
      Values update = loadUpdate(item);
      Value isThere = k.inside(key, dims.operand.getNumElements());
      Value place = addFree(k, key, at);
      auto base =
          scf::IfOp::create(k.b, loc, ValueRange(old).getTypes(),
                            arith::AndIOp::create(k.b, loc, isFirst, isThere),
                            /*withElseRegion=*/true);
      {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(base.thenBlock());
        scf::YieldOp::create(k.b, loc, load(k, results, place));
        k.b.setInsertionPointToStart(base.elseBlock());
        scf::YieldOp::create(k.b, loc, old);
      }
      // What is left of an element begins with an update.
      Value isRest =
          arith::AndIOp::create(k.b, loc, isEqual(item, begin), isContinued);
      Values sum =
          choose(isRest, update, combine(k, Values(base.getResults()), update));
      Value nextItem = arith::MinUIOp::create(k.b, loc, k.add(item, k.index(1)),
                                              k.index(items - 1));
      Value nextKey = loadKey(k, keyBuffer, nextItem);
      Value isEnd = k.compare(arith::CmpIPredicate::ne, nextKey, key);
      Value isDone = arith::OrIOp::create(k.b, loc, isEnd, isEqual(item, last));
      k.when(arith::AndIOp::create(k.b, loc, isDone, isThere), [&] {
        auto branch =
            scf::IfOp::create(k.b, loc, owns, /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(branch.thenBlock());
        store(k, results, place, sum);
        k.b.setInsertionPointToStart(branch.elseBlock());
        store(k, rests, number, sum);
      });
      Values next(sum);
      next.append({nextKey, isEnd,
                   arith::OrIOp::create(k.b, loc, isEnd, owns).getResult()});
      scf::YieldOp::create(k.b, loc, next);
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
  return updateResults(all, build);
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
