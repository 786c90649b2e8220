//===- FormAttention.cpp - whale-form-attention ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each exponential may be that of a softmax between two products. What is found
// of the operations around it (FormAttention/Match.h) says with which letters
// the attention operations get the tensors as they are; transpositions of
// operands and results become orders of letters. The cost is a walk over the
// users of each softmax.
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "FormAttention/Match.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace whale {
#define GEN_PASS_DEF_FORMATTENTION
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
using namespace whale::attention;
namespace hlo = mlir::stablehlo;

namespace {

class Former {
public:
  Former(const Scores &scores, const Uses &uses)
      : scores(scores), uses(uses),
        extents(shapeOf(scores.exponential->getResult(0))) {}

  /// Why there is no operation for it; empty if there is.
  Reason check();
  /// Adds to `replaced` what is unused then.
  void form(RewriterBase &rewriter, llvm::SetVector<Operation *> &replaced);

private:
  bool chooseRow();
  void chooseLetters();
  std::string lettersOf(ArrayRef<int> labels) const;
  StringAttr textOf(RewriterBase &rewriter, const Labeled &tensor) const;
  int64_t extentOf(int label) const;
  /// The operation after which all operands of the gradient are there; null if
  /// they are so from the start.
  Operation *findLastOperand() const;
  std::pair<Value, Value>
  createOptional(RewriterBase &rewriter, Location loc,
                 SmallVectorImpl<Operation *> &created) const;
  void formResult(RewriterBase &rewriter,
                  llvm::SetVector<Operation *> &replaced);
  void formGradient(RewriterBase &rewriter,
                    llvm::SetVector<Operation *> &replaced);

  const Scores &scores;
  const Uses &uses;
  ArrayRef<int64_t> extents;
  int row = -1;
  /// By label.
  std::map<int, char> letters;
};

/// A result as it will be used: its letters, and the value that it replaces.
struct Wanted {
  Value replaced;
  Labels labels;
};

} // namespace

/// Looks through transpositions that are the only use of a product.
static Wanted skipTransposes(Product product,
                             llvm::SetVector<Operation *> &skipped) {
  Wanted wanted{product.op.getResult(), product.labels};
  while (wanted.replaced.hasOneUse()) {
    auto transpose = dyn_cast<hlo::TransposeOp>(*wanted.replaced.user_begin());
    if (!transpose)
      break;
    wanted.labels = *stepForward(transpose, wanted.labels);
    wanted.replaced = transpose;
    skipped.insert(transpose);
  }
  return wanted;
}

int64_t Former::extentOf(int label) const {
  if (label == kUnit)
    return 1;
  if (label >= 0 && label < int(extents.size()))
    return extents[label];
  const Labeled &tensor = label == kDepth ? scores.query : uses.value;
  const auto *place = llvm::find(tensor.labels, label);
  return shapeOf(tensor.value)[place - tensor.labels.begin()];
}

/// Rows are a dimension that neither keys nor values have: that of a causal
/// mask, else the largest.
bool Former::chooseRow() {
  for (int label : numberDims(scores.exponential->getResult(0))) {
    if (label == kUnit || scores.key.has(label) || uses.value.has(label))
      continue;
    if (row == -1 || extents[label] > extents[row])
      row = label;
  }
  if (scores.mask.causal)
    row = scores.mask.causal->row;
  return row != -1;
}

void Former::chooseLetters() {
  letters = {{kUnit, kUnitLetter},
             {scores.keyLabel, kKeyLetter},
             {row, kRowLetter},
             {kDepth, kDepthLetter},
             {kFeature, kFeatureLetter}};
  StringRef heads = "bhgnmacfijloprstuvwxyz";
  size_t next = 0;
  for (int label : numberDims(scores.exponential->getResult(0)))
    if (letters.try_emplace(label, heads[next % heads.size()]).second)
      ++next;
}

std::string Former::lettersOf(ArrayRef<int> labels) const {
  std::string text;
  for (int label : labels)
    text += letters.at(label);
  return text;
}

StringAttr Former::textOf(RewriterBase &rewriter, const Labeled &tensor) const {
  return tensor ? rewriter.getStringAttr(lettersOf(tensor.labels))
                : StringAttr();
}

Reason Former::check() {
  auto isOfAttention = [&](Operation *op) {
    return scores.operations.contains(op) || uses.operations.contains(op);
  };
  if (!chooseRow())
    return "keys or values have all dimensions of its queries: heads have one "
           "row";
  if (scores.key.has(row) || uses.value.has(row))
    return "its mask compares other dimensions than rows and keys";
  if (extents.size() > 16)
    return "it has too many dimensions";
  Labels all;
  for (int label : numberDims(scores.exponential->getResult(0)))
    if (label != kUnit)
      all.push_back(label);
  auto hasAllHeads = [&](const Labeled &tensor) {
    return llvm::all_of(all, [&](int label) {
      return label == scores.keyLabel || tensor.has(label);
    });
  };
  if (!hasAllHeads(scores.query) ||
      (uses.cotangent && !hasAllHeads(uses.cotangent)))
    return "its queries or cotangents are shared by heads";
  SmallVector<Product> products{uses.result, uses.queryGradient,
                                uses.keyGradient, uses.valueGradient};
  for (const Product &product : {uses.keyGradient, uses.valueGradient})
    if (product && llvm::is_contained(product.labels, row))
      return "the gradient of keys or values differs from row to row";
  for (Operation *op : llvm::concat<Operation *const>(
           scores.operations.getArrayRef(), uses.operations.getArrayRef())) {
    auto isProduct = [&](const Product &product) { return product.op == op; };
    if (op->getBlock() != scores.exponential->getBlock())
      return "it is partly in a loop or branch";
    if (op->getAttr(kStrategyAttr) !=
        scores.exponential->getAttr(kStrategyAttr))
      return "it belongs to several TaskGraphs";
    if (llvm::any_of(products, isProduct)) {
      Type element = getElementTypeOrSelf(op->getResult(0));
      if (!isAttentionElement(element))
        return "its results are neither of f32 nor of bf16 or f16";
      continue;
    }
    for (Operation *user : op->getUsers())
      if (!isOfAttention(user))
        return "its scores are used by a " + nameOf(user) +
               " that is no part of attention";
  }
  for (const Labeled &tensor :
       {scores.query, scores.key, uses.value, uses.cotangent, scores.bias}) {
    if (!tensor)
      continue;
    Type element = getElementTypeOrSelf(tensor.value);
    if (llvm::is_contained(shapeOf(tensor.value), 0))
      return "it has no elements";
    if (!isAttentionElement(element))
      return "its operands are neither of f32 nor of bf16 or f16";
  }
  if (!uses.hasGradient())
    return {};
  Operation *last = findLastOperand();
  for (const Product &product : ArrayRef(products).drop_front())
    if (product && last && !last->isBeforeInBlock(product.op))
      return "its gradient is computed before its operands";
  return {};
}

Operation *Former::findLastOperand() const {
  Operation *last = nullptr;
  Block *block = scores.exponential->getBlock();
  for (const Labeled &tensor : {scores.query, scores.key, uses.value,
                                uses.cotangent, scores.mask.kept, scores.bias})
    if (Operation *op = tensor ? tensor.value.getDefiningOp() : nullptr)
      if (op->getBlock() == block && (!last || last->isBeforeInBlock(op)))
        last = op;
  return last;
}

/// The mask as it is kept, and the bias as it is added; each may be null.
std::pair<Value, Value>
Former::createOptional(RewriterBase &rewriter, Location loc,
                       SmallVectorImpl<Operation *> &created) const {
  Value mask = scores.mask.kept.value, bias = scores.bias.value;
  if (scores.mask.isInverted) {
    mask = hlo::NotOp::create(rewriter, loc, mask.getType(), mask);
    created.push_back(mask.getDefiningOp());
  }
  if (scores.subtractsBias) {
    bias = hlo::NegOp::create(rewriter, loc, bias.getType(), bias);
    created.push_back(bias.getDefiningOp());
  }
  return {mask, bias};
}

/// What both operations have but operands and letters of the result.
static void addOptions(RewriterBase &rewriter, Operation *op,
                       const Scores &scores) {
  bool isMasked = scores.mask.kept || scores.mask.causal;
  if (isMasked && std::isfinite(*scores.fill))
    op->setAttr("fill", rewriter.getF64FloatAttr(*scores.fill));
  if (scores.mask.causal)
    op->setAttr("causal",
                rewriter.getI64IntegerAttr(scores.mask.causal->offset));
}

void Former::formResult(RewriterBase &rewriter,
                        llvm::SetVector<Operation *> &replaced) {
  Wanted wanted = skipTransposes(uses.result, replaced);
  rewriter.setInsertionPoint(uses.result.op);
  Operation *source = uses.result.op;
  Location loc = source->getLoc();
  SmallVector<Operation *> created;
  auto [mask, bias] = createOptional(rewriter, loc, created);
  auto op = AttentionOp::create(
      rewriter, loc, wanted.replaced.getType(), scores.query.value,
      scores.key.value, uses.value.value, mask, bias,
      textOf(rewriter, scores.query), textOf(rewriter, scores.key),
      textOf(rewriter, uses.value), textOf(rewriter, scores.mask.kept),
      textOf(rewriter, scores.bias),
      rewriter.getStringAttr(lettersOf(wanted.labels)),
      rewriter.getF64FloatAttr(scores.scale), FloatAttr(), IntegerAttr());
  addOptions(rewriter, op, scores);
  created.push_back(op);
  for (Operation *each : created)
    carryAttributes(source, each);
  rewriter.replaceAllUsesWith(wanted.replaced, op.getResult());
}

/// The sum over the first `count` dimensions.
static Value createSum(RewriterBase &rewriter, Location loc, Value value,
                       int64_t count, SmallVectorImpl<Operation *> &created) {
  auto type = cast<RankedTensorType>(value.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = hlo::ConstantOp::create(
      rewriter, loc, cast<DenseElementsAttr>(rewriter.getZeroAttr(scalar)));
  auto sum = hlo::ReduceOp::create(
      rewriter, loc, type.clone(type.getShape().drop_front(count)), value, zero,
      llvm::to_vector(llvm::seq<int64_t>(0, count)));
  OpBuilder::InsertionGuard guard(rewriter);
  Block *body =
      rewriter.createBlock(&sum.getBody(), {}, {scalar, scalar}, {loc, loc});
  Value both = hlo::AddOp::create(rewriter, loc, body->getArgument(0),
                                  body->getArgument(1));
  hlo::ReturnOp::create(rewriter, loc, both);
  created.append({zero.getDefiningOp(), sum});
  return sum.getResult(0);
}

void Former::formGradient(RewriterBase &rewriter,
                          llvm::SetVector<Operation *> &replaced) {
  // Where the first product of the gradient is, if the operands are there.
  Operation *first = nullptr;
  for (hlo::DotGeneralOp op : {uses.probabilityCotangent, uses.queryGradient.op,
                               uses.keyGradient.op, uses.valueGradient.op})
    if (op && (!first || op->isBeforeInBlock(first)))
      first = op;
  Operation *last = findLastOperand();
  if (last && !last->isBeforeInBlock(first))
    rewriter.setInsertionPointAfter(last);
  else
    rewriter.setInsertionPoint(first);
  Operation *source = first;
  Location loc = source->getLoc();
  Labels heads;
  for (int label : numberDims(scores.exponential->getResult(0)))
    if (label != kUnit && label != scores.keyLabel && label != row)
      heads.push_back(label);

  // Of each result: what is replaced, and the heads that are summed over.
  SmallVector<Wanted> wanted;
  SmallVector<int64_t> summed;
  SmallVector<Type> types;
  SmallVector<StringAttr> texts;
  for (auto [product, own, feature] :
       {std::tuple<const Product &, int, int>{uses.queryGradient, row, kDepth},
        {uses.keyGradient, scores.keyLabel, kDepth},
        {uses.valueGradient, scores.keyLabel, kFeature}}) {
    Wanted result;
    if (product) {
      result = skipTransposes(product, replaced);
    } else {
      result.labels = heads;
      result.labels.append({own, feature});
    }
    Labels labels;
    for (int head : heads)
      if (!llvm::is_contained(result.labels, head))
        labels.push_back(head);
    summed.push_back(labels.size());
    llvm::append_range(labels, result.labels);
    SmallVector<int64_t> shape;
    for (int label : labels)
      shape.push_back(extentOf(label));
    Type element = product && summed.back() == 0
                       ? getElementTypeOrSelf(result.replaced)
                       : Type(rewriter.getF32Type());
    types.push_back(RankedTensorType::get(shape, element));
    texts.push_back(rewriter.getStringAttr(lettersOf(labels)));
    wanted.push_back(std::move(result));
  }

  SmallVector<Operation *> created;
  auto [mask, bias] = createOptional(rewriter, loc, created);
  auto op = AttentionGradientOp::create(
      rewriter, loc, types[0], types[1], types[2], scores.query.value,
      scores.key.value, uses.value.value, mask, bias, uses.cotangent.value,
      textOf(rewriter, scores.query), textOf(rewriter, scores.key),
      textOf(rewriter, uses.value), textOf(rewriter, scores.mask.kept),
      textOf(rewriter, scores.bias), textOf(rewriter, uses.cotangent), texts[0],
      texts[1], texts[2], rewriter.getF64FloatAttr(scores.scale), FloatAttr(),
      IntegerAttr());
  addOptions(rewriter, op, scores);
  created.push_back(op);
  for (auto [result, old, count] :
       llvm::zip_equal(op.getResults(), wanted, summed)) {
    if (!old.replaced)
      continue;
    Value value = result;
    if (count > 0) {
      value = createSum(rewriter, loc, value, count, created);
      if (value.getType() != old.replaced.getType()) {
        value = hlo::ConvertOp::create(rewriter, loc, old.replaced.getType(),
                                       value);
        created.push_back(value.getDefiningOp());
      }
    }
    rewriter.replaceAllUsesWith(old.replaced, value);
  }
  for (Operation *each : created)
    carryAttributes(source, each);
}

void Former::form(RewriterBase &rewriter,
                  llvm::SetVector<Operation *> &replaced) {
  chooseLetters();
  replaced.insert(scores.operations.begin(), scores.operations.end());
  replaced.insert(uses.operations.begin(), uses.operations.end());
  if (uses.result)
    formResult(rewriter, replaced);
  if (uses.hasGradient())
    formGradient(rewriter, replaced);
}

namespace {

struct FormAttention : whale::impl::FormAttentionBase<FormAttention> {
  using FormAttentionBase::FormAttentionBase;

  void runOnOperation() override {
    SmallVector<hlo::ExpOp> exponentials;
    getOperation().walk([&](hlo::ExpOp op) { exponentials.push_back(op); });
    IRRewriter rewriter(&getContext());
    llvm::SetVector<Operation *> replaced;
    for (hlo::ExpOp op : exponentials)
      form(rewriter, op, replaced);
    while (!replaced.empty()) {
      Operation *op = replaced.pop_back_val();
      if (!isOpTriviallyDead(op))
        continue;
      SmallVector<Operation *> operands;
      for (Value operand : op->getOperands())
        if (Operation *before = operand.getDefiningOp())
          operands.push_back(before);
      rewriter.eraseOp(op);
      replaced.insert(operands.begin(), operands.end());
    }
  }

private:
  void form(RewriterBase &rewriter, hlo::ExpOp op,
            llvm::SetVector<Operation *> &replaced) {
    Scores scores;
    Reason reason;
    std::optional<Uses> uses;
    bool isScore = matchScores(op, scores, reason);
    if (scores.keyLabel == -1 ||
        shapeOf(op)[scores.keyLabel] < std::max<int64_t>(leastKeys, 2))
      return;
    if (isScore)
      uses = matchUses(scores, reason);
    if (uses) {
      Former former(scores, *uses);
      reason = former.check();
      if (reason.empty()) {
        former.form(rewriter, replaced);
        return;
      }
    }
    if (!reason.empty() && looksLikeAttention(op))
      emitRemark(op.getLoc())
          << "attention stays as separate operations: " << reason;
  }
};

} // namespace
