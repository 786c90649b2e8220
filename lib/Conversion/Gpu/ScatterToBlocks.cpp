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
// maxima, the last one), the kernels of ScatterRuns.cpp, else those of
// ScatterLinks.cpp.
//
// Nothing is atomic: the order follows from the indices and the shapes. Where
// no two items meet, one kernel takes each alone.
//
// Cost: for n items a sort of at most n * log2(n)^2 comparisons, and 8 or 12
// bytes for the key and the number of each, besides the sort's own. Then each
// update is read once, and each element that is updated is read and written;
// ScatterLinks.cpp has a kernel, with a thread for each item, for each
// kLinkItems items, at most kMostLinks. Where no two items meet there is no
// sort.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Gpu/ScatterBlocks.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SortLines.h"
#include "Kernel/WideReducer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
using namespace whale;

/// Whether each result combines what it has with its update, in any grouping.
static bool isAssociative(stablehlo::ScatterOp op) {
  Block &block = op.getUpdateComputation().front();
  unsigned count = op.getInputs().size();
  for (auto [number, value] :
       llvm::enumerate(block.getTerminator()->getOperands())) {
    Value old = block.getArgument(number);
    Value update = block.getArgument(count + number);
    if (value != update && !isCombined(value, old, update))
      return false;
  }
  return true;
}

ScatterBlocks::ScatterBlocks(PatternRewriter &rewriter, stablehlo::ScatterOp op,
                             const ScatterDims &dims)
    : rewriter(rewriter), op(op), loc(op.getLoc()), dims(dims),
      count(op.getInputs().size()), itemDims(dims.placeDims),
      strides(dims.operand.getRank(), 1) {
  for (auto [window, dim] : llvm::zip_equal(dims.numbers.getUpdateWindowDims(),
                                            dims.operandOfWindow))
    (dims.isMoved(dim) ? itemDims : freeDims).push_back(window);
  for (size_t dim = strides.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * dims.operand.getDimSize(dim);
  items = dims.countItems();
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
    if (dims.isMoved(dim))
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
    if (!dims.isMoved(dim))
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

/// The first number after `start` that has another key, or `end`, which is at
/// most `most` further; keys are in order.
Value ScatterBlocks::findEnd(KernelBuilder &k, Value start, Value end,
                             int64_t most,
                             function_ref<Value(Value)> keyAt) const {
  Value key = keyAt(start);
  auto search = scf::ForOp::create(k.b, loc, k.index(0),
                                   k.index(llvm::Log2_64_Ceil(most) + 1),
                                   k.index(1), ValueRange{start, end});
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(search.getBody());
  // The key of `low` is the same, that of `high` is not.
  Value low = search.getRegionIterArg(0), high = search.getRegionIterArg(1);
  Value middle = arith::ShRUIOp::create(k.b, loc, k.add(low, high), k.index(1));
  Value isSame = k.compare(arith::CmpIPredicate::eq, keyAt(middle), key);
  auto choose = [&](Value yes, Value no) {
    return arith::SelectOp::create(k.b, loc, isSame, yes, no).getResult();
  };
  scf::YieldOp::create(k.b, loc,
                       ValueRange{choose(middle, low), choose(high, middle)});
  // What is loaded says nothing of how far it is.
  k.b.setInsertionPointAfter(search);
  return arith::MinUIOp::create(k.b, loc, search.getResult(1), end);
}

LogicalResult ScatterBlocks::runUnique() {
  Values all(inputs);
  llvm::append_range(all, updates);
  all.push_back(indices);
  auto build = [&](KernelBuilder &k) {
    unsigned results = 2 * count + 1;
    flatten(k, results);
    k.parallel({items, width}, [&](ValueRange number) {
      Values at(dims.updates.getRank());
      decode(k, number[0], itemDims, at);
      decode(k, number[1], freeDims, at);
      Value key = findKey(k, 2 * count, at);
      k.when(k.inside(key, dims.operand.getNumElements()), [&] {
        Value place = addFree(k, key, at);
        store(k, results, place,
              combine(k, load(k, results, place), load(k, count, at)));
      });
    });
    return success(good);
  };
  FailureOr<Values> results = updateResults(all, opFlops(op), build);
  if (failed(results))
    return failure();
  replaceWithStored(rewriter, op, *results);
  return success();
}

/// A kernel whose first operands are the results so far, which it updates.
FailureOr<SmallVector<Value>> ScatterBlocks::updateResults(
    ArrayRef<Value> operands, int64_t flops,
    function_ref<LogicalResult(KernelBuilder &)> body) {
  auto kernel =
      makeKernel(rewriter, loc, /*blocks=*/true, types, operands, body);
  if (failed(kernel))
    return failure();
  kernel->setUpdates(llvm::to_vector(llvm::seq<int64_t>(0, count)));
  noteWork(*kernel, op, flops);
  return Values(kernel->getResults());
}

/// The keys in order, and which item each is of.
FailureOr<SmallVector<Value>> ScatterBlocks::sortItems() {
  // Keys go up to the number of elements.
  bool isSmall = llvm::isInt<32>(dims.operand.getNumElements());
  Type elements[] = {rewriter.getIntegerType(isSmall ? 32 : 64),
                     rewriter.getI32Type()};
  Type sorted[] = {RankedTensorType::get({items}, elements[0]),
                   RankedTensorType::get({items}, elements[1])};
  auto build = [&](KernelBuilder &k) {
    k.share(items, [&](Value item) {
      Values at(dims.updates.getRank(), k.index(0));
      decode(k, item, itemDims, at);
      for (auto [buffer, value] :
           llvm::enumerate(Values{findKey(k, 0, at), item}))
        k.store(arith::IndexCastUIOp::create(k.b, loc, elements[buffer], value),
                1 + buffer, item);
    });
    return success();
  };
  auto kernel =
      makeKernel(rewriter, loc, /*blocks=*/true, sorted, indices, build);
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op, items);
  auto sort = stablehlo::SortOp::create(
      rewriter, loc, TypeRange(sorted), kernel->getResults(),
      rewriter.getI64IntegerAttr(0), rewriter.getBoolAttr(true));
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Type> scalars;
  for (Type element : elements)
    scalars.append(2, RankedTensorType::get({}, element));
  Block *block = rewriter.createBlock(&sort.getComparator(), {}, scalars,
                                      SmallVector<Location>(4, loc));
  Value isLess = stablehlo::CompareOp::create(
      rewriter, loc, block->getArgument(0), block->getArgument(1),
      stablehlo::ComparisonDirection::LT);
  stablehlo::ReturnOp::create(rewriter, loc, isLess);
  rewriter.setInsertionPoint(sort);
  FailureOr<Values> results = makeSortBlocks(rewriter, sort);
  rewriter.eraseOp(sort);
  return results;
}

int64_t whale::getMostItems(stablehlo::ScatterOp op) {
  if (ScatterDims(op).isUnique(op))
    return std::numeric_limits<int64_t>::max();
  return isAssociative(op)
             ? ScatterBlocks::kMostItems * ScatterBlocks::kMostRuns
             : ScatterBlocks::kLinkItems * ScatterBlocks::kMostLinks;
}

std::optional<LogicalResult>
whale::lowerScatterBlocks(PatternRewriter &rewriter, stablehlo::ScatterOp op,
                          const ScatterDims &dims) {
  ScatterBlocks scatter(rewriter, op, dims);
  if (dims.isUnique(op))
    return scatter.runUnique();
  if (dims.countItems() > getMostItems(op))
    return std::nullopt;
  return isAssociative(op) ? scatter.runSorted() : scatter.runLinked();
}
