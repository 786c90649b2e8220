//===- Windows.cpp - Windows over tensors ---------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels of reduce_window, select_and_scatter and convolutions share.
// All but getBlockLoops emit code into a kernel.
//
// Padding is not in memory: findPlace gives the position of a window's element
// in the input and a condition, whether there is such an element. A dimension
// without padding, stride or dilation whose window has size 1 needs no
// condition.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Windows.h"
#include "Kernel/SumOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace whale;

bool whale::isReversed(stablehlo::ConvolutionOp op) {
  auto reversal = op.getWindowReversal();
  return reversal && llvm::is_contained(*reversal, true);
}

SmallVector<WindowDim> whale::getReducedWindow(stablehlo::ReduceWindowOp op) {
  SmallVector<WindowDim> window = getWindow(op, op.getWindowDimensions());
  if (auto dilations = op.getBaseDilations())
    for (auto [dim, dilation] : llvm::enumerate(*dilations))
      window[dim].baseDilation = dilation;
  if (auto dilations = op.getWindowDilations())
    for (auto [dim, dilation] : llvm::enumerate(*dilations))
      window[dim].dilation = dilation;
  return window;
}

void Place::add(KernelBuilder &k, const WindowDim &w, int64_t size,
                Value output, Value offset) {
  auto require = [&](Value condition) {
    inside =
        inside
            ? arith::AndIOp::create(k.b, k.loc, inside, condition).getResult()
            : condition;
  };
  Value index = k.mul(output, k.index(w.stride));
  index = k.add(index, k.mul(offset, k.index(w.dilation)));
  index = k.add(index, k.index(-w.low));
  if (!w.isTrivial())
    require(k.inside(index, (size - 1) * w.baseDilation + 1));
  if (w.baseDilation > 1) {
    Value dilation = k.index(w.baseDilation);
    Value rest = arith::RemUIOp::create(k.b, k.loc, index, dilation);
    require(k.compare(arith::CmpIPredicate::eq, rest, k.index(0)));
    index = arith::DivUIOp::create(k.b, k.loc, index, dilation);
  }
  indices.push_back(index);
}

Place whale::findPlace(KernelBuilder &k, ArrayRef<WindowDim> window,
                       ArrayRef<int64_t> shape, ValueRange output,
                       ValueRange offset) {
  Place place;
  for (auto [dim, w] : llvm::enumerate(window))
    place.add(k, w, shape[dim], output[dim], offset[dim]);
  if (!place.inside)
    place.inside = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  return place;
}

SmallVector<Value>
whale::carryNest(KernelBuilder &k, ArrayRef<int64_t> sizes, ValueRange initial,
                 function_ref<SmallVector<Value>(ValueRange, ValueRange)> body,
                 SmallVector<Value> counters) {
  if (counters.size() == sizes.size())
    return body(counters, initial);
  auto loop =
      scf::ForOp::create(k.b, k.loc, k.index(0),
                         k.index(sizes[counters.size()]), k.index(1), initial);
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    counters.push_back(loop.getInductionVar());
    SmallVector<Value> next =
        carryNest(k, sizes, loop.getRegionIterArgs(), body, counters);
    scf::YieldOp::create(k.b, k.loc, next);
  }
  return SmallVector<Value>(loop.getResults());
}

SmallVector<BlockLoop> whale::getBlockLoops(ArrayRef<int64_t> sizes) {
  SmallVector<BlockLoop> loops;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (size == 1)
      continue;
    int64_t unit = 1, covered = size;
    while (unit * kSumBlock < size)
      unit *= kSumBlock;
    for (; unit > 0; unit /= kSumBlock) {
      loops.push_back({dim, unit, covered});
      covered = unit;
    }
  }
  return loops;
}

scf::ForOp whale::makeBlockLoop(KernelBuilder &k, const BlockLoop &level,
                                int64_t size, Value from, ValueRange carried) {
  Value to = k.index(size);
  if (level.covered < size)
    to = arith::MinUIOp::create(k.b, k.loc, to,
                                k.add(from, k.index(level.covered)));
  return scf::ForOp::create(k.b, k.loc, from, to, k.index(level.unit), carried);
}

SmallVector<Value> whale::loadTerms(KernelBuilder &k, WideReducer &reducer,
                                    ValueRange indices,
                                    ArrayRef<Type> elements) {
  SmallVector<Value> terms;
  for (auto [number, element] : llvm::enumerate(elements))
    terms.push_back(reducer.widen(
        k.b, k.loc, k.loadScalar(number, indices, element), number));
  return terms;
}

FailureOr<SmallVector<Value>>
whale::combineTerms(KernelBuilder &k, WideReducer &reducer, ValueRange carried,
                    ValueRange indices, ArrayRef<Type> elements) {
  SmallVector<Value> arguments(carried);
  llvm::append_range(arguments, loadTerms(k, reducer, indices, elements));
  return reducer.emit(k.b, arguments);
}

SmallVector<Value> whale::loadInits(KernelBuilder &k, WideReducer &reducer,
                                    ArrayRef<Type> elements) {
  SmallVector<Value> inits;
  for (auto [number, element] : llvm::enumerate(elements))
    inits.push_back(reducer.widen(
        k.b, k.loc, k.loadScalar(elements.size() + number, {}, element),
        number));
  return inits;
}

void whale::storeResults(KernelBuilder &k, WideReducer &reducer,
                         ValueRange results, ValueRange indices) {
  for (auto [number, result] : llvm::enumerate(results))
    k.store(reducer.narrow(k.b, k.loc, result, number),
            2 * results.size() + number, indices);
}
