//===- RowSizes.cpp - What rows take --------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseRows.h"
#include "Kernel/KernelBuilder.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

int64_t whale::countRows(ArrayRef<int64_t> rows) {
  int64_t count = 1;
  for (int64_t size : rows)
    count *= size;
  return count;
}

bool whale::isLocal(Value result, ArrayRef<GenericOp> members) {
  Block *block = result.getParentBlock();
  return llvm::all_of(result.getUsers(), [&](Operation *user) {
    auto reader =
        dyn_cast_or_null<GenericOp>(block->findAncestorOpInBlock(*user));
    return reader && llvm::is_contained(members, reader);
  });
}

int64_t whale::countBytes(Type tensor) {
  MemRefType type = getBufferType(tensor);
  return type.getNumElements() * getStoredBytes(type);
}

int64_t whale::countRowBytes(ArrayRef<GenericOp> members,
                             ArrayRef<int64_t> rows) {
  llvm::DenseMap<Value, int64_t> bytes;
  for (GenericOp op : members) {
    SmallVector<unsigned> dims = *findRowDims(op, rows);
    auto add = [&](Value tensor, AffineMap map) {
      int64_t seen = 1;
      for (auto [dim, size] : llvm::zip_equal(dims, rows))
        if (map.isFunctionOfDim(dim))
          seen *= size;
      int64_t &most = bytes[tensor];
      most = std::max(most, countBytes(tensor.getType()) / seen);
    };
    for (OpOperand *input : op.getDpsInputOperands())
      add(input->get(), op.getMatchingIndexingMap(input));
    for (OpResult result : op->getResults())
      add(result, op.getIndexingMapMatchingResult(result));
  }
  int64_t sum = 0;
  for (auto [value, count] : bytes)
    sum += count;
  return sum;
}

bool whale::isLocalLine(Value tensor, ArrayRef<GenericOp> members,
                        ArrayRef<int64_t> rows) {
  auto maker = tensor.getDefiningOp<GenericOp>();
  return maker && llvm::is_contained(members, maker) &&
         cast<RankedTensorType>(tensor.getType()).getNumElements() >
             countRows(rows) &&
         isLocal(tensor, members);
}

int64_t whale::countLocalLineBytes(ArrayRef<GenericOp> members,
                                   ArrayRef<int64_t> rows) {
  int64_t bytes = 0;
  for (GenericOp op : members)
    for (OpResult result : op->getResults())
      if (isLocalLine(result, members, rows))
        bytes += countBytes(result.getType()) / countRows(rows);
  return bytes;
}
