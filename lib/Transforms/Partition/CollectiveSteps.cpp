//===- CollectiveSteps.cpp - Several collectives for one ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveSteps.h"

#include <map>

using namespace mlir;

namespace whale {

Operation *createStep(OpBuilder &builder, CollectiveOp op, const Step &step,
                      int64_t channel, Value input, Type type) {
  OperationState state(op.getLoc(), collectiveName(step.kind));
  state.addOperands(input);
  state.addTypes(type);
  state.addAttributes(op->getAttrs());
  state.attributes.set("channel", builder.getI64IntegerAttr(channel));
  state.attributes.set("from", PlacementAttr::get(op.getContext(), step.from));
  state.attributes.set("to", PlacementAttr::get(op.getContext(), step.to));
  return builder.create(state);
}

void divideCollectives(
    ArrayRef<ScheduleOp> classes, int64_t more,
    llvm::function_ref<bool(CollectiveOp)> wants,
    llvm::function_ref<void(CollectiveOp, int64_t channel)> divide) {
  int64_t free = 0;
  std::vector<CollectiveOp> found;
  for (ScheduleOp schedule : classes)
    schedule.walk([&](CollectiveOp op) {
      free = std::max(free, int64_t(op.getChannel()) + 1);
      if (wants(op))
        found.push_back(op);
    });
  std::map<int64_t, int64_t> channels;
  for (CollectiveOp op : found) {
    auto [it, isNew] = channels.try_emplace(op.getChannel(), free);
    free += isNew ? more : 0;
    divide(op, it->second);
  }
}

} // namespace whale
