//===- ContractionSide.cpp - Operands of a contraction --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Library/ContractionSide.h"

#include <numeric>

using namespace mlir;
using namespace whale;

/// A matrix product in the library costs a call: below this many rows, a group
/// of dimensions that has no single stride is copied instead of looped over.
static constexpr int64_t kMinRows = 32;

SmallVector<Group> whale::collapse(ArrayRef<Group> dims) {
  SmallVector<Group> result;
  for (Group dim : dims) {
    if (dim.size == 1)
      continue;
    if (!result.empty() && result.back().first == dim.size * dim.first &&
        result.back().second == dim.size * dim.second)
      result.back() = {result.back().size * dim.size, dim.first, dim.second};
    else
      result.push_back(dim);
  }
  if (result.empty())
    result.push_back({1, 0, 0});
  return result;
}

void Side::set(Value operand) {
  value = operand;
  shape = llvm::to_vector(cast<RankedTensorType>(operand.getType()).getShape());
  strides = getDenseStrides(shape);
  from.resize(shape.size());
  std::iota(from.begin(), from.end(), 0);
}

void Side::skipTranspose() {
  auto transpose = value.getDefiningOp<stablehlo::TransposeOp>();
  if (!transpose)
    return;
  value = transpose.getOperand();
  from = llvm::to_vector(transpose.getPermutation());
  SmallVector<int64_t> old =
      getDenseStrides(cast<RankedTensorType>(value.getType()).getShape());
  for (auto [dim, source] : llvm::enumerate(from))
    strides[dim] = old[source];
}

void Side::findFree() {
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) &&
        !llvm::is_contained(contracting, dim))
      free.push_back(dim);
}

int64_t Side::countFree() const {
  int64_t count = 1;
  for (int64_t dim : free)
    count *= shape[dim];
  return count;
}

void Side::transpose(OpBuilder &b, Location loc) {
  bool freeLast = !contractsNeighbours && llvm::any_of(free, [&](int64_t dim) {
    return strides[dim] == 1 && shape[dim] > 1;
  });
  SmallVector<int64_t> order(batch);
  llvm::append_range(order, freeLast ? contracting : free);
  llvm::append_range(order, freeLast ? free : contracting);
  SmallVector<int64_t> to, permutation;
  for (int64_t dim : order) {
    to.push_back(shape[dim]);
    permutation.push_back(from[dim]);
  }
  auto type = cast<RankedTensorType>(value.getType());
  stablehlo::TransposeOp copy = findCopy(b, permutation);
  if (!copy)
    copy = stablehlo::TransposeOp::create(
        b, loc, RankedTensorType::get(to, type.getElementType()), value,
        b.getDenseI64ArrayAttr(permutation));
  set(copy);
  auto count = [&](SmallVector<int64_t> &dims, int64_t from) {
    for (int64_t &dim : dims)
      dim = from++;
  };
  count(batch, 0);
  count(freeLast ? contracting : free, batch.size());
  count(freeLast ? free : contracting,
        order.size() - (freeLast ? free : contracting).size());
}

stablehlo::TransposeOp Side::findCopy(OpBuilder &b,
                                      ArrayRef<int64_t> permutation) const {
  for (Operation *user : value.getUsers()) {
    auto copy = dyn_cast<stablehlo::TransposeOp>(user);
    if (copy && copy.getPermutation() == permutation &&
        copy->getBlock() == b.getInsertionBlock() &&
        b.getInsertionPoint() != b.getInsertionBlock()->end() &&
        copy->isBeforeInBlock(&*b.getInsertionPoint()))
      return copy;
  }
  return {};
}

SmallVector<Group> Side::groups(ArrayRef<int64_t> dims,
                                ArrayRef<int64_t> other) const {
  SmallVector<Group> result;
  for (auto [dim, stride] : llvm::zip_equal(dims, other))
    result.push_back({shape[dim], strides[dim], stride});
  return result;
}

bool Side::contractsInOneStride() const {
  SmallVector<Group> dims;
  for (int64_t dim : contracting)
    dims.push_back({shape[dim], strides[dim], strides[dim]});
  return collapse(dims).size() == 1;
}

bool Side::fits(ArrayRef<Group> groups) const {
  if (!contractsInOneStride() ||
      (groups.size() > 1 && groups.back().size < kMinRows))
    return false;
  // The library needs a stride of one in each matrix.
  bool unit = !contractsNeighbours &&
              (groups.back().size == 1 || groups.back().first == 1);
  for (int64_t dim : contracting)
    unit |= strides[dim] == 1;
  return unit;
}
