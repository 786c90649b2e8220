//===- OpCost.cpp - FLOPs and bytes of operations -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kind of operation has a formula of its shapes: n log2 n comparisons for
// a sort, 5 n log2 n for an FFT, n^3 / 3 for a Cholesky decomposition, the
// region's operations for each element that is reduced; by default one for each
// element. Loops, branches and other regions are summed up by recursion, each
// time anew: the cost is linear in the operations inside. A loop is counted if
// its condition compares a carried value, which the body adds a constant to,
// with a constant.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/OpCost.h"

#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/ConvolutionFlops.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace whale {

namespace {

int64_t elements(Type type) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (!shaped || !shaped.hasStaticShape())
    return 0;
  int64_t count = 1;
  for (int64_t extent : shaped.getShape())
    count = multiplyCosts(count, extent);
  return count;
}

int64_t elements(Value value) { return elements(value.getType()); }

int64_t log2Ceil(int64_t n) { return n < 2 ? 1 : llvm::Log2_64_Ceil(n); }

/// Operations of a region that computes one element.
int64_t opsInside(Region &region) {
  int64_t count = 0;
  for (Block &block : region)
    for (Operation &op : block.without_terminator())
      count = addCosts(count, opFlops(&op));
  return std::max<int64_t>(count, 1);
}

bool movesData(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<stablehlo::BitcastConvertOp, stablehlo::BroadcastInDimOp,
             stablehlo::ConcatenateOp, stablehlo::DynamicSliceOp,
             stablehlo::DynamicUpdateSliceOp, stablehlo::GatherOp,
             stablehlo::IotaOp, stablehlo::OptimizationBarrierOp,
             stablehlo::PadOp, stablehlo::ReshapeOp, stablehlo::ReverseOp,
             stablehlo::SliceOp, stablehlo::TransposeOp,
             sdy::ShardingConstraintOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

int64_t dotFlops(stablehlo::DotGeneralOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  int64_t flops = multiplyCosts(2, elements(op.getResult()));
  for (int64_t dim : op.getDotDimensionNumbers().getLhsContractingDimensions())
    flops = multiplyCosts(flops, lhs.getDimSize(dim));
  return flops;
}

int64_t convolutionFlops(stablehlo::ConvolutionOp op) {
  return countConvolutionFlops(
      op.getRhs(), op.getDimensionNumbers().getKernelOutputFeatureDimension(),
      op.getResult(), op.getLhsDilation().value_or(ArrayRef<int64_t>()));
}

int64_t windowSize(ArrayRef<int64_t> window) {
  int64_t size = 1;
  for (int64_t extent : window)
    size = multiplyCosts(size, extent);
  return size;
}

int64_t reduceWindowFlops(stablehlo::ReduceWindowOp op) {
  auto input = cast<RankedTensorType>(op.getInputs()[0].getType());
  auto output = cast<RankedTensorType>(op.getResult(0).getType());
  // A window that spans its dimension and keeps its extent is a running sum.
  int64_t size = 1;
  for (auto [dim, extent] : llvm::enumerate(op.getWindowDimensions()))
    if (extent != input.getDimSize(dim) ||
        output.getDimSize(dim) != input.getDimSize(dim))
      size = multiplyCosts(size, extent);
  return multiplyCosts(multiplyCosts(elements(output), size),
                       opsInside(op.getBody()));
}

int64_t sortFlops(stablehlo::SortOp op) {
  auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
  if (type.getRank() == 0)
    return 0;
  int64_t dim = op.getDimension();
  int64_t extent = type.getDimSize(dim < 0 ? dim + type.getRank() : dim);
  return multiplyCosts(multiplyCosts(elements(type), log2Ceil(extent)),
                       opsInside(op.getComparator()));
}

using Cost = int64_t (*)(Operation *);

int64_t regionCost(Region &region, Cost cost) {
  int64_t sum = 0;
  for (Block &block : region)
    for (Operation &op : block)
      sum = addCosts(sum, cost(&op));
  return sum;
}

/// The cost of operations that consist of steps; none for all others.
std::optional<int64_t> controlFlowCost(Operation *op, Cost cost) {
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return multiplyCosts(tripCount(loop).value_or(1),
                         addCosts(regionCost(loop.getCond(), cost),
                                  regionCost(loop.getBody(), cost)));
  bool isBranch = stablehlo::isBranch(op);
  if (!isBranch && (op->getNumRegions() == 0 ||
                    isa<stablehlo::StablehloDialect>(op->getDialect())))
    return std::nullopt;
  int64_t total = 0;
  for (Region &region : op->getRegions()) {
    int64_t one = regionCost(region, cost);
    total = isBranch ? std::max(total, one) : addCosts(total, one);
  }
  return total;
}

int64_t sumBytes(ValueRange values) {
  int64_t bytes = 0;
  for (Type type : values.getTypes())
    bytes = addCosts(bytes, getTensorBytes(type));
  return bytes;
}

/// Of what reads as much of its first operand as it writes.
int64_t readBytes(Operation *op) {
  int64_t written = sumBytes(op->getResults());
  int64_t first = getTensorBytes(op->getOperand(0).getType());
  return addCosts(addCosts(written, std::min(first, written)),
                  sumBytes(op->getOperands().drop_front()));
}

/// Of what updates its first operands with as much as it reads of the others,
/// where they are. A splat has no place yet: it is written there before.
int64_t updateBytes(ValueRange updated, Operation *op) {
  int64_t read = sumBytes(op->getOperands().drop_front(updated.size()));
  int64_t bytes = read;
  for (Value value : updated) {
    int64_t all = getTensorBytes(value.getType());
    bytes = addCosts(bytes, multiplyCosts(2, std::min(all, read)));
    Operation *producer = value.getDefiningOp();
    if (producer && (producer->hasTrait<OpTrait::ConstantLike>() ||
                     isa<stablehlo::BroadcastInDimOp>(producer)))
      bytes = addCosts(bytes, all);
  }
  return bytes;
}

} // namespace

int64_t opFlops(Operation *op) {
  if (std::optional<int64_t> cost = controlFlowCost(op, opFlops))
    return *cost;
  if (movesData(op) || op->getNumResults() == 0)
    return 0;
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case(dotFlops)
      .Case(convolutionFlops)
      .Case(reduceWindowFlops)
      .Case(sortFlops)
      .Case<MatmulOp, ConvolutionOp>([](auto op) { return op.getFlops(); })
      .Case<AttentionOp, AttentionGradientOp>(
          [](auto op) { return getAttentionFlops(op); })
      .Case([](stablehlo::ReduceOp reduce) {
        return multiplyCosts(elements(reduce.getInputs()[0]),
                             opsInside(reduce.getBody()));
      })
      .Case([](stablehlo::ScatterOp scatter) {
        return multiplyCosts(elements(scatter.getUpdates()[0]),
                             opsInside(scatter.getUpdateComputation()));
      })
      .Case([](stablehlo::SelectAndScatterOp op) {
        int64_t window = 1;
        if (std::optional<ArrayRef<int64_t>> extents = op.getWindowDimensions())
          window = windowSize(*extents);
        return multiplyCosts(elements(op.getSource()), window);
      })
      .Case([](stablehlo::FftOp fft) {
        int64_t length = windowSize(fft.getFftLength());
        return multiplyCosts(multiplyCosts(5, elements(fft.getResult())),
                             log2Ceil(length));
      })
      .Case([](stablehlo::CholeskyOp op) {
        auto type = cast<RankedTensorType>(op.getResult().getType());
        return multiplyCosts(elements(type), type.getShape().back()) / 3;
      })
      .Case([](stablehlo::TriangularSolveOp op) {
        auto a = cast<RankedTensorType>(op.getA().getType());
        return multiplyCosts(elements(op.getResult()), a.getShape().back());
      })
      .Default([](Operation *op) { return elements(op->getResult(0)); });
}

int64_t opBytes(Operation *op) {
  if (std::optional<int64_t> cost = controlFlowCost(op, opBytes))
    return *cost;
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      isa<stablehlo::OptimizationBarrierOp, stablehlo::ReshapeOp,
          sdy::ShardingConstraintOp>(op))
    return 0;
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<stablehlo::DynamicSliceOp, stablehlo::GatherOp, stablehlo::SliceOp>(
          [](auto op) { return readBytes(op); })
      .Case([](stablehlo::DynamicUpdateSliceOp op) {
        return updateBytes(op->getOperands().take_front(1), op);
      })
      .Case([](stablehlo::ScatterOp op) {
        return updateBytes(op.getInputs(), op);
      })
      .Default([](Operation *op) {
        return addCosts(sumBytes(op->getOperands()),
                        sumBytes(op->getResults()));
      });
}

namespace {

std::optional<int64_t> constantInt(Value value) {
  DenseIntElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  auto number = attr.getSplatValue<APInt>();
  if (!attr.getElementType().isUnsignedInteger())
    return number.trySExtValue();
  return number.isSignBitSet() && number.getBitWidth() >= 64
             ? std::nullopt
             : std::optional<int64_t>(number.getZExtValue());
}

/// The value that `value` of the condition or body has before the first trip,
/// if it is a constant.
std::optional<int64_t> limitOf(stablehlo::WhileOp loop, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner()->getParentOp() != loop)
      return std::nullopt;
    unsigned index = argument.getArgNumber();
    Value next = loop.getBody().front().getTerminator()->getOperand(index);
    if (next != loop.getBody().getArgument(index))
      return std::nullopt;
    return constantInt(loop.getOperands()[index]);
  }
  return constantInt(value);
}

} // namespace

std::optional<int64_t> tripCount(stablehlo::WhileOp loop) {
  if (auto known = loop->getAttrOfType<IntegerAttr>(kTripsAttrName))
    return known.getInt();
  std::optional<CountedLoop> counted = countedLoop(loop);
  return counted ? std::optional(counted->trips) : std::nullopt;
}

std::optional<CountedLoop> countedLoop(stablehlo::WhileOp loop) {
  auto compare = loop.getCond()
                     .front()
                     .getTerminator()
                     ->getOperand(0)
                     .getDefiningOp<stablehlo::CompareOp>();
  if (!compare)
    return std::nullopt;
  auto direction = compare.getComparisonDirection();
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  using Direction = stablehlo::ComparisonDirection;
  if (direction == Direction::GT || direction == Direction::GE) {
    std::swap(lhs, rhs);
    direction = direction == Direction::GT ? Direction::LT : Direction::LE;
  }
  if (direction != Direction::LT && direction != Direction::LE)
    return std::nullopt;
  auto counter = dyn_cast<BlockArgument>(lhs);
  if (!counter || counter.getOwner() != &loop.getCond().front())
    return std::nullopt;

  unsigned index = counter.getArgNumber();
  std::optional<int64_t> start = constantInt(loop.getOperands()[index]);
  std::optional<int64_t> limit = limitOf(loop, rhs);
  Value next = loop.getBody().front().getTerminator()->getOperand(index);
  auto increment = next.getDefiningOp<stablehlo::AddOp>();
  if (!start || !limit || !increment)
    return std::nullopt;
  Value argument = loop.getBody().getArgument(index);
  Value step = increment.getLhs() == argument   ? increment.getRhs()
               : increment.getRhs() == argument ? increment.getLhs()
                                                : Value();
  std::optional<int64_t> stride = step ? constantInt(step) : std::nullopt;
  if (!stride || *stride < 1)
    return std::nullopt;
  __int128 end = __int128(*limit) + (direction == Direction::LE);
  __int128 distance = std::max<__int128>(end - *start, 0);
  __int128 trips = (distance + *stride - 1) / *stride;
  // A counter that goes beyond its type's largest number starts anew.
  auto type = cast<IntegerType>(getElementTypeOrSelf(counter.getType()));
  unsigned bits = type.isUnsigned() ? type.getWidth() : type.getWidth() - 1;
  if (*start + trips * *stride >= __int128(1) << bits ||
      trips > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return CountedLoop{index, *start, *stride, int64_t(trips)};
}

} // namespace whale
