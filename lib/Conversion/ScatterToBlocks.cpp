//===- ScatterToBlocks.cpp - Scatter for threads --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a scatter with many updates. In: the operation. An item is
// an update's element but for the dimensions of its window that no index moves,
// the free ones: these are computed side by side. Out:
//
// - a kernel that finds the key of each item: where it goes, the free
//   dimensions at 0, or beyond all elements if it is dropped;
// - a stable sort of the items' numbers by key;
//
// and, where updates can be combined with one another first (sums, products,
// maxima, the last one):
//
// - a kernel whose threads walk a run of sorted items: what goes to an element
//   whose first item is in the run is combined with the element, what is left
//   of one that began in an earlier run is kept;
// - a kernel that combines elements whose items are in several runs with what
//   is left of them, run after run;
//
// else, for what several operations make of an element and its update, kernels
// of which the first takes the first kLinkItems items of each element, one
// after the other, the second the next ones, and so on.
//
// Nothing is atomic: the order follows from the indices and the shapes. Where
// indices are said to be unique, one kernel takes each item alone.
//
//===----------------------------------------------------------------------===//

#include "Scatter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Items of a run, and runs that a thread may have to combine.
static constexpr int64_t kItems = 64, kMostItems = 4096, kMostRuns = 2048;
/// Items of an element that one kernel takes where they cannot be combined
/// first, and such kernels.
static constexpr int64_t kLinkItems = 4000, kMostLinks = 64;

/// Whether each result combines what it has with its update, in any grouping.
static bool isAssociative(stablehlo::ScatterOp op) {
  Block &block = op.getUpdateComputation().front();
  unsigned count = op.getInputs().size();
  for (auto [number, value] :
       llvm::enumerate(block.getTerminator()->getOperands())) {
    Value old = block.getArgument(number);
    Value update = block.getArgument(count + number);
    if (value == update)
      continue;
    Operation *inner = value.getDefiningOp();
    if (!isa_and_nonnull<stablehlo::AddOp, stablehlo::MulOp, stablehlo::MinOp,
                         stablehlo::MaxOp, stablehlo::AndOp, stablehlo::OrOp,
                         stablehlo::XorOp>(inner) ||
        !((inner->getOperand(0) == old && inner->getOperand(1) == update) ||
          (inner->getOperand(0) == update && inner->getOperand(1) == old)))
      return false;
  }
  return true;
}

namespace {

class ScatterBlocks {
public:
  ScatterBlocks(PatternRewriter &rewriter, stablehlo::ScatterOp op,
                const ScatterDims &dims);
  LogicalResult runUnique();
  LogicalResult runSorted();
  LogicalResult runLinked();
  bool isSortable() const {
    return runItems <= kMostItems && llvm::isInt<32>(items) &&
           llvm::isInt<31>(dims.operand.getNumElements());
  }
  bool isLinkable() const { return items <= kLinkItems * kMostLinks; }

private:
  using Values = SmallVector<Value>;

  /// Dimensions that a number counts through, the last one the fastest.
  void decode(KernelBuilder &k, Value number, ArrayRef<int64_t> over,
              MutableArrayRef<Value> at) const;
  Value findPrevious(KernelBuilder &k, Value item) const;
  Value findKey(KernelBuilder &k, unsigned indices, ArrayRef<Value> at) const;
  Value addFree(KernelBuilder &k, Value key, ArrayRef<Value> at) const;
  Values load(KernelBuilder &k, unsigned first, ValueRange indices);
  void store(KernelBuilder &k, unsigned first, ValueRange indices,
             ArrayRef<Value> values);
  Values combine(KernelBuilder &k, ArrayRef<Value> old, ArrayRef<Value> update);
  void flatten(KernelBuilder &k, unsigned first);
  Value loadKey(KernelBuilder &k, unsigned keys, Value item) const;
  FailureOr<Values> sortItems();
  FailureOr<Values> walkRuns(Value keys, Value order);
  FailureOr<Values> joinRuns(ArrayRef<Value> results, ArrayRef<Value> rests,
                             Value keys);
  Value findEnd(KernelBuilder &k, unsigned keys, Value start) const;
  FailureOr<Values> takeLink(int64_t link, ArrayRef<Value> results, Value keys,
                             Value order);

  PatternRewriter &rewriter;
  stablehlo::ScatterOp op;
  Location loc;
  const ScatterDims &dims;
  unsigned count;
  /// Dimensions of the updates.
  SmallVector<int64_t> itemDims, freeDims;
  SmallVector<int64_t> strides; // Of the operand.
  int64_t items = 1, width = 1, runItems, runs;
  Values inputs, updates;
  Value indices;
  SmallVector<Type> types;
  bool good = true;
};

} // namespace

ScatterBlocks::ScatterBlocks(PatternRewriter &rewriter, stablehlo::ScatterOp op,
                             const ScatterDims &dims)
    : rewriter(rewriter), op(op), loc(op.getLoc()), dims(dims),
      count(op.getInputs().size()), itemDims(dims.placeDims),
      strides(dims.operand.getRank(), 1) {
  for (auto [window, dim] : llvm::zip_equal(dims.numbers.getUpdateWindowDims(),
                                            dims.operandOfWindow))
    (dims.isIndexed(dim) ? itemDims : freeDims).push_back(window);
  for (size_t dim = strides.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * dims.operand.getDimSize(dim);
  for (int64_t dim : itemDims)
    items *= dims.updates.getDimSize(dim);
  for (int64_t dim : freeDims)
    width *= dims.updates.getDimSize(dim);
  runItems = std::max<int64_t>(kItems, llvm::divideCeil(items, kMostRuns));
  runs = llvm::divideCeil(items, runItems);
  for (Value input : op.getInputs()) {
    inputs.push_back(stored(rewriter, input));
    types.push_back(inputs.back().getType());
  }
  for (Value update : op.getUpdates())
    updates.push_back(stored(rewriter, update));
  indices = stored(rewriter, op.getScatterIndices());
}

void ScatterBlocks::decode(KernelBuilder &k, Value number,
                           ArrayRef<int64_t> over,
                           MutableArrayRef<Value> at) const {
  SmallVector<int64_t> shape;
  for (int64_t dim : over)
    shape.push_back(dims.updates.getDimSize(dim));
  for (auto [dim, index] : llvm::zip_equal(over, k.unflatten(number, shape)))
    at[dim] = index;
}

/// The item before, of the first one itself.
Value ScatterBlocks::findPrevious(KernelBuilder &k, Value item) const {
  return arith::SubIOp::create(
      k.b, loc, arith::MaxUIOp::create(k.b, loc, item, k.index(1)), k.index(1));
}

/// Where the item at `at` goes: beyond all elements if it is dropped.
Value ScatterBlocks::findKey(KernelBuilder &k, unsigned indices,
                             ArrayRef<Value> at) const {
  Values start;
  Value inside = dims.findStart(k, indices, at, start);
  Value key = k.index(0);
  for (auto [window, dim] : llvm::zip_equal(dims.numbers.getUpdateWindowDims(),
                                            dims.operandOfWindow))
    if (dims.isIndexed(dim))
      start[dim] = k.add(start[dim], at[window]);
  for (auto [dim, place] : llvm::enumerate(start))
    if (place)
      key = k.add(key, k.mul(place, k.index(strides[dim])));
  return arith::SelectOp::create(k.b, loc, inside, key,
                                 k.index(dims.operand.getNumElements()));
}

Value ScatterBlocks::addFree(KernelBuilder &k, Value key,
                             ArrayRef<Value> at) const {
  for (auto [window, dim] : llvm::zip_equal(dims.numbers.getUpdateWindowDims(),
                                            dims.operandOfWindow))
    if (!dims.isIndexed(dim))
      key = k.add(key, k.mul(at[window], k.index(strides[dim])));
  return key;
}

SmallVector<Value> ScatterBlocks::load(KernelBuilder &k, unsigned first,
                                       ValueRange indices) {
  Values values;
  for (unsigned number = 0; number < count; ++number)
    values.push_back(
        k.loadScalar(first + number, indices, op->getResult(number).getType()));
  return values;
}

void ScatterBlocks::store(KernelBuilder &k, unsigned first, ValueRange indices,
                          ArrayRef<Value> values) {
  for (auto [number, value] : llvm::enumerate(values))
    k.store(value, first + number, indices);
}

SmallVector<Value> ScatterBlocks::combine(KernelBuilder &k, ArrayRef<Value> old,
                                          ArrayRef<Value> update) {
  Values arguments(old);
  llvm::append_range(arguments, update);
  auto result =
      emitScalarBlock(k.b, op.getUpdateComputation().front(), arguments);
  good &= succeeded(result);
  return good ? *result : Values(old);
}

/// Lets `count` buffers be seen as one dimension.
void ScatterBlocks::flatten(KernelBuilder &k, unsigned first) {
  for (Value &buffer : MutableArrayRef(k.buffers).slice(first, count))
    buffer = whale::flatten(k.b, loc, buffer);
}

Value ScatterBlocks::loadKey(KernelBuilder &k, unsigned keys,
                             Value item) const {
  return arith::IndexCastUIOp::create(k.b, loc, k.b.getIndexType(),
                                      k.load(keys, item));
}

LogicalResult ScatterBlocks::runUnique() {
  Values all(inputs);
  llvm::append_range(all, updates);
  all.push_back(indices);
  auto build = [&](KernelBuilder &k) {
    unsigned results = 2 * count + 1;
    flatten(k, results);
    k.loop(k.begin, k.end, [&](Value number) {
      Values at(dims.updates.getRank());
      SmallVector<int64_t> over(itemDims);
      llvm::append_range(over, freeDims);
      decode(k, number, over, at);
      Value key = findKey(k, 2 * count, at);
      k.when(k.inside(key, dims.operand.getNumElements()), [&] {
        Value place = addFree(k, key, at);
        store(k, results, place,
              combine(k, load(k, results, place), load(k, count, at)));
      });
    });
    return success(good);
  };
  auto kernel = makeKernel(rewriter, loc, types, all, items * width, build);
  if (failed(kernel))
    return failure();
  kernel->setUpdates(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  replaceWithStored(rewriter, op, kernel->getResults());
  return success();
}

/// The keys in order, and which item each is of.
FailureOr<SmallVector<Value>> ScatterBlocks::sortItems() {
  Type i32 = rewriter.getI32Type();
  auto type = RankedTensorType::get({items}, i32);
  auto build = [&](KernelBuilder &k) {
    k.loop(k.begin, k.end, [&](Value item) {
      Values at(dims.updates.getRank(), k.index(0));
      decode(k, item, itemDims, at);
      for (auto [buffer, value] :
           llvm::enumerate(Values{findKey(k, 0, at), item}))
        k.store(arith::IndexCastUIOp::create(k.b, loc, i32, value), 1 + buffer,
                item);
    });
    return success();
  };
  auto kernel = makeKernel(rewriter, loc, {type, type}, indices, items, build);
  if (failed(kernel))
    return failure();
  auto sort = stablehlo::SortOp::create(
      rewriter, loc, TypeRange{type, type}, kernel->getResults(),
      rewriter.getI64IntegerAttr(0), rewriter.getBoolAttr(true));
  OpBuilder::InsertionGuard guard(rewriter);
  auto scalar = RankedTensorType::get({}, i32);
  Block *block = rewriter.createBlock(&sort.getComparator(), {},
                                      SmallVector<Type>(4, scalar),
                                      SmallVector<Location>(4, loc));
  Value isLess = stablehlo::CompareOp::create(
      rewriter, loc, block->getArgument(0), block->getArgument(1),
      stablehlo::ComparisonDirection::LT);
  stablehlo::ReturnOp::create(rewriter, loc, isLess);
  rewriter.setInsertionPoint(sort);
  FailureOr<Values> sorted = makeSortBlocks(rewriter, sort);
  rewriter.eraseOp(sort);
  return sorted;
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
        RankedTensorType::get({runs * width}, getElementTypeOrSelf(type)));
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
    k.loop(k.begin, k.end, [&](Value number) {
      Value run = arith::DivUIOp::create(k.b, loc, number, k.index(width));
      Value free = arith::RemUIOp::create(k.b, loc, number, k.index(width));
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
      makeKernel(rewriter, loc, resultTypes, all, runs * width, build);
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
    k.loop(k.begin, k.end, [&](Value number) {
      Value run = arith::DivUIOp::create(k.b, loc, number, k.index(width));
      Value free = arith::RemUIOp::create(k.b, loc, number, k.index(width));
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
        auto loop =
            scf::ForOp::create(k.b, loc, k.add(run, k.index(1)), k.index(runs),
                               k.index(1), load(k, outputs, place));
        {
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToStart(loop.getBody());
          Value other = loop.getInductionVar();
          Values old(loop.getRegionIterArgs());
          Value isSame = k.compare(arith::CmpIPredicate::eq,
                                   keyAt(k.mul(other, k.index(runItems))), key);
          auto branch =
              scf::IfOp::create(k.b, loc, ValueRange(old).getTypes(), isSame,
                                /*withElseRegion=*/true);
          scf::YieldOp::create(k.b, loc, branch.getResults());
          k.b.setInsertionPointToStart(branch.elseBlock());
          scf::YieldOp::create(k.b, loc, old);
          k.b.setInsertionPointToStart(branch.thenBlock());
          Value rest = k.add(k.mul(other, k.index(width)), free);
          scf::YieldOp::create(k.b, loc, combine(k, old, load(k, count, rest)));
        }
        store(k, outputs, place, Values(loop.getResults()));
      });
    });
    return success(good);
  };
  auto kernel =
      makeKernel(rewriter, loc, types, all, (runs - 1) * width, build);
  if (failed(kernel))
    return failure();
  kernel->setUpdates(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  return Values(kernel->getResults());
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

/// The first item after `start`, at most kLinkItems further, that has another
/// key.
Value ScatterBlocks::findEnd(KernelBuilder &k, unsigned keys,
                             Value start) const {
  Value high = arith::MinUIOp::create(
      k.b, loc, k.add(start, k.index(kLinkItems)), k.index(items));
  Value key = loadKey(k, keys, start);
  auto search = scf::ForOp::create(k.b, loc, k.index(0),
                                   k.index(llvm::Log2_64_Ceil(kLinkItems) + 1),
                                   k.index(1), ValueRange{start, high});
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(search.getBody());
  // The key of `low` is the same, that of `high` is not.
  Value low = search.getRegionIterArg(0), above = search.getRegionIterArg(1);
  Value middle =
      arith::ShRUIOp::create(k.b, loc, k.add(low, above), k.index(1));
  Value isSame =
      k.compare(arith::CmpIPredicate::eq, loadKey(k, keys, middle), key);
  auto choose = [&](Value yes, Value no) {
    return arith::SelectOp::create(k.b, loc, isSame, yes, no).getResult();
  };
  scf::YieldOp::create(k.b, loc,
                       ValueRange{choose(middle, low), choose(above, middle)});
  return search.getResult(1);
}

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
    k.loop(k.begin, k.end, [&](Value number) {
      Value item = arith::DivUIOp::create(k.b, loc, number, k.index(width));
      Value free = arith::RemUIOp::create(k.b, loc, number, k.index(width));
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
        Value end =
            arith::MinUIOp::create(k.b, loc, findEnd(k, keyBuffer, start),
                                   k.add(start, k.index(kLinkItems)));
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
  auto kernel =
      makeKernel(rewriter, loc, types, all, (items - before) * width, build);
  if (failed(kernel))
    return failure();
  kernel->setUpdates(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  return Values(kernel->getResults());
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

std::optional<LogicalResult>
whale::lowerScatterBlocks(PatternRewriter &rewriter, stablehlo::ScatterOp op,
                          const ScatterDims &dims) {
  ScatterBlocks scatter(rewriter, op, dims);
  if (op.getUniqueIndices())
    return scatter.runUnique();
  if (!scatter.isSortable())
    return std::nullopt;
  if (isAssociative(op))
    return scatter.runSorted();
  if (!scatter.isLinkable())
    return std::nullopt;
  return scatter.runLinked();
}
