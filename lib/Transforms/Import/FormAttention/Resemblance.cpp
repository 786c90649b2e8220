//===- Resemblance.cpp - What looks like attention ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale::attention {

/// Whether each element of the result depends on one of each operand.
static bool isPointwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<hlo::SelectOp, hlo::BroadcastInDimOp, hlo::ReshapeOp,
             hlo::TransposeOp>(op);
}

/// The operands of the products that the value is computed from, element by
/// element.
static llvm::DenseSet<Value> findFactors(Value root) {
  llvm::DenseSet<Value> factors;
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op)
      continue;
    if (isa<hlo::DotGeneralOp>(op))
      for (Value operand : op->getOperands())
        factors.insert(stripTransposes({operand, numberDims(operand)}).value);
    else if (isPointwise(op))
      values.insert_range(op->getOperands());
  }
  return factors;
}

bool looksLikeAttention(hlo::ExpOp exponential) {
  llvm::DenseSet<Value> factors = findFactors(exponential.getOperand());
  llvm::SetVector<Value> values;
  values.insert(exponential.getResult());
  for (size_t i = 0; i < values.size() && !factors.empty(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isPointwise(user))
        values.insert_range(user->getResults());
      if (!isa<hlo::DotGeneralOp>(user))
        continue;
      // The gradient of the first product has its operands again.
      for (Value operand : user->getOperands())
        if (!values.contains(operand) &&
            !factors.contains(
                stripTransposes({operand, numberDims(operand)}).value))
          return true;
    }
  return false;
}

} // namespace whale::attention
