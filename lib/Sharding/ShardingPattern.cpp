//===- ShardingPattern.cpp - What a split of a parameter means ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/ShardingPattern.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Sharding/ParameterSplits.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static constexpr llvm::StringLiteral none("its results are split, too");
static constexpr llvm::StringLiteral sums("its results are partial sums");

/// The pattern of an operation that is split along `sub`.
static ShardingPattern nameOf(OpOperand &parameter, const OpRule &rule,
                              const SubFactor &sub) {
  Operation *op = parameter.getOwner();
  FactorKind kind = rule.factors[sub.factor].kind;
  if (isa<hlo::GatherOp>(op)) {
    if (kind == FactorKind::MaskedGather)
      return {"vocabulary", sums};
    return {"embedding", none};
  }
  if (isAttention(op))
    return {"heads", none};
  unsigned other = 1 - parameter.getOperandNumber();
  bool isShared = findPiece(rule, rule.operands[other], sub).has_value();
  if (isa<hlo::ConvolutionOp>(op)) {
    if (kind == FactorKind::Reduction)
      return {"input channels", sums};
    return {isShared ? "groups" : "output channels", none};
  }
  if (kind == FactorKind::Reduction)
    return {"row", sums};
  return {isShared ? "expert" : "column", none};
}

ShardingPattern getSpatialPattern() {
  return {"spatial",
          "it is gathered, and parts of images exchange their edges"};
}

std::optional<ShardingPattern> findPattern(Value parameter,
                                           const DimPiece &piece) {
  SmallVector<std::pair<Value, DimPiece>> worklist{{parameter, piece}};
  llvm::DenseSet<Value> seen;
  std::optional<ShardingPattern> found;
  for (size_t i = 0; i < worklist.size(); ++i) {
    auto [value, at] = worklist[i];
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      Value next = passesOn(use);
      if (isa<YieldOp>(op)) {
        for (Value result : resultsOfYielded(use))
          worklist.push_back({result, at});
        continue;
      }
      if (next && isa<hlo::WhileOp, hlo::OptimizationBarrierOp>(op)) {
        worklist.push_back({next, at});
        continue;
      }
      if (!next && !isHeavyUse(use))
        continue;
      std::optional<OpRule> rule = getOpRule(op);
      if (!rule)
        continue;
      std::optional<SubFactor> sub =
          findSubFactor(*rule, rule->operands[use.getOperandNumber()], at);
      if (!sub || rule->factors[sub->factor].kind == FactorKind::Blocked)
        continue;
      if (!next) {
        auto graph = op->getParentOfType<TaskGraphOp>();
        bool isForward = graph && graph.getPhase() == Phase::Forward;
        if (isForward || !found)
          found = nameOf(use, *rule, *sub);
        if (isForward)
          return found;
        continue;
      }
      if (auto moved = findPiece(*rule, rule->results[0], *sub))
        worklist.push_back({next, *moved});
    }
  }
  return found;
}

} // namespace whale
