//===- GradientCuts.cpp - Where backwards are cut -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Placed/GradientCuts.h"

#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Sharding/PlacementAttrs.h"

using namespace mlir;

namespace whale {

namespace {

/// Bytes of a sum whose term is there behind an operation.
struct Term {
  Operation *producer;
  int64_t bytes;
};

} // namespace

/// Cuts behind about every bucket of terms, which are in their order.
static SmallVector<Operation *> cutTerms(ArrayRef<Term> terms,
                                         int64_t bucketBytes) {
  // With more parts the last ones are little work to hide communication behind.
  constexpr int64_t mostParts = 8;
  int64_t left = 0, sum = 0;
  for (const Term &term : terms)
    left += term.bytes;
  int64_t part = std::max(bucketBytes, left / mostParts);
  SmallVector<Operation *> cuts;
  for (const Term &term : terms) {
    sum += term.bytes;
    left -= term.bytes;
    if (sum >= part && left > 0) {
      cuts.push_back(term.producer);
      sum = 0;
    }
  }
  return cuts;
}

llvm::MapVector<TaskGraphOp, SmallVector<Operation *>> findGradientCuts(
    MicroBatchesOp loop, Operation *yield,
    llvm::function_ref<int64_t(TaskGraphOp, OpResult)> bytesOfTerm) {
  llvm::MapVector<TaskGraphOp, SmallVector<Term>> terms;
  for (unsigned i = 0; i < loop.getNumReduced(); ++i) {
    Value term = yield->getOperand(i);
    auto graph = term.getDefiningOp<TaskGraphOp>();
    Operation *producer = lookThroughTaskGraph(term).getDefiningOp();
    if (!graph || !producer || producer->getParentOp() != graph)
      continue;
    if (int64_t bytes = bytesOfTerm(graph, cast<OpResult>(loop.getResult(i))))
      terms[graph].push_back({producer, bytes});
  }
  int64_t bucketBytes =
      Config(loop->getParentOfType<ModuleOp>()).getBucketBytes();
  llvm::MapVector<TaskGraphOp, SmallVector<Operation *>> cuts;
  for (auto &[graph, list] : terms) {
    llvm::sort(list, [](const Term &a, const Term &b) {
      return a.producer->isBeforeInBlock(b.producer);
    });
    cuts[graph] = cutTerms(list, bucketBytes);
  }
  return cuts;
}

} // namespace whale
