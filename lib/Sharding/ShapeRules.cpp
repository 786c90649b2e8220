//===- ShapeRules.cpp - Sharding rules of data movement ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation that moves elements, or makes constants or iotas. Out: its
// factors (OpRule.h).
//
// Dimensions that go over as they are share a factor. Of one that is cut or
// extended (slice, concatenate, pad), operand and result share a minor factor,
// the largest block that divides all its boundaries. A reshape has a factor for
// each piece that both shapes have. What moves elements is linear in them, so
// that partial sums pass.
//
// Cost: linear in ranks and operands, but for searches in lists of dimensions,
// which are quadratic in the rank, and for a reshape: its dimensions times the
// boundaries of both shapes.
//
//===----------------------------------------------------------------------===//

#include "OpRuleBuilder.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static OpRule broadcastInDim(hlo::BroadcastInDimOp op) {
  OpRuleBuilder builder(op);
  ArrayRef<int64_t> dims = op.getBroadcastDimensions();
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim) {
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {resultRef(0), unsigned(dim)}};
    const auto *it = llvm::find(dims, dim);
    if (it != dims.end()) {
      unsigned source = it - dims.begin();
      if (builder.size(operandRef(0), source) ==
          builder.size(resultRef(0), dim))
        places.push_back({operandRef(0), source});
    }
    builder.same(places);
  }
  builder.linear({0});
  return builder.take();
}

static OpRule transpose(hlo::TransposeOp op) {
  OpRuleBuilder builder(op);
  for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
    builder.same(
        {{resultRef(0), unsigned(dim)}, {operandRef(0), unsigned(source)}});
  builder.linear({0});
  return builder.take();
}

/// The products of the minor dimensions of `shape`: {12, 4, 1} for [2, 3, 4],
/// without those of dimensions of extent 1.
static SmallVector<int64_t> minorProducts(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> products;
  int64_t product = 1;
  for (int64_t size : llvm::reverse(shape)) {
    product *= size;
    products.push_back(product);
  }
  return products;
}

/// Dimensions are matched from the minor end. Where both sides have been
/// multiplied up to the same product a group ends; in a group the boundaries
/// of both sides become those of factors if each divides the next, otherwise
/// no cut of one side is a cut of the other and the group is blocked.
static OpRule reshape(hlo::ReshapeOp op) {
  OpRuleBuilder builder(op);
  ArrayRef<int64_t> from = builder.shape(operandRef(0));
  ArrayRef<int64_t> to = builder.shape(resultRef(0));
  if (llvm::is_contained(from, 0))
    return builder.take();

  SmallVector<int64_t> cuts = minorProducts(from);
  llvm::append_range(cuts, minorProducts(to));
  cuts.push_back(1);
  llvm::sort(cuts);
  cuts.erase(llvm::unique(cuts), cuts.end());

  // Pieces between neighbouring cuts; a pair that doesn't divide ends the
  // chain there, and the dimensions that contain it stay blocked.
  using Piece = std::pair<int64_t, int64_t>;
  auto piecesOf = [&](ArrayRef<int64_t> shape) {
    SmallVector<SmallVector<Piece>> dims(shape.size());
    int64_t minor = 1;
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      int64_t major = minor * shape[dim];
      bool divides = true;
      for (size_t i = cuts.size() - 1; i-- > 0;) {
        if (cuts[i] < minor || cuts[i + 1] > major)
          continue;
        divides &= cuts[i + 1] % cuts[i] == 0;
        dims[dim].push_back({cuts[i], cuts[i + 1]});
      }
      if (!divides)
        dims[dim].clear();
      minor = major;
    }
    return dims;
  };
  auto before = piecesOf(from), after = piecesOf(to);
  llvm::DenseMap<Piece, unsigned> sides, factors;
  for (const auto &dims : {before, after})
    for (const SmallVector<Piece> &dim : dims)
      for (Piece piece : dim)
        ++sides[piece];
  auto addDims = [&](TensorRef tensor, ArrayRef<SmallVector<Piece>> dims) {
    for (auto [dim, pieces] : llvm::enumerate(dims))
      for (Piece piece : pieces) {
        auto [it, isNew] = factors.try_emplace(piece, 0);
        // What is a piece on one side alone can't be split.
        if (isNew)
          it->second = *builder.factor(piece.second / piece.first,
                                       sides[piece] == 2 ? FactorKind::Parallel
                                                         : FactorKind::Blocked);
        builder.append(tensor, dim, it->second);
      }
  };
  addDims(operandRef(0), before);
  addDims(resultRef(0), after);
  builder.linear({0});
  return builder.take();
}

static OpRule slice(hlo::SliceOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim) {
    int64_t size = builder.size(operandRef(0), dim);
    int64_t start = op.getStartIndices()[dim];
    int64_t limit = op.getLimitIndices()[dim];
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {operandRef(0), unsigned(dim)}, {resultRef(0), unsigned(dim)}};
    if (start == 0 && limit == size && op.getStrides()[dim] == 1)
      builder.same(places);
    else if (op.getStrides()[dim] == 1)
      builder.sameTail(places, std::gcd(std::gcd(start, limit), size));
  }
  builder.linear({0});
  return builder.take();
}

static OpRule concatenate(hlo::ConcatenateOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim) {
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {resultRef(0), unsigned(dim)}};
    int64_t tail = 0;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      places.push_back({operandRef(i), unsigned(dim)});
      tail = std::gcd(tail, builder.size(operandRef(i), dim));
    }
    if (dim != int64_t(op.getDimension()))
      builder.same(places);
    else
      builder.sameTail(places, tail);
  }
  builder.linear(llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands())));
  return builder.take();
}

static OpRule pad(hlo::PadOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim) {
    int64_t low = op.getEdgePaddingLow()[dim];
    int64_t high = op.getEdgePaddingHigh()[dim];
    int64_t size = builder.size(operandRef(0), dim);
    SmallVector<std::pair<TensorRef, unsigned>> places{
        {operandRef(0), unsigned(dim)}, {resultRef(0), unsigned(dim)}};
    // What an empty operand lacks cannot tell how the padding is cut.
    if (size == 0 || (op.getInteriorPadding()[dim] != 0 && size > 1))
      continue;
    if (low == 0 && high == 0)
      builder.same(places);
    else
      builder.sameTail(places,
                       std::gcd(std::gcd(std::abs(low), std::abs(high)), size));
  }
  // A padding value that isn't zero would count once for each device.
  builder.linear({0, 1});
  return builder.take();
}

static OpRule reverse(hlo::ReverseOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim)
    if (!llvm::is_contained(op.getDimensions(), dim))
      builder.same(
          {{operandRef(0), unsigned(dim)}, {resultRef(0), unsigned(dim)}});
  builder.linear({0});
  return builder.take();
}

/// Constants of one value and iotas can be made in any split.
static OpRule source(Operation *op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim)
    builder.same({{resultRef(0), unsigned(dim)}});
  return builder.take();
}

static OpRule dynamicSlice(hlo::DynamicSliceOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim)
    if (builder.size(operandRef(0), dim) == builder.size(resultRef(0), dim))
      builder.same(
          {{operandRef(0), unsigned(dim)}, {resultRef(0), unsigned(dim)}});
  builder.linear({0});
  return builder.take();
}

static OpRule dynamicUpdateSlice(hlo::DynamicUpdateSliceOp op) {
  OpRuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.rank(resultRef(0)); ++dim)
    if (builder.size(operandRef(0), dim) == builder.size(operandRef(1), dim))
      builder.same({{operandRef(0), unsigned(dim)},
                    {operandRef(1), unsigned(dim)},
                    {resultRef(0), unsigned(dim)}});
  builder.linear({0, 1});
  return builder.take();
}

std::optional<OpRule> getShapeRule(Operation *op) {
  using Result = std::optional<OpRule>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](hlo::BroadcastInDimOp op) { return broadcastInDim(op); })
      .Case([](hlo::TransposeOp op) { return transpose(op); })
      .Case([](hlo::ReshapeOp op) { return reshape(op); })
      .Case([](hlo::SliceOp op) { return slice(op); })
      .Case([](hlo::ConcatenateOp op) { return concatenate(op); })
      .Case([](hlo::PadOp op) { return pad(op); })
      .Case([](hlo::ReverseOp op) { return reverse(op); })
      .Case([](hlo::DynamicSliceOp op) { return dynamicSlice(op); })
      .Case([](hlo::DynamicUpdateSliceOp op) { return dynamicUpdateSlice(op); })
      .Case([](hlo::IotaOp op) { return source(op); })
      .Case([](hlo::ConstantOp op) -> Result {
        if (!op.getValue().isSplat())
          return std::nullopt;
        return source(op);
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace whale
