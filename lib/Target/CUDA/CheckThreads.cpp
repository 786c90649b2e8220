//===- CheckThreads.cpp - whale-check-threads -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of kernels for a GPU. Out: the same, or an error. How many
// blocks a grid has is an attribute of its kernel. From the
// bounds of its loops follows how much one thread does at most, and from its
// allocations how much shared memory a block has. Numbers that nothing is known
// of are as large as can be: a kernel that passes is within the limits.
//
// Cost: linear in the operations, and for each loop in the expressions of its
// bounds, seen as trees: what is used twice is looked at twice, so that a chain
// of operations that each use the one before twice takes exponential time.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/Costs.h"
#include "whale/Target/CUDA/CompileCuda.h"
#include "whale/Target/CUDA/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace whale {
#define GEN_PASS_DEF_CHECKTHREADS
#include "whale/Target/CUDA/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

/// What an index, which is not negative, is at most.
static int64_t findMost(Value value) {
  if (std::optional<int64_t> constant = getConstant(value))
    return *constant;
  Operation *op = value.getDefiningOp();
  if (!op)
    return kUnknown;
  auto most = [&](unsigned operand) {
    return findMost(op->getOperand(operand));
  };
  if (isa<arith::MinUIOp, arith::MinSIOp>(op))
    return std::min(most(0), most(1));
  if (isa<arith::SelectOp>(op))
    return std::max(most(1), most(2));
  if (isa<arith::AddIOp>(op))
    return addCosts(most(0), most(1));
  if (isa<arith::MulIOp>(op))
    return multiplyCosts(most(0), most(1));
  if (isa<arith::RemUIOp>(op))
    return std::max<int64_t>(most(1) - 1, 0);
  // What is taken away is not more.
  if (isa<arith::SubIOp>(op))
    return most(0);
  return kUnknown;
}

/// How far above `from`, at most, `value` is.
static int64_t findDistance(Value value, Value from) {
  if (value == from)
    return 0;
  int64_t distance = addCosts(
      findMost(value), -std::max<int64_t>(getConstant(from).value_or(0), 0));
  // Not nearer than what something is added to.
  if (auto sum = from.getDefiningOp<arith::AddIOp>())
    for (Value part : sum->getOperands())
      if (!getConstant(part))
        distance = std::min(distance, findDistance(value, part));
  // Nor farther than what was taken away from the value itself.
  if (auto difference = from.getDefiningOp<arith::SubIOp>())
    if (difference.getLhs() == value)
      distance = std::min(distance, findMost(difference.getRhs()));
  if (Operation *op = value.getDefiningOp()) {
    auto of = [&](unsigned operand) {
      return findDistance(op->getOperand(operand), from);
    };
    if (isa<arith::MinUIOp, arith::MinSIOp>(op))
      distance = std::min({distance, of(0), of(1)});
    else if (isa<arith::SelectOp>(op))
      distance = std::min(distance, std::max(of(1), of(2)));
    else if (isa<arith::SubIOp>(op))
      distance = std::min(distance, of(0));
    else if (isa<arith::AddIOp>(op))
      for (unsigned operand : {0, 1})
        if (op->getOperand(operand) == from)
          distance = std::min(distance, findMost(op->getOperand(1 - operand)));
  }
  return std::max<int64_t>(distance, 0);
}

static int64_t countTrips(scf::ForOp loop) {
  int64_t distance = findDistance(loop.getUpperBound(), loop.getLowerBound());
  int64_t step = getConstant(loop.getStep()).value_or(1);
  return distance == kUnknown ? kUnknown : llvm::divideCeil(distance, step);
}

/// How often the innermost loops of `region` run.
static int64_t countElements(Region &region, func::FuncOp kernel) {
  int64_t count = 0;
  for (Operation &op : region.getOps()) {
    int64_t inside = 0;
    for (Region &inner : op.getRegions())
      inside = addCosts(inside, countElements(inner, kernel));
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // A thread or a block does one iteration of the kernel.
      bool isOne =
          loop.getLowerBound() == kernel.getArguments().take_back(2)[0] &&
          loop.getUpperBound() == kernel.getArguments().take_back(2)[1];
      inside = loop->hasAttr(kTilesAttrName) ? 1 : std::max<int64_t>(inside, 1);
      if (!isOne)
        inside = multiplyCosts(inside, countTrips(loop));
    } else if (isa<scf::WhileOp>(op)) {
      inside = kUnknown;
    }
    count = addCosts(count, inside);
  }
  return count;
}

namespace {

struct CheckThreads : whale::impl::CheckThreadsBase<CheckThreads> {
  using CheckThreadsBase::CheckThreadsBase;

  void check(func::FuncOp kernel) {
    // What every GPU takes in the first dimension.
    constexpr int64_t mostBlocks = std::numeric_limits<int32_t>::max();
    if (int64_t blocks = getLaunchShape(kernel).blocks; blocks > mostBlocks) {
      kernel.emitError("a grid of the GPU would have ")
          << blocks << " blocks for this one: more than " << mostBlocks;
      return signalPassFailure();
    }
    int64_t bytes = 0;
    for (memref::AllocaOp array : findSharedMemory(kernel))
      bytes = addCosts(llvm::alignTo(bytes, kSharedAlignment),
                       getTensorBytes(array.getType()));
    if (bytes > kMaxSharedBytes) {
      kernel.emitError("a block of the GPU would need ")
          << bytes << " bytes of shared memory for this one: more than "
          << kMaxSharedBytes;
      return signalPassFailure();
    }
    int64_t count = countElements(kernel.getBody(), kernel);
    if (count <= most)
      return;
    kernel.emitError("a thread of the GPU would do ")
        << (count == kUnknown ? "an unknown number of"
                              : ("up to " + Twine(count)).str())
        << " elements of this one after the other: more than " << int64_t(most);
    signalPassFailure();
  }

  void runOnOperation() override {
    getOperation().walk([&](func::FuncOp kernel) {
      if (!kernel->hasAttr(kExtentAttrName))
        return;
      check(kernel);
    });
  }
};

} // namespace
