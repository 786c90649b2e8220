//===- ScatterLinks.cpp - Scatter by several operations -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the items of a scatter, in the order of where they go. What several
// operations make of an element and its update cannot be combined before the
// element is there. Out: kernels of which the first takes the first kLinkItems
// items of each element, one after the other, the second the next ones, and so
// on, as many as one element that all items go to needs. Each has a thread for
// each item that may be the first one of an element.
//
//===----------------------------------------------------------------------===//

#include "Gpu/ScatterBlocks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
using namespace whale;

/// The results with items number `link` * kLinkItems and on of each element. A
/// thread for each item that may be the first one of an element.
FailureOr<SmallVector<Value>> ScatterBlocks::takeLink(int64_t link,
                                                      ArrayRef<Value> results,
                                                      Value keys, Value order) {
  int64_t before = link * kLinkItems;
  Values all(results);
  llvm::append_range(all, updates);
  all.append({keys, order});
  unsigned keyBuffer = 2 * count, outputs = keyBuffer + 2;
  auto build = [&](KernelBuilder &k) {
    flatten(k, outputs);
    k.parallel({items - before, width}, [&](ValueRange number) {
      Value item = number[0], free = number[1];
      Value start = k.add(item, k.index(before));
      Value key = loadKey(k, keyBuffer, item);
      Value isFirst = arith::OrIOp::create(
          k.b, loc, k.compare(arith::CmpIPredicate::eq, item, k.index(0)),
          k.compare(arith::CmpIPredicate::ne,
                    loadKey(k, keyBuffer, findPrevious(k, item)), key));
      Value hasLink = k.compare(arith::CmpIPredicate::eq,
                                loadKey(k, keyBuffer, start), key);
      Value isThere = k.inside(key, dims.operand.getNumElements());
      isThere = arith::AndIOp::create(
          k.b, loc, isThere,
          arith::AndIOp::create(k.b, loc, isFirst, hasLink).getResult());
      k.when(isThere, [&] {
        Values at(dims.updates.getRank());
        decode(k, free, freeDims, at);
        Value place = addFree(k, key, at);
        Value most = arith::MinUIOp::create(
            k.b, loc, k.add(start, k.index(kLinkItems)), k.index(items));
        Value end = findEnd(k, start, most, kLinkItems, [&](Value item) {
          return loadKey(k, keyBuffer, item);
        });
        auto loop = scf::ForOp::create(k.b, loc, start, end, k.index(1),
                                       load(k, outputs, place));
        {
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToStart(loop.getBody());
          decode(k, loadKey(k, keyBuffer + 1, loop.getInductionVar()), itemDims,
                 at);
          scf::YieldOp::create(
              k.b, loc,
              combine(k, Values(loop.getRegionIterArgs()), load(k, count, at)));
        }
        store(k, outputs, place, Values(loop.getResults()));
      });
    });
    return success(good);
  };
  return updateResults(all, multiplyCosts(std::min(items, kLinkItems), width),
                       build);
}

LogicalResult ScatterBlocks::runLinked() {
  FailureOr<Values> sorted = sortItems();
  if (failed(sorted))
    return failure();
  Values results(inputs);
  for (int64_t link = 0; link * kLinkItems < items; ++link) {
    FailureOr<Values> next =
        takeLink(link, results, (*sorted)[0], (*sorted)[1]);
    if (failed(next))
      return failure();
    results = *next;
  }
  replaceWithStored(rewriter, op, results);
  return success();
}
