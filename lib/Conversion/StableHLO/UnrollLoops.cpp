//===- UnrollLoops.cpp - whale-unroll-loops -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: counted loops. Out: where a body is a few elementwise operations and
// moves of elements, and runs a few times, the operations of all turns in a
// row, which later passes fuse. The counter is a constant in each, and so are
// slices of small constants.
//
// Cost: at most kMostOperations more operations for each loop.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "mlir/IR/Matchers.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/OpCost.h"

namespace whale {
#define GEN_PASS_DEF_UNROLLLOOPS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Of all turns of a loop.
static constexpr int64_t kMostTrips = 8, kMostOperations = 512;

/// Whether an operation becomes a part of its users' loops.
static bool isFusible(Operation &op) {
  return isElementwise(&op) ||
         isa<stablehlo::ConstantOp, stablehlo::IotaOp, stablehlo::SliceOp,
             stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp,
             stablehlo::TransposeOp, stablehlo::ConcatenateOp>(op);
}

static bool isUnrolled(stablehlo::WhileOp loop, const CountedLoop &counted) {
  Block &body = loop.getBody().front();
  auto operations = static_cast<int64_t>(body.getOperations().size());
  return counted.trips <= kMostTrips &&
         operations <= kMostOperations / std::max<int64_t>(counted.trips, 1) &&
         llvm::all_of(body.without_terminator(), isFusible);
}

/// What a slice, or another shape, of a small constant is; null for others.
static DenseElementsAttr foldMoved(Operation *op) {
  constexpr int64_t small = 64;
  DenseElementsAttr constant;
  if (!isa<stablehlo::SliceOp, stablehlo::ReshapeOp>(op) ||
      !matchPattern(op->getOperand(0), m_Constant(&constant)) ||
      constant.getNumElements() > small)
    return {};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto slice = dyn_cast<stablehlo::SliceOp>(op);
  if (!slice)
    return constant.reshape(type);
  auto all = llvm::to_vector(constant.getValues<Attribute>());
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int64_t dim = type.getRank(); dim-- > 0;) {
      int64_t at = rest % type.getDimSize(dim);
      place += (slice.getStartIndices()[dim] + at * slice.getStrides()[dim]) *
               stride;
      rest /= type.getDimSize(dim);
      stride *= constant.getType().getShape()[dim];
    }
    values.push_back(all[place]);
  }
  return DenseElementsAttr::get(type, values);
}

static void unroll(stablehlo::WhileOp loop, const CountedLoop &counted) {
  OpBuilder b(loop);
  Block &body = loop.getBody().front();
  SmallVector<Value> carried(loop->getOperands());
  for (int64_t trip = 0; trip < counted.trips; ++trip) {
    IRMapping mapping;
    mapping.map(body.getArguments(), carried);
    Value counter = body.getArgument(counted.counter);
    auto type = cast<RankedTensorType>(counter.getType());
    int64_t value = counted.start + trip * counted.step;
    auto number = IntegerAttr::get(
        type.getElementType(),
        APInt(type.getElementTypeBitWidth(), value, /*isSigned=*/true));
    mapping.map(counter,
                stablehlo::ConstantOp::create(
                    b, loop.getLoc(), DenseElementsAttr::get(type, number)));
    for (Operation &op : body.without_terminator()) {
      Operation *cloned = b.clone(op, mapping);
      if (DenseElementsAttr constant = foldMoved(cloned)) {
        mapping.map(op.getResult(0),
                    stablehlo::ConstantOp::create(b, op.getLoc(), constant));
        cloned->erase();
      }
    }
    for (auto [next, value] :
         llvm::zip_equal(carried, body.getTerminator()->getOperands()))
      next = mapping.lookupOrDefault(value);
  }
  loop->replaceAllUsesWith(carried);
  loop->erase();
}

namespace {

struct UnrollLoops : whale::impl::UnrollLoopsBase<UnrollLoops> {
  void runOnOperation() override {
    SmallVector<stablehlo::WhileOp> loops;
    getOperation().walk(
        [&](stablehlo::WhileOp loop) { loops.push_back(loop); });
    for (stablehlo::WhileOp loop : loops)
      if (std::optional<CountedLoop> counted = countedLoop(loop))
        if (isUnrolled(loop, *counted))
          unroll(loop, *counted);
    // Counters, and what was moved.
    IRRewriter rewriter(&getContext());
    eraseDeadOps(rewriter, getOperation());
  }
};

} // namespace
