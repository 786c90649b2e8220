//===- MatchUses.cpp - What a softmax's exponentials become ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the scores of an attention. Out: the products that use them: the result,
// and those of its gradient; or the reason why something else uses them.
//
// Every value that depends on the exponentials is computed as a formula. Each
// must end in a product: of the probabilities with values or with the cotangent
// of the result, or of the scores' gradient with keys or queries. Operations
// are visited in their order, from a sorted set. Cost: n log n in the
// operations and uses that depend on the exponentials; a product of formulas
// multiplies their terms.
//
//===----------------------------------------------------------------------===//

#include "Formula.h"
#include "Match.h"

#include "whale/Sharding/Reducers.h"

#include <set>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale::attention {

namespace {

struct Tracked {
  Formula formula;
  Labels labels;
};

class UseMatcher {
public:
  UseMatcher(const Scores &scores, Reason &reason)
      : scores(scores), reason(reason) {}

  std::optional<Uses> run();

private:
  bool evaluate(Operation *op);
  std::optional<Tracked> operand(Value value, const Labels &wanted);
  std::optional<Tracked> leaf(Labeled from);
  std::optional<Tracked> combine(Operation *op);
  std::optional<Tracked> select(hlo::SelectOp op);
  std::optional<Tracked> reduce(hlo::ReduceOp op);
  bool sink(hlo::DotGeneralOp op);
  void complete(Labels &labels) const;

  const Scores &scores;
  Reason &reason;
  Uses uses;
  llvm::DenseMap<Value, Tracked> tracked;
};

} // namespace

/// The formula of an operand whose labels must be `wanted`.
std::optional<Tracked> UseMatcher::operand(Value value, const Labels &wanted) {
  if (auto it = tracked.find(value); it != tracked.end()) {
    auto labels = unite(it->second.labels, wanted);
    if (!labels)
      return std::nullopt;
    return Tracked{it->second.formula, *labels};
  }
  if (std::optional<double> number = getConstant(value))
    return Tracked{Formula::constant(*number), wanted};
  return leaf({value, wanted});
}

/// The cotangent of the probabilities: a product that nothing else is part of.
std::optional<Tracked> UseMatcher::leaf(Labeled from) {
  Labels labels = from.labels;
  SmallVector<Operation *> passed;
  while (auto before = stepBack(from)) {
    if (from.value.getDefiningOp<hlo::BroadcastInDimOp>())
      return std::nullopt;
    passed.push_back(from.value.getDefiningOp());
    from = *before;
  }
  auto product = from.value.getDefiningOp<hlo::DotGeneralOp>();
  if (!product || llvm::is_contained(from.labels, kAny) ||
      product.getDotDimensionNumbers().getLhsContractingDimensions().size() !=
          1)
    return std::nullopt;
  Labeled left =
      stripTransposes(labelOperand(product, true, from.labels, kFeature));
  Labeled right =
      stripTransposes(labelOperand(product, false, from.labels, kFeature));
  bool isLeftValue = left.has(scores.keyLabel);
  if (isLeftValue == right.has(scores.keyLabel))
    return std::nullopt;
  const Labeled &value = isLeftValue ? left : right;
  const Labeled &cotangent = isLeftValue ? right : left;
  if ((uses.value && uses.value != value) ||
      (uses.cotangent && uses.cotangent != cotangent) ||
      (uses.probabilityCotangent && uses.probabilityCotangent != product))
    return std::nullopt;
  uses.value = value;
  uses.cotangent = cotangent;
  uses.probabilityCotangent = product;
  uses.operations.insert(product);
  uses.operations.insert(passed.begin(), passed.end());
  return Tracked{Formula::cotangent(), labels};
}

/// Of the dimensions of the scores all but one are known: that is the one.
void UseMatcher::complete(Labels &labels) const {
  if (llvm::count(labels, kAny) != 1)
    return;
  SmallVector<int> missing;
  for (int label : numberDims(scores.exponential->getResult(0)))
    if (label != kUnit && !llvm::is_contained(labels, label))
      missing.push_back(label);
  if (missing.size() == 1)
    *llvm::find(labels, kAny) = missing.front();
}

std::optional<Tracked> UseMatcher::combine(Operation *op) {
  // The labels of the tracked operand are those of the other.
  Labels wanted(shapeOf(op->getResult(0)).size(), kAny);
  for (auto [label, extent] :
       llvm::zip_equal(wanted, shapeOf(op->getResult(0))))
    if (extent == 1)
      label = kUnit;
  SmallVector<Tracked, 2> operands;
  for (Value value : op->getOperands())
    if (auto it = tracked.find(value); it != tracked.end()) {
      auto united = unite(wanted, it->second.labels);
      if (!united)
        return std::nullopt;
      wanted = *united;
    }
  for (Value value : op->getOperands()) {
    if (!tracked.contains(value) && !getConstant(value))
      complete(wanted);
    auto known = operand(value, wanted);
    if (!known)
      return std::nullopt;
    operands.push_back(std::move(*known));
  }
  const Formula &left = operands.front().formula;
  if (isa<hlo::NegOp>(op))
    return Tracked{left * -1, wanted};
  const Formula &right = operands.back().formula;
  if (isa<hlo::AddOp>(op))
    return Tracked{left + right, wanted};
  if (isa<hlo::SubtractOp>(op))
    return Tracked{left + right * -1, wanted};
  if (isa<hlo::MulOp>(op))
    return Tracked{left * right, wanted};
  if (auto inverse = right.reciprocal(); inverse && isa<hlo::DivOp>(op))
    return Tracked{left * *inverse, wanted};
  return std::nullopt;
}

/// Gradients of masked scores are 0.
std::optional<Tracked> UseMatcher::select(hlo::SelectOp op) {
  if (shapeOf(op.getPred()) != shapeOf(op))
    return std::nullopt;
  for (bool isInverted : {false, true}) {
    Value kept = isInverted ? op.getOnFalse() : op.getOnTrue();
    Value other = isInverted ? op.getOnTrue() : op.getOnFalse();
    auto it = tracked.find(kept);
    if (it == tracked.end() || !isZero(other) || !scores.isMasked() ||
        getMask({op.getPred(), it->second.labels}, isInverted,
                scores.keyLabel) != scores.mask)
      continue;
    return Tracked{it->second.formula * Formula::mask(), it->second.labels};
  }
  return std::nullopt;
}

std::optional<Tracked> UseMatcher::reduce(hlo::ReduceOp op) {
  if (op.getInputs().size() != 1 ||
      getReductionKind(op.getBody()) != Reduction::Sum ||
      !isZero(op.getInitValues()[0]))
    return std::nullopt;
  auto it = tracked.find(op.getInputs()[0]);
  if (it == tracked.end())
    return std::nullopt;
  Tracked result = it->second;
  Labels kept;
  for (auto [dim, label] : llvm::enumerate(it->second.labels)) {
    if (!llvm::is_contained(op.getDimensions(), dim))
      kept.push_back(label);
    else if (label == scores.keyLabel)
      result.formula = result.formula.sumOfRow(shapeOf(op.getInputs()[0])[dim]);
    else if (label != kUnit)
      return std::nullopt;
  }
  result.labels = kept;
  return result;
}

/// Takes the product if it is the first for its purpose, with an operand that
/// is the known one, if there is one.
static bool accept(Product &slot, const Product &product, Labeled &known,
                   const Labeled &other) {
  if (slot || (known && known != other))
    return false;
  slot = product;
  known = other;
  return true;
}

/// The labels of a product's result, for those of its operands.
static Labels labelResult(hlo::DotGeneralOp op, const Labels &left,
                          const Labels &right) {
  auto numbers = op.getDotDimensionNumbers();
  Labels labels;
  for (int64_t dim : numbers.getLhsBatchingDimensions())
    labels.push_back(left[dim]);
  auto addFree = [&](const Labels &side, ArrayRef<int64_t> batch,
                     ArrayRef<int64_t> contracting) {
    for (auto [dim, label] : llvm::enumerate(side))
      if (!llvm::is_contained(batch, dim) &&
          !llvm::is_contained(contracting, dim))
        labels.push_back(label);
  };
  addFree(left, numbers.getLhsBatchingDimensions(),
          numbers.getLhsContractingDimensions());
  addFree(right, numbers.getRhsBatchingDimensions(),
          numbers.getRhsContractingDimensions());
  return labels;
}

/// A product of probabilities, or of the scores' gradient.
bool UseMatcher::sink(hlo::DotGeneralOp op) {
  bool isLeft = tracked.contains(op.getLhs());
  if (isLeft && tracked.contains(op.getRhs()))
    return false;
  const Tracked &known = tracked.at(isLeft ? op.getLhs() : op.getRhs());
  auto numbers = op.getDotDimensionNumbers();
  auto batch = numbers.getLhsBatchingDimensions(),
       otherBatch = numbers.getRhsBatchingDimensions();
  auto contracting = numbers.getLhsContractingDimensions(),
       otherContracting = numbers.getRhsContractingDimensions();
  if (!isLeft) {
    std::swap(batch, otherBatch);
    std::swap(contracting, otherContracting);
  }
  if (llvm::is_contained(known.labels, kAny))
    return false;
  Labeled other{isLeft ? op.getRhs() : op.getLhs(), {}};
  bool overKeys = llvm::any_of(contracting, [&](int64_t dim) {
    return known.labels[dim] == scores.keyLabel;
  });
  if (overKeys && contracting.size() != 1)
    return false;
  bool isProbability = known.formula.isNear(getProbabilities());
  if (!isProbability &&
      !known.formula.isNear(getScoreGradient(scores.scale, scores.isMasked())))
    return false;
  // What is left of the other operand is its features.
  int feature = isProbability ? kFeature : kDepth;
  other.labels.assign(shapeOf(other.value).size(), feature);
  for (auto [mine, theirs] : llvm::zip_equal(batch, otherBatch))
    other.labels[theirs] = known.labels[mine];
  for (auto [mine, theirs] : llvm::zip_equal(contracting, otherContracting))
    other.labels[theirs] = known.labels[mine];
  for (auto [label, extent] :
       llvm::zip_equal(other.labels, shapeOf(other.value)))
    if (extent == 1)
      label = kUnit;
  if (llvm::count(other.labels, feature) != 1)
    return false;
  Product product{op, isLeft ? labelResult(op, known.labels, other.labels)
                             : labelResult(op, other.labels, known.labels)};
  other = stripTransposes(other);
  if (isProbability)
    return overKeys
               ? accept(uses.result, product, uses.value, other)
               : accept(uses.valueGradient, product, uses.cotangent, other);
  Labeled query = scores.query, key = scores.key;
  return overKeys ? accept(uses.queryGradient, product, key, other)
                  : accept(uses.keyGradient, product, query, other);
}

bool UseMatcher::evaluate(Operation *op) {
  if (auto product = dyn_cast<hlo::DotGeneralOp>(op))
    return sink(product);
  std::optional<Tracked> result;
  if (auto choice = dyn_cast<hlo::SelectOp>(op))
    result = select(choice);
  else if (auto sum = dyn_cast<hlo::ReduceOp>(op))
    result = reduce(sum);
  else if (isa<hlo::NegOp, hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp>(
               op))
    result = combine(op);
  else if (op->getNumOperands() == 1 && op->getNumRegions() == 0)
    if (auto labels = stepForward(op, tracked.at(op->getOperand(0)).labels))
      result = Tracked{tracked.at(op->getOperand(0)).formula, *labels};
  if (!result)
    return false;
  tracked.try_emplace(op->getResult(0), std::move(*result));
  return true;
}

std::optional<Uses> UseMatcher::run() {
  Operation *first = scores.exponential;
  Block *block = first->getBlock();
  auto isBefore = [](Operation *a, Operation *b) {
    return a != b && a->isBeforeInBlock(b);
  };
  std::set<Operation *, decltype(isBefore)> pending(isBefore);
  auto addUsers = [&](Operation *op) {
    for (Operation *user : op->getUsers())
      if (Operation *inBlock = block->findAncestorOpInBlock(*user))
        pending.insert(inBlock);
  };
  tracked.try_emplace(
      first->getResult(0),
      Tracked{Formula::exponential(), numberDims(first->getResult(0))});
  addUsers(first);
  while (!pending.empty()) {
    Operation *op = *pending.begin();
    pending.erase(pending.begin());
    if (!evaluate(op)) {
      if (reason.empty())
        reason = "its probabilities are used by a " + nameOf(op) +
                 " that is no part of attention";
      continue;
    }
    uses.operations.insert(op);
    if (tracked.contains(op->getResult(0)))
      addUsers(op);
  }
  if (!reason.empty() || (!uses.result && !uses.hasGradient()))
    return std::nullopt;
  if (uses.hasGradient() && (!uses.cotangent || !uses.value)) {
    reason = "its gradient has no product with its values";
    return std::nullopt;
  }
  return uses;
}

std::optional<Uses> matchUses(const Scores &scores, Reason &reason) {
  return UseMatcher(scores, reason).run();
}

} // namespace whale::attention
