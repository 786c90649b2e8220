//===- WhaleAttentionOps.cpp - Attention ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifiers of whale.attention and whale.attention_gradient, and what both
// answer: letters, extents, FLOPs.
//
// As in the notation of einsum, each dimension of a tensor has a letter, and
// dimensions of one letter have one extent. The query is checked first: its
// letters besides q, d and 1 are the heads, and no other tensor may have
// further ones. FLOPs count pairs of a row and a key; with `causal` they are
// counted row by row. Cost: quadratic in the rank of each tensor;
// getAttentionFlops with `causal` is linear in the rows.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/Attention.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace whale;

bool whale::isAttentionElement(Type element) {
  return element.isF32() || element.isBF16() || element.isF16();
}

bool whale::isAttention(Operation *op) {
  return isa<AttentionOp, AttentionGradientOp>(op);
}

/// The letters of what both operations have; those of an absent mask or bias
/// are left out.
template <typename Op>
static SmallVector<StringRef> getSharedLetters(Op op) {
  SmallVector<StringRef> letters{op.getQueryDims(), op.getKeyDims(),
                                 op.getValueDims()};
  if (op.getMask())
    letters.push_back(op.getMaskDims().value_or(StringRef()));
  if (op.getBias())
    letters.push_back(op.getBiasDims().value_or(StringRef()));
  return letters;
}

AttentionLetters whale::getAttentionLetters(Operation *op) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return {getSharedLetters(forward), {forward.getResultDims()}};
  auto gradient = cast<AttentionGradientOp>(op);
  AttentionLetters letters{getSharedLetters(gradient),
                           {gradient.getQueryResultDims(),
                            gradient.getKeyResultDims(),
                            gradient.getValueResultDims()}};
  letters.operands.push_back(gradient.getCotangentDims());
  return letters;
}

std::optional<int64_t> whale::getAttentionCausal(Operation *op) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return forward.getCausal();
  return cast<AttentionGradientOp>(op).getCausal();
}

AttentionSizes whale::getAttentionSizes(Operation *op) {
  AttentionSizes sizes;
  AttentionLetters letters = getAttentionLetters(op);
  auto extentOf = [&](unsigned operand, char letter) {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    return type.getDimSize(letters.operands[operand].find(letter));
  };
  sizes.rows = extentOf(0, kRowLetter);
  sizes.keys = extentOf(1, kKeyLetter);
  sizes.depth = extentOf(0, kDepthLetter);
  sizes.features = extentOf(2, kFeatureLetter);
  for (char letter : letters.operands[0])
    if (letter != kRowLetter && letter != kDepthLetter && letter != kUnitLetter)
      sizes.heads *= extentOf(0, letter);
  return sizes;
}

int64_t whale::getAttentionFlops(Operation *op) {
  AttentionSizes sizes = getAttentionSizes(op);
  int64_t pairs = sizes.rows * sizes.keys;
  if (std::optional<int64_t> causal = getAttentionCausal(op)) {
    pairs = 0;
    for (int64_t row = 0; row < sizes.rows; ++row)
      pairs += std::clamp<int64_t>(row + *causal + 1, 0, sizes.keys);
  }
  bool isForward = isa<AttentionOp>(op);
  int64_t terms = isForward ? sizes.depth + sizes.features
                            : 3 * sizes.depth + 2 * sizes.features;
  int64_t flops = 2;
  for (int64_t factor : {pairs, sizes.heads, terms})
    if (llvm::MulOverflow(flops, factor, flops))
      return std::numeric_limits<int64_t>::max();
  return flops;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {
/// Checks one tensor after the other against the letters seen so far.
class LetterVerifier {
public:
  explicit LetterVerifier(Operation *op) : op(op) {}

  /// `needed` are letters that it must have, besides heads; if `allHeads`, it
  /// has those of the query.
  LogicalResult check(StringRef name, Value value, StringRef letters,
                      StringRef needed, bool allHeads, StringRef optional = "");

private:
  Operation *op;
  std::map<char, int64_t> extents;
  std::optional<std::string> heads;
};
} // namespace

LogicalResult LetterVerifier::check(StringRef name, Value value,
                                    StringRef letters, StringRef needed,
                                    bool allHeads, StringRef optional) {
  auto type = cast<RankedTensorType>(value.getType());
  if (int64_t(letters.size()) != type.getRank())
    return op->emitOpError("has ")
           << letters.size() << " letters for the " << type.getRank()
           << " dimensions of its " << name;
  std::string found;
  for (auto [letter, extent] : llvm::zip_equal(letters, type.getShape())) {
    if (letter == kUnitLetter ? extent != 1 : !llvm::isLower(letter))
      return op->emitOpError("cannot have the letter '")
             << letter << "' for a dimension of " << extent << " of its "
             << name;
    if (letter == kUnitLetter)
      continue;
    if (StringRef(found).contains(letter))
      return op->emitOpError("has the letter '")
             << letter << "' twice in \"" << letters << "\"";
    found += letter;
    auto [it, isNew] = extents.try_emplace(letter, extent);
    if (it->second != extent)
      return op->emitOpError("has extents ")
             << it->second << " and " << extent << " for the letter '" << letter
             << "'";
  }
  for (char letter : needed)
    if (!StringRef(found).contains(letter))
      return op->emitOpError("needs the letter '")
             << letter << "' in its " << name;
  std::string own;
  for (char letter : found)
    if (!needed.contains(letter) && !optional.contains(letter))
      own += letter;
  llvm::sort(own);
  if (!heads)
    heads = own;
  for (char letter : own)
    if (StringRef("qkde").contains(letter) ||
        !StringRef(*heads).contains(letter))
      return op->emitOpError("cannot have the letter '")
             << letter << "' in its " << name;
  if (allHeads && own != *heads)
    return op->emitOpError("needs all heads in its ") << name;
  return success();
}

template <typename Op>
static LogicalResult verifyShared(Op op, LetterVerifier &letters) {
  if (failed(letters.check("query", op.getQuery(), op.getQueryDims(), "qd",
                           true)) ||
      failed(letters.check("key", op.getKey(), op.getKeyDims(), "kd", false)) ||
      failed(letters.check("value", op.getValue(), op.getValueDims(), "ke",
                           false)))
    return failure();
  auto checkOptional = [&](StringRef name, Value value,
                           std::optional<StringRef> dims) -> LogicalResult {
    if (!value)
      return success();
    if (!dims)
      return op.emitOpError("has no letters for its ") << name;
    return letters.check(name, value, *dims, "", false, "qk");
  };
  if (failed(checkOptional("mask", op.getMask(), op.getMaskDims())) ||
      failed(checkOptional("bias", op.getBias(), op.getBiasDims())))
    return failure();
  if (op.getFill() && !op.getMask() && !op.getCausal())
    return op.emitOpError("has 'fill' and nothing that is masked");
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                           llvm::to_vector_of<Value>(op->getResults()))) {
    Type element = getElementTypeOrSelf(value);
    bool isMask = value == op.getMask();
    if (isMask ? !element.isInteger(1) : !isAttentionElement(element))
      return op.emitOpError("cannot have ")
             << (isMask ? "a mask" : "a tensor") << " of " << element;
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  LetterVerifier letters(*this);
  if (failed(verifyShared(*this, letters)))
    return failure();
  return letters.check("result", getResult(), getResultDims(), "qe", true);
}

LogicalResult AttentionGradientOp::verify() {
  LetterVerifier letters(*this);
  if (failed(verifyShared(*this, letters)) ||
      failed(letters.check("cotangent", getCotangent(), getCotangentDims(),
                           "qe", true)) ||
      failed(letters.check("query's result", getQueryResult(),
                           getQueryResultDims(), "qd", true)) ||
      failed(letters.check("key's result", getKeyResult(), getKeyResultDims(),
                           "kd", true)))
    return failure();
  return letters.check("value's result", getValueResult(), getValueResultDims(),
                       "ke", true);
}
