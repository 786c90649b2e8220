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
// of the updates that no two elements of the operand share. Where few updates
// are no work for several, loops on a processor have sizes that are known.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/KernelWork.h"
#include "Kernel/ScatterDims.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace whale;

namespace {

struct ScatterToKernel : OpRewritePattern<stablehlo::ScatterOp> {
  ScatterToKernel(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    if (llvm::any_of(op.getOperandTypes(), [](Type type) {
          return !getStorageType(cast<RankedTensorType>(type));
        }))
      return failure();
    ScatterDims dims(op);
    if (dims.updates.getNumElements() == 0) {
      rewriter.replaceOp(op, op.getInputs());
      return success();
    }
    std::optional<int64_t> parallelDim;
    if (target.isGpu() || dims.updates.getNumElements() > kFewElements)
      parallelDim = dims.findParallelDim();
    int64_t extent = parallelDim ? dims.updates.getDimSize(*parallelDim) : 1;
    if (target.isGpu() && dims.updates.getNumElements() / extent > kFewUpdates)
      if (std::optional<LogicalResult> result =
              lowerScatterBlocks(rewriter, op, dims))
        return *result;
    size_t count = op.getInputs().size();
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    SmallVector<int64_t> updates;
    for (Value input : op.getInputs()) {
      inputs.push_back(stored(rewriter, input));
      types.push_back(inputs.back().getType());
      updates.push_back(updates.size());
    }
    for (Value update : op.getUpdates())
      inputs.push_back(stored(rewriter, update));
    inputs.push_back(stored(rewriter, op.getScatterIndices()));
    auto kernel = makeKernel(rewriter, op.getLoc(), target.isGpu(), types,
                             inputs, [&](KernelBuilder &k) {
                               return build(k, op, dims, parallelDim, count);
                             });
    if (failed(kernel))
      return failure();
    kernel->setUpdates(updates);
    noteWork(*kernel, op);
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
    int64_t dim = loopDims[0], size = dims.updates.getDimSize(dim);
    auto inside = [&](Value counter) {
      at[dim] = counter;
      overDims(k, dims, loopDims.drop_front(), parallelDim, at, body);
    };
    if (parallelDim == dim)
      k.share(size, inside);
    else
      k.loop(k.index(0), k.index(size), inside);
  }

  static LogicalResult build(KernelBuilder &k, stablehlo::ScatterOp op,
                             const ScatterDims &dims,
                             std::optional<int64_t> parallelDim, size_t count) {
    SmallVector<Value> at(dims.updates.getRank());
    bool good = true;
    overDims(k, dims, dims.placeDims, parallelDim, at, [&] {
      SmallVector<Value> start;
      Value inside = dims.findStart(k, 2 * count, at, start);
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

  /// So many elements one thread of a processor updates.
  static constexpr int64_t kFewElements = 1 << 15;
  /// So many updates a thread of a GPU takes one after the other.
  static constexpr int64_t kFewUpdates = 32;
  Target target;
};

} // namespace

void whale::populateScatterPatterns(RewritePatternSet &patterns,
                                    const Target &target) {
  patterns.add<ScatterToKernel>(patterns.getContext(), target);
}
