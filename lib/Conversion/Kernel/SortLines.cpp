//===- SortLines.cpp - The lines that a sort sorts ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a sort. Out: operations that read, compare and move the elements of one
// of its lines, by their positions. Cost: each linear in the operands, besides
// the comparator, which is copied for each comparison.
//
//===----------------------------------------------------------------------===//

#include "Kernel/SortLines.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

/// The last dimension is -1, which the attribute has without a sign.
int64_t whale::getSortedDim(stablehlo::SortOp op) {
  auto dim = static_cast<int64_t>(op.getDimension());
  int64_t rank = cast<RankedTensorType>(op.getInputs()[0].getType()).getRank();
  return dim < 0 ? dim + rank : dim;
}

SortLines::SortLines(PatternRewriter &rewriter, stablehlo::SortOp op,
                     bool computesPositions)
    : rewriter(rewriter), op(op), loc(op.getLoc()),
      type(cast<RankedTensorType>(op.getInputs()[0].getType())),
      dim(getSortedDim(op)), size(type.getDimSize(dim)),
      rows(type.getNumElements() / size) {
  for (Value input : op.getInputs()) {
    RankedTensorType storage =
        getStorageType(cast<RankedTensorType>(input.getType()));
    types.push_back(storage);
    auto iota = input.getDefiningOp<stablehlo::IotaOp>();
    if (computesPositions && iota &&
        iota.getIotaDimension() == static_cast<uint64_t>(dim) &&
        isa<IntegerType>(storage.getElementType())) {
      buffers.push_back(std::nullopt);
      continue;
    }
    buffers.push_back(inputs.size());
    inputs.push_back(stored(rewriter, input));
  }
}

Value SortLines::read(KernelBuilder &k, unsigned number, Value row,
                      Value position) {
  Type type = op.getInputs()[number].getType();
  if (buffers[number])
    return k.loadScalar(*buffers[number], locate(k, row, position), type);
  return arith::IndexCastOp::create(
      k.b, loc, getElementTypeOrSelf(types[number]), position);
}

SmallVector<Value> SortLines::locate(KernelBuilder &k, Value row,
                                     Value position) const {
  SmallVector<int64_t> others(type.getShape());
  others.erase(others.begin() + dim);
  SmallVector<Value> indices = k.unflatten(row, others);
  indices.insert(indices.begin() + dim, position);
  return indices;
}

Value SortLines::isBefore(KernelBuilder &k, Value row, Value right,
                          Value left) {
  SmallVector<Value> arguments;
  for (unsigned number = 0; number < types.size(); ++number) {
    arguments.push_back(read(k, number, row, right));
    arguments.push_back(read(k, number, row, left));
  }
  auto before = emitScalarBlock(k.b, op.getComparator().front(), arguments);
  good &= succeeded(before);
  if (good)
    return (*before)[0];
  return arith::ConstantOp::create(k.b, loc, k.b.getBoolAttr(false));
}

Value SortLines::takesRight(KernelBuilder &k, Value row, Value hasRight,
                            Value hasLeft, function_ref<Value()> getRight,
                            function_ref<Value()> getLeft) {
  Value both = arith::AndIOp::create(k.b, loc, hasLeft, hasRight);
  auto branch = scf::IfOp::create(k.b, loc, k.b.getI1Type(), both,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  Value right = getRight(), left = getLeft();
  scf::YieldOp::create(k.b, loc, isBefore(k, row, right, left));
  k.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(k.b, loc, hasRight);
  return branch.getResult(0);
}

void SortLines::move(KernelBuilder &k, Value row, Value position, Value place,
                     unsigned firstResult) {
  SmallVector<Value> to = locate(k, row, place);
  for (unsigned number = 0; number < types.size(); ++number)
    k.store(read(k, number, row, position), firstResult + number, to);
}
