//===- Labels.cpp - Dimensions across operations --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a value, and for each dimension a label: which dimension of the scores it
// is. Out: the labels of its operand, or of its result.
//
// Labels go backward from a result to its operand, or forward, through
// operations that only move or convert elements; any other operation ends the
// path. Dimensions of one element all have the same label, so that a reshape
// that adds or drops some of them can be followed: the others keep their order.
// Constants are evaluated in f64, through at most 6 operations. Cost: a step is
// linear in the rank; a constant has at most two operands at each of 6 levels.
//
//===----------------------------------------------------------------------===//

#include "Labels.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale::attention {

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

Labels numberDims(Value value) {
  Labels labels;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(value)))
    labels.push_back(extent == 1 ? kUnit : int(dim));
  return labels;
}

static bool isFloatConversion(hlo::ConvertOp op) {
  return isa<FloatType>(getElementTypeOrSelf(op.getOperand())) &&
         isa<FloatType>(getElementTypeOrSelf(op.getType()));
}

/// Gives the dimensions of `to` the labels of those of `from` that have more
/// than one element, in order; none if these are not the same.
static std::optional<Labels> relabel(Value from, const Labels &labels,
                                     Value to) {
  Labels known;
  SmallVector<int64_t> extents;
  for (auto [label, extent] : llvm::zip_equal(labels, shapeOf(from)))
    if (extent != 1) {
      known.push_back(label);
      extents.push_back(extent);
    }
  Labels result;
  size_t next = 0;
  for (int64_t extent : shapeOf(to)) {
    if (extent == 1) {
      result.push_back(kUnit);
      continue;
    }
    if (next == known.size() || extents[next] != extent)
      return std::nullopt;
    result.push_back(known[next++]);
  }
  return next == known.size() ? std::optional(result) : std::nullopt;
}

std::optional<Labeled> stepBack(const Labeled &from) {
  Operation *op = from.value.getDefiningOp();
  if (!op)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<Labeled>>(op)
      .Case([&](hlo::ConvertOp convert) -> std::optional<Labeled> {
        if (!isFloatConversion(convert))
          return std::nullopt;
        return Labeled{convert.getOperand(), from.labels};
      })
      .Case([&](hlo::TransposeOp transpose) -> std::optional<Labeled> {
        Labels labels(from.labels.size());
        for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
          labels[source] = from.labels[dim];
        return Labeled{transpose.getOperand(), labels};
      })
      .Case([&](hlo::BroadcastInDimOp broadcast) -> std::optional<Labeled> {
        Labels labels;
        for (auto [extent, dim] :
             llvm::zip_equal(shapeOf(broadcast.getOperand()),
                             broadcast.getBroadcastDimensions()))
          labels.push_back(extent == 1 ? kUnit : from.labels[dim]);
        return Labeled{broadcast.getOperand(), labels};
      })
      .Case([&](hlo::ReshapeOp reshape) -> std::optional<Labeled> {
        auto labels = relabel(reshape, from.labels, reshape.getOperand());
        if (!labels)
          return std::nullopt;
        return Labeled{reshape.getOperand(), *labels};
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Labels> stepForward(Operation *op, const Labels &labels) {
  return llvm::TypeSwitch<Operation *, std::optional<Labels>>(op)
      .Case([&](hlo::ConvertOp convert) -> std::optional<Labels> {
        return isFloatConversion(convert) ? std::optional(labels)
                                          : std::nullopt;
      })
      .Case([&](hlo::TransposeOp transpose) -> std::optional<Labels> {
        Labels result;
        for (int64_t source : transpose.getPermutation())
          result.push_back(labels[source]);
        return result;
      })
      .Case([&](hlo::BroadcastInDimOp broadcast) -> std::optional<Labels> {
        Labels result;
        for (int64_t extent : shapeOf(broadcast))
          result.push_back(extent == 1 ? kUnit : kAny);
        for (auto [dim, to] :
             llvm::enumerate(broadcast.getBroadcastDimensions()))
          if (labels[dim] != kUnit)
            result[to] = labels[dim];
        return result;
      })
      .Case([&](hlo::ReshapeOp reshape) -> std::optional<Labels> {
        return relabel(reshape.getOperand(), labels, reshape);
      })
      .Default([](Operation *) { return std::nullopt; });
}

Labeled stripTransposes(Labeled from) {
  while (Operation *op = from.value.getDefiningOp()) {
    auto convert = dyn_cast<hlo::ConvertOp>(op);
    Type element =
        convert ? getElementTypeOrSelf(convert.getOperand()) : Type();
    bool widens = convert && (element.isBF16() || element.isF16()) &&
                  getElementTypeOrSelf(convert.getType()).isF32();
    if (!widens && !isa<hlo::TransposeOp>(op))
      break;
    from = *stepBack(from);
  }
  return from;
}

std::optional<Labels> unite(const Labels &a, const Labels &b) {
  Labels result;
  for (auto [left, right] : llvm::zip_equal(a, b)) {
    if (left != right && left != kAny && right != kAny)
      return std::nullopt;
    result.push_back(left == kAny ? right : left);
  }
  return result;
}

/// `depth` operations are looked through.
static std::optional<double> getConstant(Value value, unsigned depth) {
  DenseElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat))) {
    if (!splat.isSplat())
      return std::nullopt;
    if (isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().convertToDouble();
    if (splat.getElementType().isSignlessInteger())
      return double(splat.getSplatValue<APInt>().getSExtValue());
    return std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || op->getNumOperands() == 0 ||
      op->getNumOperands() > 2 ||
      !isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::ConvertOp, hlo::SqrtOp,
           hlo::RsqrtOp, hlo::NegOp, hlo::MulOp, hlo::DivOp>(op))
    return std::nullopt;
  SmallVector<double, 2> operands;
  for (Value operand : op->getOperands()) {
    // Integers would be rounded.
    if (!isa<FloatType>(getElementTypeOrSelf(operand)) &&
        !isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::ConvertOp>(op))
      return std::nullopt;
    std::optional<double> number = getConstant(operand, depth - 1);
    if (!number)
      return std::nullopt;
    operands.push_back(*number);
  }
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](hlo::SqrtOp) { return std::sqrt(operands[0]); })
      .Case([&](hlo::RsqrtOp) { return 1 / std::sqrt(operands[0]); })
      .Case([&](hlo::NegOp) { return -operands[0]; })
      .Case([&](hlo::MulOp) { return operands[0] * operands[1]; })
      .Case([&](hlo::DivOp) { return operands[0] / operands[1]; })
      .Default([&](Operation *) { return operands[0]; });
}

std::optional<double> getConstant(Value value) {
  return getConstant(value, /*depth=*/6);
}

} // namespace whale::attention
