//===- SortToBlocks.cpp - Sort for blocks of threads ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU's form of a sort: a stable merge sort of positions with the
// operation's own comparator. In: a stablehlo.sort. Out: kernels whose threads
// each find one element of a merged run, by a binary search for how many of the
// elements before it are of the left run.
//
// - A block of threads sorts parts of at most kPart elements of a line, or
//   several short lines, in shared memory.
// - Where lines are longer, each further kernel merges runs of twice the length
//   from a tensor of positions to another one; the last one writes the sorted
//   values.
//
// Cost: log2(line) steps, in each of which a thread compares log2(run) times. A
// comparator that is a strict weak order gives the bits of the processor's
// sort; with any other one, too, each result is an element of its line.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/SortLines.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

/// Elements that a block sorts: two arrays of positions take 8 KiB.
static constexpr int64_t kPart = 1024;
static constexpr int64_t kMinThreads = 32, kMaxThreads = 256;

namespace {

class SortBlocks : public SortLines {
public:
  SortBlocks(PatternRewriter &rewriter, stablehlo::SortOp op)
      : SortLines(rewriter, op),
        part(std::min<int64_t>(llvm::PowerOf2Ceil(size), kPart)) {}

  FailureOr<SmallVector<Value>> run();

private:
  using Load = function_ref<Value(Value)>;

  /// How blocks of threads take the parts of all lines.
  struct Cut {
    int64_t perLine, parts, perBlock, places, threads;
  };
  /// A place of a block, and where it is in its part and line.
  struct Element {
    Value place, inside, row, first, length, isThere;
  };

  void overPlaces(KernelBuilder &k, const Cut &cut, Value block,
                  function_ref<void(const Element &)> body);
  void sortBlock(KernelBuilder &k, const Cut &cut, Value block, bool isLast);
  FailureOr<SmallVector<Value>> sortParts(bool isLast);
  FailureOr<SmallVector<Value>> mergeRuns(Value positions, int64_t width,
                                          bool isLast);
  SmallVector<Type> getResults(bool isLast) const;
  /// Of one that makes runs twice as long.
  int64_t flopsOfPass() const {
    return opFlops(op) / std::max(1u, llvm::Log2_64_Ceil(size));
  }

  Value select(KernelBuilder &k, Value row, Value place, Value length,
               Value width, int64_t most, Load load);
  void finish(KernelBuilder &k, Value row, Value place, Value position,
              size_t firstResult, bool isLast);

  /// What a block sorts of a line: a power of two.
  int64_t part;
};

Value toIndex(KernelBuilder &k, Value position) {
  return arith::IndexCastUIOp::create(k.b, k.loc, k.b.getIndexType(), position);
}

Value toPosition(KernelBuilder &k, Value index) {
  return arith::IndexCastUIOp::create(k.b, k.loc, k.b.getI32Type(), index);
}

Value subtract(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::SubIOp::create(k.b, k.loc, lhs, rhs);
}

/// What `most` or, by the sign, `least` limits.
Value clamp(KernelBuilder &k, Value value, Value least, Value most) {
  Value raised = arith::MaxSIOp::create(k.b, k.loc, value, least);
  return arith::MinSIOp::create(k.b, k.loc, raised, most);
}

} // namespace

/// The position of the element that comes to `place` when the runs of `width`,
/// a power of two up to `most`, of a part of `length` elements are merged;
/// `load` gives the position that is at a place now.
Value SortBlocks::select(KernelBuilder &k, Value row, Value place, Value length,
                         Value width, int64_t most, Load load) {
  Value one = k.index(1), zero = k.index(0);
  Value mask = subtract(k, k.add(width, width), one);
  Value number = arith::AndIOp::create(k.b, k.loc, place, mask);
  Value left = subtract(k, place, number);
  Value right = k.add(left, width);
  Value lefts = clamp(k, subtract(k, length, left), zero, width);
  Value rights = clamp(k, subtract(k, length, right), zero, width);
  // Of the `number` elements before it, between `low` and `high` are left ones.
  Value low =
      arith::MaxSIOp::create(k.b, k.loc, subtract(k, number, rights), zero);
  Value high = arith::MinSIOp::create(k.b, k.loc, number, lefts);
  auto search = scf::ForOp::create(k.b, k.loc, zero,
                                   k.index(llvm::Log2_64_Ceil(most) + 1), one,
                                   ValueRange{low, high});
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(search.getBody());
    Value low = search.getRegionIterArg(0), high = search.getRegionIterArg(1);
    auto branch =
        scf::IfOp::create(k.b, k.loc, TypeRange{low.getType(), low.getType()},
                          k.compare(arith::CmpIPredicate::slt, low, high),
                          /*withElseRegion=*/true);
    scf::YieldOp::create(k.b, k.loc, branch.getResults());
    k.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k.b, k.loc, ValueRange{low, high});
    k.b.setInsertionPointToStart(branch.thenBlock());
    Value middle =
        arith::ShRUIOp::create(k.b, k.loc, k.add(low, high), k.index(1));
    Value other = subtract(k, subtract(k, number, middle), k.index(1));
    Value before =
        isBefore(k, row, load(k.add(right, other)), load(k.add(left, middle)));
    auto choose = [&](Value yes, Value no) {
      return arith::SelectOp::create(k.b, k.loc, before, yes, no).getResult();
    };
    scf::YieldOp::create(k.b, k.loc,
                         ValueRange{choose(low, k.add(middle, k.index(1))),
                                    choose(middle, high)});
  }
  Value numLeft = search.getResult(0);
  Value numRight = subtract(k, number, numLeft);
  Value leftPlace = k.add(left, numLeft), rightPlace = k.add(right, numRight);
  Value hasLeft = k.compare(arith::CmpIPredicate::slt, numLeft, lefts);
  Value hasRight = k.compare(arith::CmpIPredicate::slt, numRight, rights);
  Value isRight = takesRight(
      k, row, hasRight, hasLeft, [&] { return load(rightPlace); },
      [&] { return load(leftPlace); });
  return load(
      arith::SelectOp::create(k.b, k.loc, isRight, rightPlace, leftPlace));
}

SmallVector<Type> SortBlocks::getResults(bool isLast) const {
  if (isLast)
    return types;
  return {RankedTensorType::get({rows, size}, rewriter.getI32Type())};
}

/// Writes the values at `position` to `place`, or what the position is.
void SortBlocks::finish(KernelBuilder &k, Value row, Value place,
                        Value position, size_t firstResult, bool isLast) {
  if (isLast)
    move(k, row, position, place, firstResult);
  else
    k.store(toPosition(k, position), firstResult, {row, place});
}

/// Runs the body for the places of a block, thread by thread.
void SortBlocks::overPlaces(KernelBuilder &k, const Cut &cut, Value block,
                            function_ref<void(const Element &)> body) {
  Value thread = gpu::ThreadIdOp::create(k.b, loc, gpu::Dimension::x);
  auto loop = scf::ForOp::create(k.b, loc, thread, k.index(cut.places),
                                 k.index(cut.threads));
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  Element element;
  element.place = loop.getInductionVar();
  SmallVector<Value> at = k.unflatten(element.place, {cut.perBlock, part});
  element.inside = at[1];
  Value number = k.add(k.mul(block, k.index(cut.perBlock)), at[0]);
  at = k.unflatten(number, {rows, cut.perLine});
  element.row = at[0];
  element.first = k.mul(at[1], k.index(part));
  element.length = arith::MinUIOp::create(
      k.b, loc, subtract(k, k.index(size), element.first), k.index(part));
  Value isInside =
      k.compare(arith::CmpIPredicate::ult, element.inside, element.length);
  element.isThere =
      arith::AndIOp::create(k.b, loc, isInside, k.inside(number, cut.parts));
  body(element);
}

/// Sorts the parts of a block in shared memory.
void SortBlocks::sortBlock(KernelBuilder &k, const Cut &cut, Value block,
                           bool isLast) {
  // Runs are merged from one half into the other.
  Value shared = allocateShared(k.b, loc, 2 * cut.places, k.b.getI32Type());
  auto load = [&](Value place) {
    return toIndex(k, memref::LoadOp::create(k.b, loc, shared, place));
  };
  auto store = [&](Value position, Value place) {
    memref::StoreOp::create(k.b, loc, toPosition(k, position), shared, place);
  };
  overPlaces(k, cut, block, [&](const Element &element) {
    store(k.add(element.first, element.inside), element.place);
  });
  auto passes = scf::ForOp::create(
      k.b, loc, k.index(0), k.index(llvm::Log2_64(part)), k.index(1),
      ValueRange{k.index(0), k.index(cut.places), k.index(1)});
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(passes.getBody());
    Value from = passes.getRegionIterArg(0), to = passes.getRegionIterArg(1);
    Value width = passes.getRegionIterArg(2);
    gpu::BarrierOp::create(k.b, loc);
    overPlaces(k, cut, block, [&](const Element &element) {
      k.when(element.isThere, [&] {
        Value base = k.add(from, subtract(k, element.place, element.inside));
        store(select(k, element.row, element.inside, element.length, width,
                     part / 2, [&](Value at) { return load(k.add(base, at)); }),
              k.add(to, element.place));
      });
    });
    scf::YieldOp::create(k.b, loc, ValueRange{to, from, k.add(width, width)});
  }
  // Each thread wrote what it reads now.
  overPlaces(k, cut, block, [&](const Element &element) {
    k.when(element.isThere, [&] {
      finish(k, element.row, k.add(element.first, element.inside),
             load(k.add(passes.getResult(0), element.place)), inputs.size(),
             isLast);
    });
  });
}

/// A kernel whose blocks sort the parts of the lines.
FailureOr<SmallVector<Value>> SortBlocks::sortParts(bool isLast) {
  Cut cut;
  cut.perLine = llvm::divideCeil(size, part);
  cut.parts = rows * cut.perLine;
  // A block takes several of them if they are short.
  cut.perBlock = std::min<int64_t>(std::max<int64_t>(kMaxThreads / part, 1),
                                   llvm::PowerOf2Ceil(cut.parts));
  cut.places = cut.perBlock * part;
  cut.threads = std::clamp(cut.places, kMinThreads, kMaxThreads);
  auto build = [&](KernelBuilder &k) {
    k.share(llvm::divideCeil(cut.parts, cut.perBlock),
            [&](Value block) { sortBlock(k, cut, block, isLast); });
    return success(good);
  };
  auto kernel = makeKernel(rewriter, loc, /*blocks=*/true, getResults(isLast),
                           inputs, build);
  if (failed(kernel))
    return failure();
  (*kernel)->setAttr(kThreadsAttrName, rewriter.getI64IntegerAttr(cut.threads));
  noteWork(*kernel, op, multiplyCosts(flopsOfPass(), llvm::Log2_64_Ceil(part)));
  return SmallVector<Value>(kernel->getResults());
}

/// A kernel whose threads each find one element of the merged runs.
FailureOr<SmallVector<Value>>
SortBlocks::mergeRuns(Value positions, int64_t width, bool isLast) {
  SmallVector<Value> all(inputs);
  all.push_back(positions);
  auto build = [&](KernelBuilder &k) {
    k.parallel({rows, size}, [&](ValueRange element) {
      Value row = element[0], place = element[1];
      Value chosen = select(
          k, row, place, k.index(size), k.index(width), width, [&](Value at) {
            // Whatever is there, what is read with it is of the line.
            return arith::MinUIOp::create(
                       k.b, loc, toIndex(k, k.load(inputs.size(), {row, at})),
                       k.index(size - 1))
                .getResult();
          });
      finish(k, row, place, chosen, all.size(), isLast);
    });
    return success(good);
  };
  auto kernel = makeKernel(rewriter, loc, /*blocks=*/true, getResults(isLast),
                           all, build);
  if (failed(kernel))
    return failure();
  noteWork(*kernel, op, flopsOfPass());
  return SmallVector<Value>(kernel->getResults());
}

FailureOr<SmallVector<Value>> SortBlocks::run() {
  if (!llvm::isInt<32>(size) || llvm::is_contained(inputs, Value()))
    return failure();
  if (size == 1)
    return inputs;
  FailureOr<SmallVector<Value>> results = sortParts(part >= size);
  for (int64_t width = part; succeeded(results) && width < size; width *= 2)
    results = mergeRuns((*results)[0], width, 2 * width >= size);
  return results;
}

FailureOr<SmallVector<Value>> whale::makeSortBlocks(PatternRewriter &rewriter,
                                                    stablehlo::SortOp op) {
  return SortBlocks(rewriter, op).run();
}
