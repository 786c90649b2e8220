//===- ReductionToLinalg.cpp - Reductions ---------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: stablehlo.reduce with any body over several operands, and contractions
// that no library computes. Out: linalg operations with reduction loops. What
// is narrower than f32 is accumulated in f32. Where there are more than
// kSumBlock terms and the body is not one operation, whose order loops can
// choose, f32 is accumulated in f64, what has no wider type is reduced as a
// window, in blocks, and a GPU has kernels of its own (ReductionToBlocks.cpp).
//
// Cost: one term, and so one run of the body, for each element that is reduced;
// initial values are written first, and a result that is accumulated in a wider
// type is read and narrowed after, unless these loops are fused. To lower:
// linear in the body, which is cloned once or twice, and quadratic in the rank.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelBuilder.h"
#include "Kernel/SumOrder.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

/// A tensor of `shape` with the scalar `init` everywhere, as it is stored or,
/// if `wanted` is not null, in this type that it is computed in.
static FailureOr<Value> fill(PatternRewriter &rewriter, Location loc,
                             Value init, ArrayRef<int64_t> shape,
                             Type wanted = {}) {
  Type element = getElementTypeOrSelf(init.getType());
  Type storage = wanted ? wanted : getStorageType(element);
  if (!storage || !getStorageType(element))
    return failure();
  Attribute constant = matchSplat(init);
  SmallVector<Input> inputs;
  if (!constant)
    inputs.push_back({stored(rewriter, init),
                      AffineMap::get(shape.size(), 0, rewriter.getContext())});
  auto generic =
      makeParallel(rewriter, loc, shape, storage, inputs,
                   [&](OpBuilder &b, Location,
                       ValueRange values) -> FailureOr<SmallVector<Value>> {
                     Value value = constant
                                       ? makeConstant(b, loc, constant, element)
                                       : values[0];
                     if (wanted)
                       value = convertScalar(b, loc, value, element, wanted);
                     return SmallVector<Value>{value};
                   });
  if (failed(generic))
    return failure();
  return generic->getResult(0);
}

LogicalResult whale::replaceByInits(PatternRewriter &rewriter, Operation *op) {
  SmallVector<Value> filled;
  auto inits = op->getOperands().take_back(op->getNumResults());
  for (auto [init, type] : llvm::zip_equal(inits, op->getResultTypes())) {
    FailureOr<Value> value = fill(rewriter, op->getLoc(), init,
                                  cast<RankedTensorType>(type).getShape());
    if (failed(value))
      return failure();
    filled.push_back(*value);
  }
  replaceWithStored(rewriter, op, filled);
  return success();
}

LogicalResult whale::reduceInLoops(PatternRewriter &rewriter, Operation *op,
                                   WideReducer &reducer, AffineMap from,
                                   AffineMap to,
                                   ArrayRef<utils::IteratorType> iterators,
                                   Input sizes) {
  Location loc = op->getLoc();
  unsigned count = op->getNumResults();
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  SmallVector<Value> inputs, inits;
  SmallVector<Type> types;
  for (unsigned number = 0; number < count; ++number) {
    inputs.push_back(stored(rewriter, op->getOperand(number)));
    Type wanted = reducer.isWide(number) ? reducer.getType(number) : Type();
    FailureOr<Value> filled =
        fill(rewriter, loc, op->getOperand(count + number), shape, wanted);
    if (!inputs.back() || failed(filled))
      return failure();
    inits.push_back(*filled);
    types.push_back(filled->getType());
  }
  SmallVector<AffineMap> maps(count, from);
  if (sizes.tensor) {
    inputs.push_back(sizes.tensor);
    maps.push_back(sizes.map);
  }
  maps.append(count, to);
  bool failedBody = false;
  auto generic = linalg::GenericOp::create(
      rewriter, loc, types, inputs, inits, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        // StableHLO passes what is accumulated first.
        ValueRange carried = arguments.take_back(count);
        SmallVector<Value> ordered(carried);
        for (unsigned number = 0; number < count; ++number)
          ordered.push_back(reducer.widen(b, loc, arguments[number], number));
        auto results = reducer.emit(b, ordered);
        failedBody = failed(results);
        linalg::YieldOp::create(b, loc,
                                failedBody ? carried : ValueRange(*results));
      });
  if (failedBody) {
    rewriter.eraseOp(generic);
    return failure();
  }
  SmallVector<Value> results(generic.getResults());
  for (auto [number, result] : llvm::enumerate(results)) {
    if (!reducer.isWide(number))
      continue;
    Type element = getElementTypeOrSelf(op->getResult(number).getType());
    result = narrowElements(rewriter, loc, result, getStorageType(element),
                            [&](OpBuilder &b, Value value) {
                              return reducer.narrow(b, loc, value, number);
                            });
  }
  replaceWithStored(rewriter, op, results);
  return success();
}

LogicalResult whale::contractInLoops(PatternRewriter &rewriter, Operation *op,
                                     Value lhs, Value rhs,
                                     ArrayRef<AffineMap> maps,
                                     ArrayRef<utils::IteratorType> iterators,
                                     ArrayRef<int64_t> shape) {
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = type.getElementType(), storage = getStorageType(element);
  Type lhsElement = getElementTypeOrSelf(lhs.getType());
  Type rhsElement = getElementTypeOrSelf(rhs.getType());
  lhs = stored(rewriter, lhs);
  rhs = stored(rewriter, rhs);
  if (!lhs || !rhs || !storage)
    return failure();
  Type accumulator = getAccumulatorType(element);
  auto init = makeParallel(
      rewriter, loc, shape, accumulator, {},
      [&](OpBuilder &b, Location, ValueRange) -> FailureOr<SmallVector<Value>> {
        return SmallVector<Value>{makeZero(b, loc, accumulator)};
      });
  auto generic = linalg::GenericOp::create(
      rewriter, loc, RankedTensorType::get(shape, accumulator),
      ValueRange{lhs, rhs}, init->getResults(), maps, iterators,
      [&](OpBuilder &b, Location, ValueRange values) {
        Value x = convertScalar(b, loc, values[0], lhsElement, accumulator);
        Value y = convertScalar(b, loc, values[1], rhsElement, accumulator);
        Value sum = multiplyAdd(b, loc, x, y, values[2]);
        linalg::YieldOp::create(b, loc, sum);
      });
  Value result = generic.getResult(0);
  if (accumulator != storage)
    result = narrowElements(
        rewriter, loc, result, storage, [&](OpBuilder &b, Value value) {
          return convertScalar(b, loc, value, accumulator, element);
        });
  if (shape != type.getShape()) {
    // Reshapes have the program's types.
    RankedTensorType seen = type.clone(shape);
    if (storage != element)
      result = UnrealizedConversionCastOp::create(rewriter, loc, seen, result)
                   .getResult(0);
    rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(op, type, result);
    return success();
  }
  replaceWithStored(rewriter, op, result);
  return success();
}

namespace {

/// Whether numbers are narrower than what they are stored in: each operation on
/// them is then several ones.
bool isPadded(stablehlo::ReduceOp op) {
  return llvm::any_of(op.getResultTypes(), [](Type type) {
    auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    return element &&
           getStoredBits(getStorageType(element)) != element.getWidth();
  });
}

bool hasComplexProduct(stablehlo::ReduceOp op) {
  return llvm::any_of(op.getBody().front(), [](Operation &inner) {
    return isa<stablehlo::MulOp>(inner) &&
           isa<ComplexType>(getElementTypeOrSelf(inner.getResult(0).getType()));
  });
}

/// A window as large as the dimensions that are reduced.
LogicalResult reduceAsWindow(PatternRewriter &rewriter,
                             stablehlo::ReduceOp op) {
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  SmallVector<int64_t> sizes(from.getRank(), 1), shape(from.getShape());
  for (int64_t dim : op.getDimensions())
    std::swap(sizes[dim], shape[dim]);
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(cast<RankedTensorType>(type).clone(shape));
  auto window = stablehlo::ReduceWindowOp::create(
      rewriter, op.getLoc(), types, op.getInputs(), op.getInitValues(), sizes,
      nullptr, nullptr, nullptr, nullptr);
  rewriter.cloneRegionBefore(op.getBody(), window.getBody(),
                             window.getBody().end());
  SmallVector<Value> results;
  for (auto [result, type] :
       llvm::zip_equal(window.getResults(), op.getResultTypes()))
    results.push_back(
        stablehlo::ReshapeOp::create(rewriter, op.getLoc(), type, result));
  rewriter.replaceOp(op, results);
  rewriter.setInsertionPoint(window);
  return lowerReduceWindow(rewriter, window, Target());
}

/// A reduction of dimensions of size one has a term for each result, which is
/// combined with the initial value: no loop carries anything.
LogicalResult reduceOneTerm(PatternRewriter &rewriter, stablehlo::ReduceOp op,
                            WideReducer &reducer) {
  Location loc = op.getLoc();
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  Attribute init = matchSplat(op.getInitValues()[0]);
  Value input = stored(rewriter, op.getInputs()[0]);
  Type storage = getStorageType(type.getElementType());
  if (op.getNumResults() != 1 || !init || !input || !storage)
    return failure();
  SmallVector<AffineExpr> exprs;
  unsigned kept = 0;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    exprs.push_back(llvm::is_contained(op.getDimensions(), dim)
                        ? rewriter.getAffineConstantExpr(0)
                        : rewriter.getAffineDimExpr(kept++));
  auto generic = makeParallel(
      rewriter, loc, type.getShape(), storage,
      {{input, AffineMap::get(kept, 0, exprs, rewriter.getContext())}},
      [&](OpBuilder &b, Location,
          ValueRange values) -> FailureOr<SmallVector<Value>> {
        Value start = makeConstant(b, loc, init, type.getElementType());
        auto results = reducer.emit(b, {reducer.widen(b, loc, start, 0),
                                        reducer.widen(b, loc, values[0], 0)});
        if (failed(results))
          return failure();
        return SmallVector<Value>{reducer.narrow(b, loc, (*results)[0], 0)};
      });
  if (failed(generic))
    return failure();
  replaceWithStored(rewriter, op, generic->getResults());
  return success();
}

struct ReduceToLinalg : OpRewritePattern<stablehlo::ReduceOp> {
  ReduceToLinalg(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
    if (from.getNumElements() == 0)
      return replaceByInits(rewriter, op);
    int64_t terms = 1;
    for (int64_t dim : op.getDimensions())
      terms *= from.getDimSize(dim);
    WideReducer narrow(op.getBody().front(), WideReducer::toF32);
    if (terms == 1 && succeeded(reduceOneTerm(rewriter, op, narrow)))
      return success();
    // What loops do not form in blocks takes a wider type or, without one, is a
    // window that is reduced in blocks. The error of a product grows with each
    // of its terms, and complex ones have more roundings.
    bool wide =
        terms > kSumBlock && (!narrow.isCombiner() || hasComplexProduct(op));
    WideReducer reducer(op.getBody().front(),
                        wide ? WideReducer::toWider : WideReducer::toF32);
    if (target.isGpu() && terms > kSumBlock &&
        (!reducer.isCombiner() || isPadded(op)))
      return lowerReductionBlocks(rewriter, op, reducer);
    if (wide && !reducer.isCombiner() && reducer.roundsTerms())
      return reduceAsWindow(rewriter, op);
    SmallVector<AffineExpr> kept;
    SmallVector<utils::IteratorType> iterators;
    for (int64_t dim = 0; dim < from.getRank(); ++dim) {
      bool reduced = llvm::is_contained(op.getDimensions(), dim);
      iterators.push_back(reduced ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
      if (!reduced)
        kept.push_back(rewriter.getAffineDimExpr(dim));
    }
    return reduceInLoops(
        rewriter, op, reducer, rewriter.getMultiDimIdentityMap(from.getRank()),
        AffineMap::get(from.getRank(), 0, kept, rewriter.getContext()),
        iterators);
  }

  Target target;
};

/// Pattern: a contraction of types that the library does not multiply is a
/// reduction.
struct DotGeneralToLinalg : OpRewritePattern<stablehlo::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::DotGeneralOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto numbers = op.getDotDimensionNumbers();
    Value lhs = op.getLhs(), rhs = op.getRhs();
    // Loops: the dimensions of the result, then the contracted ones.
    unsigned loops =
        type.getRank() + numbers.getLhsContractingDimensions().size();
    auto exprsOf = [&](Value value, ArrayRef<int64_t> batch,
                       ArrayRef<int64_t> contracting, unsigned free) {
      SmallVector<AffineExpr> exprs;
      for (int64_t dim = 0, rank = cast<ShapedType>(value.getType()).getRank();
           dim < rank; ++dim) {
        unsigned loop;
        if (const auto *it = llvm::find(batch, dim); it != batch.end())
          loop = it - batch.begin();
        else if (const auto *it = llvm::find(contracting, dim);
                 it != contracting.end())
          loop = type.getRank() + (it - contracting.begin());
        else
          loop = free++;
        exprs.push_back(rewriter.getAffineDimExpr(loop));
      }
      return AffineMap::get(loops, 0, exprs, rewriter.getContext());
    };
    ArrayRef<int64_t> batch = numbers.getLhsBatchingDimensions();
    unsigned lhsFree = cast<ShapedType>(lhs.getType()).getRank() -
                       batch.size() -
                       numbers.getLhsContractingDimensions().size();
    SmallVector<AffineExpr> resultExprs;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      resultExprs.push_back(rewriter.getAffineDimExpr(dim));
    SmallVector<AffineMap> maps{
        exprsOf(lhs, batch, numbers.getLhsContractingDimensions(),
                batch.size()),
        exprsOf(rhs, numbers.getRhsBatchingDimensions(),
                numbers.getRhsContractingDimensions(), batch.size() + lhsFree),
        AffineMap::get(loops, 0, resultExprs, rewriter.getContext())};
    SmallVector<utils::IteratorType> iterators(loops,
                                               utils::IteratorType::reduction);
    std::fill_n(iterators.begin(), type.getRank(),
                utils::IteratorType::parallel);
    return contractInLoops(rewriter, op, lhs, rhs, maps, iterators,
                           type.getShape());
  }
};

} // namespace

void whale::populateReductionPatterns(RewritePatternSet &patterns,
                                      const Target &target) {
  patterns.add<ReduceToLinalg>(patterns.getContext(), target);
  patterns.add<DotGeneralToLinalg>(patterns.getContext());
}
