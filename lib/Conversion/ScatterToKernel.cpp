//===- ScatterToKernel.cpp - Scatter --------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// scatter is a kernel that walks over the updates in order and writes into the
// buffer of its operand; what several threads may do at once is one dimension
// of the updates that no two elements of the operand share.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// How the dimensions of a scatter's operands belong together.
struct ScatterDims {
  RankedTensorType operand, updates, indices;
  stablehlo::ScatterDimensionNumbersAttr numbers;
  /// Dimensions of the updates that stand for places in the indices.
  SmallVector<int64_t> placeDims;
  /// For each window dimension of the updates the dimension of the operand.
  SmallVector<int64_t> operandOfWindow;

  explicit ScatterDims(stablehlo::ScatterOp op)
      : operand(cast<RankedTensorType>(op.getInputs()[0].getType())),
        updates(cast<RankedTensorType>(op.getUpdates()[0].getType())),
        indices(cast<RankedTensorType>(op.getScatterIndices().getType())),
        numbers(op.getScatterDimensionNumbers()) {
    for (int64_t dim = 0; dim < updates.getRank(); ++dim)
      if (!llvm::is_contained(numbers.getUpdateWindowDims(), dim))
        placeDims.push_back(dim);
    for (int64_t dim = 0; dim < operand.getRank(); ++dim)
      if (!llvm::is_contained(numbers.getInsertedWindowDims(), dim) &&
          !llvm::is_contained(numbers.getInputBatchingDims(), dim))
        operandOfWindow.push_back(dim);
  }

  /// The dimension of the updates that belongs to one of the indices.
  int64_t placeDimOf(int64_t indicesDim) const {
    return placeDims[indicesDim < numbers.getIndexVectorDim() ? indicesDim
                                                              : indicesDim - 1];
  }

  bool isIndexed(int64_t operandDim) const {
    return llvm::is_contained(numbers.getScatterDimsToOperandDims(),
                              operandDim);
  }

  /// The size of the window in a dimension of the operand.
  int64_t windowSize(int64_t operandDim) const {
    for (auto [window, dim] :
         llvm::zip_equal(numbers.getUpdateWindowDims(), operandOfWindow))
      if (dim == operandDim)
        return updates.getDimSize(window);
    return 1;
  }

  /// The largest dimension of the updates that alone decides where in a
  /// dimension of the operand an update goes: its points never meet.
  std::optional<int64_t> findParallelDim() const {
    std::optional<int64_t> best;
    auto consider = [&](int64_t dim) {
      if (!best || updates.getDimSize(dim) > updates.getDimSize(*best))
        best = dim;
    };
    for (int64_t dim : numbers.getScatterIndicesBatchingDims())
      consider(placeDimOf(dim));
    for (auto [window, dim] :
         llvm::zip_equal(numbers.getUpdateWindowDims(), operandOfWindow))
      if (!isIndexed(dim))
        consider(window);
    return best;
  }
};

struct ScatterToKernel : OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    ScatterDims dims(op);
    if (dims.updates.getNumElements() == 0) {
      rewriter.replaceOp(op, op.getInputs());
      return success();
    }
    size_t count = op.getInputs().size();
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    SmallVector<int64_t> updates;
    for (Value input : op.getInputs()) {
      inputs.push_back(stored(rewriter, input));
      if (!inputs.back())
        return failure();
      types.push_back(inputs.back().getType());
      updates.push_back(updates.size());
    }
    for (Value update : op.getUpdates())
      inputs.push_back(stored(rewriter, update));
    inputs.push_back(stored(rewriter, op.getScatterIndices()));
    std::optional<int64_t> parallelDim = dims.findParallelDim();
    int64_t extent = parallelDim ? dims.updates.getDimSize(*parallelDim) : 1;
    auto kernel = makeKernel(rewriter, op.getLoc(), types, inputs, extent,
                             [&](KernelBuilder &k) {
                               return build(k, op, dims, parallelDim, count);
                             });
    if (failed(kernel))
      return failure();
    kernel->setUpdates(updates);
    // The elements of one window go to different places.
    if (!dims.numbers.getUpdateWindowDims().empty())
      (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  /// Loops over `loopDims` of the updates; `at` collects the counters.
  static void overDims(KernelBuilder &k, const ScatterDims &dims,
                       ArrayRef<int64_t> loopDims,
                       std::optional<int64_t> parallelDim,
                       MutableArrayRef<Value> at, function_ref<void()> body) {
    if (loopDims.empty())
      return body();
    int64_t dim = loopDims[0];
    bool split = parallelDim == dim;
    Value from = split ? k.begin : k.index(0);
    Value to = split ? k.end : k.index(dims.updates.getDimSize(dim));
    k.loop(from, to, [&](Value counter) {
      at[dim] = counter;
      overDims(k, dims, loopDims.drop_front(), parallelDim, at, body);
    });
  }

  static LogicalResult build(KernelBuilder &k, stablehlo::ScatterOp op,
                             const ScatterDims &dims,
                             std::optional<int64_t> parallelDim, size_t count) {
    SmallVector<Value> at(dims.updates.getRank());
    bool good = true;
    overDims(k, dims, dims.placeDims, parallelDim, at, [&] {
      SmallVector<Value> start(dims.operand.getRank());
      Value inside =
          arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
      for (auto [part, dim] :
           llvm::enumerate(dims.numbers.getScatterDimsToOperandDims())) {
        SmallVector<Value> place;
        for (int64_t d = 0; d < dims.indices.getRank(); ++d)
          place.push_back(d == dims.numbers.getIndexVectorDim()
                              ? k.index(part)
                              : at[dims.placeDimOf(d)]);
        start[dim] = toIndex(k.b, k.loc, k.load(2 * count, place),
                             dims.indices.getElementType());
        // A window that is not inside as a whole is dropped.
        int64_t room = dims.operand.getDimSize(dim) - dims.windowSize(dim) + 1;
        inside = arith::AndIOp::create(k.b, k.loc, inside,
                                       k.inside(start[dim], room));
      }
      for (auto [dim, indicesDim] :
           llvm::zip_equal(dims.numbers.getInputBatchingDims(),
                           dims.numbers.getScatterIndicesBatchingDims()))
        start[dim] = at[dims.placeDimOf(indicesDim)];
      k.when(inside, [&] {
        overDims(k, dims, dims.numbers.getUpdateWindowDims(), parallelDim, at,
                 [&] { good &= succeeded(update(k, op, dims, start, at)); });
      });
    });
    return success(good);
  }

  static LogicalResult update(KernelBuilder &k, stablehlo::ScatterOp op,
                              const ScatterDims &dims, ArrayRef<Value> start,
                              ArrayRef<Value> at) {
    SmallVector<Value> place(start);
    for (auto [window, dim] : llvm::zip_equal(
             dims.numbers.getUpdateWindowDims(), dims.operandOfWindow))
      place[dim] = place[dim] ? k.add(place[dim], at[window]) : at[window];
    for (Value &index : place)
      if (!index)
        index = k.index(0);
    size_t count = op.getInputs().size();
    SmallVector<Value> arguments;
    for (size_t number = 0; number < count; ++number)
      arguments.push_back(k.loadScalar(2 * count + 1 + number, place,
                                       op->getResult(number).getType()));
    for (size_t number = 0; number < count; ++number)
      arguments.push_back(
          k.loadScalar(count + number, at, op->getResult(number).getType()));
    auto results =
        emitScalarBlock(k.b, op.getUpdateComputation().front(), arguments);
    if (failed(results))
      return failure();
    for (auto [number, value] : llvm::enumerate(*results))
      k.store(value, 2 * count + 1 + number, place);
    return success();
  }
};

} // namespace

void whale::populateScatterPatterns(RewritePatternSet &patterns) {
  patterns.add<ScatterToKernel>(patterns.getContext());
}
