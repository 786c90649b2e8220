//===- MomentOrder.cpp - In which order a rank computes micro-batches -----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MomentOrder.h"

using namespace mlir;

namespace whale {

SmallVector<MomentItem> orderMoments(MicroBatchesOp loop, DeviceId device) {
  SmallVector<MomentItem> items;
  for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
    for (Operation &op : loop.getBody(moment).without_terminator())
      items.push_back({&op, moment});
  return items;
}

} // namespace whale
