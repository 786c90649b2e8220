//===- SortToKernel.cpp - Sort --------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stable merge sort of positions with the operation's own comparator, row by
// row.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

struct SortToKernel : OpRewritePattern<stablehlo::SortOp> {
  SortToKernel(MLIRContext *context, bool blocks)
      : OpRewritePattern(context), blocks(blocks) {}

  LogicalResult matchAndRewrite(stablehlo::SortOp op,
                                PatternRewriter &rewriter) const override {
    if (blocks) {
      FailureOr<SmallVector<Value>> results = makeSortBlocks(rewriter, op);
      if (failed(results))
        return failure();
      replaceWithStored(rewriter, op, *results);
      return success();
    }
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    for (Value input : op.getInputs()) {
      inputs.push_back(stored(rewriter, input));
      if (!inputs.back())
        return failure();
      types.push_back(inputs.back().getType());
    }
    auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
    int64_t dim = op.getDimension();
    if (dim < 0)
      dim += type.getRank();
    int64_t rows = type.getNumElements() / type.getDimSize(dim);
    auto kernel =
        makeKernel(rewriter, op.getLoc(), types, inputs, rows,
                   [&](KernelBuilder &k) { return build(k, op, type, dim); });
    if (failed(kernel))
      return failure();
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  static LogicalResult build(KernelBuilder &k, stablehlo::SortOp op,
                             RankedTensorType type, int64_t dim) {
    int64_t size = type.getDimSize(dim);
    size_t count = op.getInputs().size();
    auto positions = MemRefType::get({size}, k.b.getIndexType());
    Value first = memref::AllocOp::create(k.b, k.loc, positions);
    Value second = memref::AllocOp::create(k.b, k.loc, positions);
    bool good = true;
    k.loop(k.begin, k.end, [&](Value row) {
      k.loop(k.index(0), k.index(size), [&](Value i) {
        memref::StoreOp::create(k.b, k.loc, i, first, i);
      });
      // Runs of length 1, 2, 4... are merged from one array into the other.
      unsigned passes = llvm::Log2_64_Ceil(size);
      auto loop =
          scf::ForOp::create(k.b, k.loc, k.index(0), k.index(passes),
                             k.index(1), ValueRange{first, second, k.index(1)});
      {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(loop.getBody());
        ValueRange carried = loop.getRegionIterArgs();
        Value width = carried[2];
        Value step = k.add(width, width);
        auto runs =
            scf::ForOp::create(k.b, k.loc, k.index(0), k.index(size), step);
        {
          OpBuilder::InsertionGuard inner(k.b);
          k.b.setInsertionPointToStart(runs.getBody());
          good &= succeeded(merge(k, op, type, dim, row, carried[0], carried[1],
                                  runs.getInductionVar(), width));
        }
        scf::YieldOp::create(k.b, k.loc,
                             ValueRange{carried[1], carried[0], step});
      }
      Value sorted = loop.getResult(0);
      k.loop(k.index(0), k.index(size), [&](Value i) {
        Value from = memref::LoadOp::create(k.b, k.loc, sorted, i);
        SmallVector<Value> source = locateInLine(k, type, dim, row, from);
        SmallVector<Value> target = locateInLine(k, type, dim, row, i);
        for (size_t number = 0; number < count; ++number)
          k.store(k.load(number, source), count + number, target);
      });
    });
    memref::DeallocOp::create(k.b, k.loc, first);
    memref::DeallocOp::create(k.b, k.loc, second);
    return success(good);
  }

  /// Merges the runs of `width` that start at `start` and behind it. The left
  /// one goes first unless the right one must.
  static LogicalResult merge(KernelBuilder &k, stablehlo::SortOp op,
                             RankedTensorType type, int64_t dim, Value row,
                             Value from, Value to, Value start, Value width) {
    Value size = k.index(type.getDimSize(dim));
    Value middle =
        arith::MinSIOp::create(k.b, k.loc, k.add(start, width), size);
    Value end = arith::MinSIOp::create(k.b, k.loc, k.add(middle, width), size);
    bool good = true;
    auto loop = scf::ForOp::create(k.b, k.loc, start, end, k.index(1),
                                   ValueRange{start, middle});
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    Value left = loop.getRegionIterArgs()[0];
    Value right = loop.getRegionIterArgs()[1];
    Value hasLeft = k.compare(arith::CmpIPredicate::slt, left, middle);
    Value hasRight = k.compare(arith::CmpIPredicate::slt, right, end);
    Value both = arith::AndIOp::create(k.b, k.loc, hasLeft, hasRight);
    auto branch = scf::IfOp::create(k.b, k.loc, k.b.getI1Type(), both,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard inner(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      auto load = [&](Value position) {
        Value source = memref::LoadOp::create(k.b, k.loc, from, position);
        SmallVector<Value> indices = locateInLine(k, type, dim, row, source);
        SmallVector<Value> values;
        for (auto [number, result] : llvm::enumerate(op->getResultTypes()))
          values.push_back(k.loadScalar(number, indices, result));
        return values;
      };
      SmallVector<Value> arguments;
      for (auto [lhs, rhs] : llvm::zip_equal(load(right), load(left)))
        arguments.append({lhs, rhs});
      auto before = emitScalarBlock(k.b, op.getComparator().front(), arguments);
      good = succeeded(before);
      scf::YieldOp::create(k.b, k.loc, good ? (*before)[0] : both);
      k.b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k.b, k.loc, hasRight);
    }
    Value takeRight = branch.getResult(0);
    Value taken = arith::SelectOp::create(k.b, k.loc, takeRight, right, left);
    memref::StoreOp::create(k.b, k.loc,
                            memref::LoadOp::create(k.b, k.loc, from, taken), to,
                            loop.getInductionVar());
    Value one =
        arith::IndexCastUIOp::create(k.b, k.loc, k.b.getIndexType(), takeRight);
    Value nextRight = k.add(right, one);
    Value nextLeft =
        k.add(left, arith::SubIOp::create(k.b, k.loc, k.index(1), one));
    scf::YieldOp::create(k.b, k.loc, ValueRange{nextLeft, nextRight});
    return success(good);
  }

  bool blocks;
};

} // namespace

SmallVector<Value> whale::locateInLine(KernelBuilder &k, RankedTensorType type,
                                       int64_t dim, Value row, Value position) {
  SmallVector<int64_t> others(type.getShape());
  others.erase(others.begin() + dim);
  SmallVector<Value> indices = k.unflatten(row, others);
  indices.insert(indices.begin() + dim, position);
  return indices;
}

void whale::populateSortPatterns(RewritePatternSet &patterns, bool blocks) {
  patterns.add<SortToKernel>(patterns.getContext(), blocks);
}
