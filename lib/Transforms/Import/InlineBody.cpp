//===- InlineBody.cpp - Put a function in the place of its call -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlineBody.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

void whale::inlineBody(Operation *call, func::FuncOp callee,
                       function_ref<void(Operation *)> visit) {
  Block &body = callee.front();
  IRMapping mapping;
  mapping.map(body.getArguments(), call->getOperands());
  OpBuilder builder(call);
  for (Operation &op : body.without_terminator())
    visit(builder.clone(op, mapping));
  for (auto [result, value] :
       llvm::zip_equal(call->getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookup(value));
  call->erase();
}
