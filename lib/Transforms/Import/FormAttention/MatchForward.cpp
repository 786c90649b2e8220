//===- MatchForward.cpp - The scores of a softmax -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an exponential. Out: the scores of an attention (the product, queries,
// keys, scale, mask, bias, and the operations between), or the reason why there
// are none.
//
// From the exponential back: minus the maximum of the row, then what is done to
// the scores, then the product of queries and keys. Cost: linear in the
// operations from the product to the exponential. Where the maximum is of
// scores that were converted, transposed or reshaped before, each of these is
// searched among those of the scores: the product of both chains' lengths.
//
//===----------------------------------------------------------------------===//

#include "Match.h"

#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Sharding/Reducers.h"

#include <cmath>
#include <limits>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale::attention {

std::string nameOf(Operation *op) {
  return ("'" + op->getName().stripDialect() + "'").str();
}

Labeled labelOperand(hlo::DotGeneralOp op, bool isLeft, const Labels &result,
                     int contracted) {
  auto numbers = op.getDotDimensionNumbers();
  ArrayRef<int64_t> batch = isLeft ? numbers.getLhsBatchingDimensions()
                                   : numbers.getRhsBatchingDimensions();
  ArrayRef<int64_t> contracting = isLeft
                                      ? numbers.getLhsContractingDimensions()
                                      : numbers.getRhsContractingDimensions();
  Value operand = isLeft ? op.getLhs() : op.getRhs();
  int64_t rank = shapeOf(operand).size();
  size_t next = batch.size();
  if (!isLeft)
    next = result.size() - (rank - batch.size() - contracting.size());
  Labels labels(rank, contracted);
  for (auto [number, dim] : llvm::enumerate(batch))
    labels[dim] = result[number];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) &&
        !llvm::is_contained(contracting, dim))
      labels[dim] = result[next++];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (shapeOf(operand)[dim] == 1)
      labels[dim] = kUnit;
  return {operand, labels};
}

/// The tensor and those that it is a conversion, transposition or reshape of.
static SmallVector<Labeled> getSources(Labeled from) {
  SmallVector<Labeled> sources{from};
  while (auto before = stepBack(from)) {
    if (from.value.getDefiningOp<hlo::BroadcastInDimOp>())
      break;
    from = *before;
    sources.push_back(from);
  }
  return sources;
}

/// The label of the dimension over which `reduce`, whose result has the labels,
/// is the maximum of `scores`, or none.
static std::optional<int> findReduced(hlo::ReduceOp reduce,
                                      const Labels &labels, Value scores,
                                      Scores &found) {
  if (reduce.getInputs().size() != 1 || reduce.getDimensions().size() != 1 ||
      getReductionKind(reduce.getBody()) != Reduction::Max ||
      !isIdentity(Reduction::Max, reduce.getInitValues()[0]))
    return std::nullopt;
  Labeled reduced{reduce.getInputs()[0], labels};
  reduced.labels.insert(reduced.labels.begin() + reduce.getDimensions()[0],
                        kAny);
  SmallVector<Labeled> sources = getSources({scores, numberDims(scores)});
  for (const Labeled &input : getSources(reduced)) {
    const auto *source = llvm::find_if(sources, [&](const Labeled &each) {
      return each.value == input.value;
    });
    if (source == sources.end()) {
      if (Operation *op = input.value.getDefiningOp())
        found.operations.insert(op);
      continue;
    }
    std::optional<int> key;
    for (auto [mine, theirs] : llvm::zip_equal(source->labels, input.labels))
      if (theirs == kAny)
        key = mine;
      else if (mine != theirs)
        return std::nullopt;
    return key;
  }
  return std::nullopt;
}

/// The same of a value that is a maximum, broadcast.
static std::optional<int> findMaximum(Value value, Value scores,
                                      Scores &found) {
  Labeled from{value, numberDims(value)};
  while (Operation *op = from.value.getDefiningOp()) {
    found.operations.insert(op);
    if (auto before = stepBack(from)) {
      from = *before;
    } else if (auto maximum = dyn_cast<hlo::MaxOp>(op)) {
      bool isLeft = isIdentity(Reduction::Max, maximum.getRhs());
      if (!isLeft && !isIdentity(Reduction::Max, maximum.getLhs()))
        return std::nullopt;
      from.value = isLeft ? maximum.getLhs() : maximum.getRhs();
    } else if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) {
      return findReduced(reduce, from.labels, scores, found);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {
/// Walks from scores back to the product.
class ScoreWalk {
public:
  ScoreWalk(Scores &found, Reason &reason) : found(found), reason(reason) {}

  /// Sets what is found, up to `found.product`; returns its labels.
  std::optional<Labels> run(Labeled from);

private:
  bool select(hlo::SelectOp op, Labeled &from);
  bool scaleBy(Value factor, bool isDivisor);
  bool addBias(Value added, Labeled &from);

  Scores &found;
  Reason &reason;
};
} // namespace

bool ScoreWalk::scaleBy(Value factor, bool isDivisor) {
  std::optional<double> number = getConstant(factor);
  if (!number || *number == 0 || !std::isfinite(*number))
    return false;
  found.scale *= isDivisor ? 1 / *number : *number;
  return true;
}

bool ScoreWalk::addBias(Value added, Labeled &from) {
  if (found.bias || found.scale != 1) {
    reason = found.bias ? "it has two biases"
                        : "its scores are scaled after the bias";
    return false;
  }
  Labeled source{added, from.labels};
  found.bias = source;
  while (auto before = stepBack(source)) {
    source = *before;
    Type element = getElementTypeOrSelf(source.value);
    if (isAttentionElement(element))
      found.bias = source;
  }
  return true;
}

bool ScoreWalk::select(hlo::SelectOp op, Labeled &from) {
  if (found.isMasked() || found.bias) {
    reason = found.bias ? "what is masked is biased after" : "it has two masks";
    return false;
  }
  for (bool isInverted : {false, true}) {
    Value kept = isInverted ? op.getOnFalse() : op.getOnTrue();
    Value other = isInverted ? op.getOnTrue() : op.getOnFalse();
    std::optional<double> fill = getConstant(other);
    if (!fill)
      continue;
    if (shapeOf(op.getPred()) != shapeOf(op)) {
      reason = "its mask is one number";
      return false;
    }
    found.fill = *fill * found.scale;
    if (!(*found.fill < std::numeric_limits<double>::infinity())) {
      reason = "masked scores are infinite or no number";
      return false;
    }
    found.mask =
        getMask({op.getPred(), from.labels}, isInverted, found.keyLabel);
    from.value = kept;
    return true;
  }
  reason = "masked scores are not a constant";
  return false;
}

std::optional<Labels> ScoreWalk::run(Labeled from) {
  while (Operation *op = from.value.getDefiningOp()) {
    Type element = getElementTypeOrSelf(from.value);
    if (!isAttentionElement(element)) {
      llvm::raw_string_ostream(reason) << "its scores are of " << element;
      return std::nullopt;
    }
    found.operations.insert(op);
    if (auto product = dyn_cast<hlo::DotGeneralOp>(op)) {
      found.product = product;
      return from.labels;
    }
    if (!isa<hlo::BroadcastInDimOp>(op)) {
      if (auto before = stepBack(from)) {
        from = *before;
        continue;
      }
    }
    bool known = false;
    if (auto choice = dyn_cast<hlo::SelectOp>(op)) {
      if (!select(choice, from))
        return std::nullopt;
      continue;
    }
    if (auto multiply = dyn_cast<hlo::MulOp>(op)) {
      bool isLeft = scaleBy(multiply.getRhs(), false);
      known = isLeft || scaleBy(multiply.getLhs(), false);
      from.value = isLeft ? multiply.getLhs() : multiply.getRhs();
    } else if (auto divide = dyn_cast<hlo::DivOp>(op)) {
      known = scaleBy(divide.getRhs(), true);
      from.value = divide.getLhs();
    } else if (auto add = dyn_cast<hlo::AddOp>(op)) {
      // What is broadcast is the bias; else the second operand.
      bool isLeft = !add.getLhs().getDefiningOp<hlo::BroadcastInDimOp>();
      if (!addBias(isLeft ? add.getRhs() : add.getLhs(), from))
        return std::nullopt;
      from.value = isLeft ? add.getLhs() : add.getRhs();
      known = true;
    } else if (auto subtract = dyn_cast<hlo::SubtractOp>(op)) {
      if (!addBias(subtract.getRhs(), from))
        return std::nullopt;
      found.subtractsBias = true;
      from.value = subtract.getLhs();
      known = true;
    }
    if (!known) {
      reason = "its scores are the result of a " + nameOf(op);
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool matchScores(hlo::ExpOp op, Scores &found, Reason &reason) {
  found.exponential = op;
  found.operations.insert(op);
  Value shifted = op.getOperand();
  while (auto convert = shifted.getDefiningOp<hlo::ConvertOp>()) {
    found.operations.insert(convert);
    shifted = convert.getOperand();
  }
  auto subtract = shifted.getDefiningOp<hlo::SubtractOp>();
  if (!subtract)
    return false;
  found.operations.insert(subtract);
  Value scores = subtract.getLhs();
  std::optional<int> dim = findMaximum(subtract.getRhs(), scores, found);
  if (!dim || *dim < 0)
    return false;
  found.keyLabel = *dim;
  std::optional<Labels> labels =
      ScoreWalk(found, reason).run({scores, numberDims(scores)});
  if (!labels)
    return false;

  hlo::DotGeneralOp product = found.product;
  auto numbers = product.getDotDimensionNumbers();
  Labeled left = labelOperand(product, true, *labels, kDepth);
  Labeled right = labelOperand(product, false, *labels, kDepth);
  bool isLeftKey = left.has(found.keyLabel);
  found.key = stripTransposes(isLeftKey ? left : right);
  found.query = stripTransposes(isLeftKey ? right : left);
  if (numbers.getLhsContractingDimensions().size() != 1 || !left.has(kDepth)) {
    reason = "its first product sums over several dimensions, or none";
    return false;
  }
  if (found.query.has(found.keyLabel)) {
    reason = "the softmax is over a batch dimension";
    return false;
  }
  for (int label : found.key.labels)
    if (label >= 0 && label != found.keyLabel && !found.query.has(label)) {
      reason = "the softmax is over one of several dimensions of the keys";
      return false;
    }
  return true;
}

} // namespace whale::attention
