//===- PruneOperands.cpp - Operands that are not needed -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using linalg::GenericOp;

GenericOp whale::mergeInputs(RewriterBase &rewriter, GenericOp op) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> replacedBy;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    unsigned place = 0;
    while (place < inputs.size() &&
           (inputs[place] != input->get() || maps[place] != map))
      ++place;
    if (place == inputs.size()) {
      inputs.push_back(input->get());
      maps.push_back(map);
    }
    replacedBy.push_back(place);
  }
  if (inputs.size() == op.getInputs().size())
    return op;
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  rewriter.setInsertionPoint(op);
  auto merged =
      GenericOp::create(rewriter, op.getLoc(), op.getResultTypes(), inputs,
                        op.getOutputs(), maps, op.getIteratorTypesArray());
  Block &from = op.getRegion().front();
  merged.getRegion().takeBody(op.getRegion());
  llvm::BitVector drop(from.getNumArguments());
  SmallVector<int> first(inputs.size(), -1);
  for (auto [number, place] : llvm::enumerate(replacedBy)) {
    if (first[place] < 0) {
      first[place] = number;
      continue;
    }
    from.getArgument(number).replaceAllUsesWith(from.getArgument(first[place]));
    drop.set(number);
  }
  from.eraseArguments(drop);
  rewriter.replaceOp(op, merged.getResults());
  return merged;
}

GenericOp whale::dropUnusedResults(RewriterBase &rewriter, GenericOp op) {
  SmallVector<Value> outs;
  SmallVector<Type> types;
  SmallVector<AffineMap> maps;
  SmallVector<Value> yielded;
  Block &body = op.getRegion().front();
  llvm::BitVector drop(body.getNumArguments());
  for (OpOperand *input : op.getDpsInputOperands())
    maps.push_back(op.getMatchingIndexingMap(input));
  for (OpOperand &init : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&init);
    if (result.use_empty() && !op.payloadUsesValueFromOperand(&init)) {
      drop.set(init.getOperandNumber());
      continue;
    }
    outs.push_back(init.get());
    types.push_back(result.getType());
    maps.push_back(op.getMatchingIndexingMap(&init));
    yielded.push_back(
        body.getTerminator()->getOperand(result.getResultNumber()));
  }
  if (drop.none() || outs.empty())
    return op;
  rewriter.setInsertionPoint(op);
  auto smaller = GenericOp::create(rewriter, op.getLoc(), types, op.getInputs(),
                                   outs, maps, op.getIteratorTypesArray());
  body.getTerminator()->setOperands(yielded);
  smaller.getRegion().takeBody(op.getRegion());
  smaller.getRegion().front().eraseArguments(drop);
  unsigned next = 0;
  for (auto [number, result] : llvm::enumerate(op->getResults()))
    if (!drop.test(op.getNumDpsInputs() + number))
      result.replaceAllUsesWith(smaller->getResult(next++));
  rewriter.eraseOp(op);
  return smaller;
}
