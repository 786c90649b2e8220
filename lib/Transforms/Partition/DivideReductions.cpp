//===- DivideReductions.cpp - whale-divide-reductions ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes, with reductions joined in buckets.
// Out: the same, where an all-reduce over several nodes for which that is
// faster (reductionSeconds) is a reduce-scatter in each node, an all-reduce of
// the parts across nodes and an all-gather in each node. Parts are equal, so
// that all ranks of a class go on to have the same shapes: what doesn't divide
// is filled up with zeros that nobody reads. Inside of loops and branches,
// where values cannot be put side by side, it stays one.
//
// Costs O(collectives), and for each pair of placements its groups.
//
//===----------------------------------------------------------------------===//

#include "CollectiveSteps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Step/ReductionCost.h"
#include "whale/Transforms/Passes.h"

#include <array>
#include <map>

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_DIVIDEREDUCTIONS
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// What becomes of the all-reduces of one pair of placements.
struct Division {
  GroupReduction reduction;
  int64_t membersByNode = 1;
  /// Whether no elements must be added.
  bool isEven = false;
  std::vector<Step> steps;
};

class Divider {
public:
  Divider(ArrayRef<ScheduleOp> classes, const Cluster &cluster)
      : classes(classes), cluster(cluster), topology(Topology::of(cluster)) {}

  void run();

private:
  const Division *findDivision(AllReduceOp op);
  std::optional<Division> makeDivision(AllReduceOp op) const;
  void divide(AllReduceOp op, const Division &division, int64_t channel);
  Value fillUp(OpBuilder &builder, AllReduceOp op, const Division &division);

  ArrayRef<ScheduleOp> classes;
  const Cluster &cluster;
  Topology topology;
  std::map<std::tuple<const void *, const void *, int64_t>,
           std::optional<Division>>
      divisions;
};

} // namespace

std::optional<Division> Divider::makeDivision(AllReduceOp op) const {
  std::optional<GroupReduction> reduction = GroupReduction::of(
      {StepKind::AllReduce, op.getFrom().getValue(), op.getTo().getValue()},
      topology);
  if (!reduction)
    return std::nullopt;
  std::optional<int64_t> count = reduction->membersByNode(topology);
  if (!count)
    return std::nullopt;
  int64_t bytes =
      getElementBytes(getElementTypeOrSelf(op->getResult(0).getType()));
  ReductionSeconds seconds = reductionSeconds(*reduction, bytes, cluster);
  if (!(seconds.divided < seconds.whole))
    return std::nullopt;
  Division division{*reduction, *count, true, {}};
  for (int64_t &elements : division.reduction.elements) {
    int64_t even = llvm::alignTo(elements, *count);
    division.isEven &= even == elements;
    elements = even;
  }
  division.steps = division.reduction.divideByNode(topology);
  return division;
}

const Division *Divider::findDivision(AllReduceOp op) {
  CollectiveOp collective(op);
  if (!collective.getInput() || !collective.getOutput())
    return nullptr;
  int64_t bytes =
      getElementBytes(getElementTypeOrSelf(op->getResult(0).getType()));
  auto [it, isNew] =
      divisions.try_emplace({op.getFrom().getAsOpaquePointer(),
                             op.getTo().getAsOpaquePointer(), bytes},
                            std::nullopt);
  if (isNew)
    it->second = makeDivision(op);
  bool isOutside = isa<ScheduleOp>(op->getParentOp());
  if (!it->second || (!it->second->isEven && !isOutside))
    return nullptr;
  return &*it->second;
}

/// The operands side by side, and behind them zeros up to the next multiple of
/// the members in a node.
Value Divider::fillUp(OpBuilder &builder, AllReduceOp op,
                      const Division &division) {
  Value input = op->getOperand(0);
  auto type = cast<RankedTensorType>(input.getType());
  int64_t count = type.getNumElements();
  int64_t even = llvm::alignTo(count, division.membersByNode);
  SmallVector<Value> parts = {input};
  auto pack = input.getDefiningOp<PackOp>();
  if (pack && input.hasOneUse())
    parts.assign(pack.getParts().begin(), pack.getParts().end());
  auto zeros = RankedTensorType::get({even - count}, type.getElementType());
  // A zero has zero bytes in all types, complex ones included.
  std::vector<char> zero(getElementBytes(type.getElementType()), 0);
  parts.push_back(stablehlo::ConstantOp::create(
      builder, op.getLoc(), DenseElementsAttr::getFromRawBuffer(zeros, zero)));
  auto whole = RankedTensorType::get({even}, type.getElementType());
  return PackOp::create(builder, op.getLoc(), whole, parts).getWhole();
}

void Divider::divide(AllReduceOp op, const Division &division,
                     int64_t channel) {
  OpBuilder builder(op);
  Value input = op->getOperand(0), result = op->getResult(0);
  auto type = cast<RankedTensorType>(input.getType());
  int64_t count = type.getNumElements();
  int64_t even = llvm::alignTo(count, division.membersByNode);
  Operation *packed = input.getDefiningOp<PackOp>();
  Value value = even == count ? input : fillUp(builder, op, division);
  // The first keeps the channel.
  int64_t part = even / division.membersByNode;
  Operation *last = nullptr;
  int64_t next = op.getChannel();
  std::array<int64_t, 3> sizes = {part, part, even};
  for (auto [step, elements] : llvm::zip_equal(division.steps, sizes)) {
    Type stepType = RankedTensorType::get(
        {elements}, getElementTypeOrSelf(value.getType()));
    last = createStep(builder, CollectiveOp(op), step, next, value, stepType);
    value = last->getResult(0);
    next = next == int64_t(op.getChannel()) ? channel : channel + 1;
  }
  if (even == count && type.getRank() == 1) {
    result.replaceAllUsesWith(value);
  } else if (even == count) {
    // In the shape of the value: the elements are the same.
    last->getResult(0).setType(type);
    result.replaceAllUsesWith(value);
  } else {
    UnpackOp unpack;
    if (result.hasOneUse())
      unpack = dyn_cast<UnpackOp>(*result.user_begin());
    SmallVector<Type> types = {type};
    if (unpack)
      types.assign(unpack->getResultTypes().begin(),
                   unpack->getResultTypes().end());
    types.push_back(
        RankedTensorType::get({even - count}, type.getElementType()));
    auto parts = UnpackOp::create(builder, op.getLoc(), types, value);
    if (unpack) {
      for (auto [before, after] :
           llvm::zip(unpack->getResults(), parts.getParts()))
        before.replaceAllUsesWith(after);
      unpack->erase();
    } else {
      result.replaceAllUsesWith(parts.getParts().front());
    }
  }
  op->erase();
  if (packed && packed->use_empty())
    packed->erase();
}

void Divider::run() {
  auto divisionOf = [&](CollectiveOp op) -> const Division * {
    auto reduction = dyn_cast<AllReduceOp>(op.getOperation());
    return reduction ? findDivision(reduction) : nullptr;
  };
  divideCollectives(
      classes, /*more=*/2, divisionOf, [&](CollectiveOp op, int64_t channel) {
        divide(cast<AllReduceOp>(op.getOperation()), *divisionOf(op), channel);
      });
}

namespace {

struct DivideReductionsPass : impl::DivideReductionsBase<DivideReductionsPass> {
  void runOnOperation() final {
    for (ClusterOp cluster : getOperation().getOps<ClusterOp>())
      Divider(getRankClasses(getOperation()), cluster.getCluster()).run();
  }
};

} // namespace
} // namespace whale
