//===- SortToKernel.cpp - Sort --------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a sort. Out: on a processor a kernel, by a stable merge sort of positions
// with the operation's own comparator. Each one-dimensional slice along the
// sorted dimension is sorted by one thread, which merges neighbouring runs of
// 1, 2, 4 ... positions and in the end copies the elements. (For a GPU:
// SortToBlocks.cpp.)
//
// Cost: n * log2(n) comparisons for a slice of n elements, which are read where
// they are in the operands; a call of the kernel allocates two arrays of n
// positions.
//
//===----------------------------------------------------------------------===//

#include "Sort.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

SortLines::SortLines(PatternRewriter &rewriter, stablehlo::SortOp op)
    : rewriter(rewriter), op(op), loc(op.getLoc()),
      type(cast<RankedTensorType>(op.getInputs()[0].getType())),
      dim(op.getDimension() < 0 ? op.getDimension() + type.getRank()
                                : op.getDimension()),
      size(type.getDimSize(dim)), rows(type.getNumElements() / size) {
  for (Value input : op.getInputs()) {
    inputs.push_back(stored(rewriter, input));
    types.push_back(getStorageType(cast<RankedTensorType>(input.getType())));
  }
}

SmallVector<Value> SortLines::locate(KernelBuilder &k, Value row,
                                     Value position) const {
  SmallVector<int64_t> others(type.getShape());
  others.erase(others.begin() + dim);
  SmallVector<Value> indices = k.unflatten(row, others);
  indices.insert(indices.begin() + dim, position);
  return indices;
}

Value SortLines::isBefore(KernelBuilder &k, Value row, Value right,
                          Value left) {
  SmallVector<Value> arguments;
  SmallVector<Value> from = locate(k, row, right), to = locate(k, row, left);
  for (auto [number, result] : llvm::enumerate(op->getResultTypes())) {
    arguments.push_back(k.loadScalar(number, from, result));
    arguments.push_back(k.loadScalar(number, to, result));
  }
  auto before = emitScalarBlock(k.b, op.getComparator().front(), arguments);
  good &= succeeded(before);
  if (good)
    return (*before)[0];
  return arith::ConstantOp::create(k.b, loc, k.b.getBoolAttr(false));
}

Value SortLines::takesRight(KernelBuilder &k, Value row, Value hasRight,
                            Value hasLeft, function_ref<Value()> getRight,
                            function_ref<Value()> getLeft) {
  Value both = arith::AndIOp::create(k.b, loc, hasLeft, hasRight);
  auto branch = scf::IfOp::create(k.b, loc, k.b.getI1Type(), both,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  Value right = getRight(), left = getLeft();
  scf::YieldOp::create(k.b, loc, isBefore(k, row, right, left));
  k.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(k.b, loc, hasRight);
  return branch.getResult(0);
}

void SortLines::move(KernelBuilder &k, Value row, Value position, Value place,
                     unsigned firstResult) {
  SmallVector<Value> from = locate(k, row, position);
  SmallVector<Value> to = locate(k, row, place);
  for (size_t number = 0; number < types.size(); ++number)
    k.store(k.load(number, from), firstResult + number, to);
}

//===----------------------------------------------------------------------===//
// A processor's kernel
//===----------------------------------------------------------------------===//

namespace {

class SortLoops : public SortLines {
public:
  using SortLines::SortLines;

  FailureOr<SmallVector<Value>> run() {
    auto kernel = makeKernel(rewriter, loc, /*blocks=*/false, types, inputs,
                             [&](KernelBuilder &k) { return build(k); });
    if (failed(kernel))
      return failure();
    return SmallVector<Value>(kernel->getResults());
  }

private:
  LogicalResult build(KernelBuilder &k) {
    auto positions = MemRefType::get({size}, k.b.getIndexType());
    Value first = memref::AllocOp::create(k.b, loc, positions);
    Value second = memref::AllocOp::create(k.b, loc, positions);
    k.share(rows, [&](Value row) {
      k.loop(k.index(0), k.index(size),
             [&](Value i) { memref::StoreOp::create(k.b, loc, i, first, i); });
      Value sorted = sortLine(k, row, first, second);
      k.loop(k.index(0), k.index(size), [&](Value i) {
        move(k, row, memref::LoadOp::create(k.b, loc, sorted, i), i,
             inputs.size());
      });
    });
    memref::DeallocOp::create(k.b, loc, first);
    memref::DeallocOp::create(k.b, loc, second);
    return success(good);
  }

  /// Merges runs of length 1, 2, 4... from one array into the other, and
  /// returns the last one.
  Value sortLine(KernelBuilder &k, Value row, Value first, Value second) {
    auto loop = scf::ForOp::create(
        k.b, loc, k.index(0), k.index(llvm::Log2_64_Ceil(size)), k.index(1),
        ValueRange{first, second, k.index(1)});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value from = loop.getRegionIterArg(0), to = loop.getRegionIterArg(1);
    Value width = loop.getRegionIterArg(2);
    Value step = k.add(width, width);
    auto runs = scf::ForOp::create(k.b, loc, k.index(0), k.index(size), step);
    scf::YieldOp::create(k.b, loc, ValueRange{to, from, step});
    k.b.setInsertionPointToStart(runs.getBody());
    merge(k, row, from, to, runs.getInductionVar(), width);
    return loop.getResult(0);
  }

  /// Merges the runs of `width` that start at `start` and after it.
  void merge(KernelBuilder &k, Value row, Value from, Value to, Value start,
             Value width) {
    Value most = k.index(size);
    Value middle = arith::MinSIOp::create(k.b, loc, k.add(start, width), most);
    Value end = arith::MinSIOp::create(k.b, loc, k.add(middle, width), most);
    auto loop = scf::ForOp::create(k.b, loc, start, end, k.index(1),
                                   ValueRange{start, middle});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value left = loop.getRegionIterArg(0), right = loop.getRegionIterArg(1);
    auto load = [&](Value place) -> Value {
      return memref::LoadOp::create(k.b, loc, from, place);
    };
    Value hasLeft = k.compare(arith::CmpIPredicate::slt, left, middle);
    Value hasRight = k.compare(arith::CmpIPredicate::slt, right, end);
    Value isRight = takesRight(
        k, row, hasRight, hasLeft, [&] { return load(right); },
        [&] { return load(left); });
    Value taken = arith::SelectOp::create(k.b, loc, isRight, right, left);
    memref::StoreOp::create(k.b, loc, load(taken), to, loop.getInductionVar());
    Value one =
        arith::IndexCastUIOp::create(k.b, loc, k.b.getIndexType(), isRight);
    Value nextLeft =
        k.add(left, arith::SubIOp::create(k.b, loc, k.index(1), one));
    scf::YieldOp::create(k.b, loc, ValueRange{nextLeft, k.add(right, one)});
  }
};

struct SortToKernel : OpRewritePattern<stablehlo::SortOp> {
  SortToKernel(MLIRContext *context, bool blocks)
      : OpRewritePattern(context), blocks(blocks) {}

  LogicalResult matchAndRewrite(stablehlo::SortOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> results =
        blocks ? makeSortBlocks(rewriter, op) : SortLoops(rewriter, op).run();
    if (failed(results))
      return failure();
    replaceWithStored(rewriter, op, *results);
    return success();
  }

  bool blocks;
};

} // namespace

void whale::populateSortPatterns(RewritePatternSet &patterns, bool blocks) {
  patterns.add<SortToKernel>(patterns.getContext(), blocks);
}
