//===- SinkCheapValues.h - Compute again instead of keep --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_SCHEDULE_OUTLINEMICROBATCHES_SINKCHEAPVALUES_H
#define WHALE_LIB_TRANSFORMS_SCHEDULE_OUTLINEMICROBATCHES_SINKCHEAPVALUES_H

#include "mlir/IR/Operation.h"

namespace whale {

/// Gives `ops`, consecutive operations that become a function of their own,
/// copies of what they use from before them where whale-fuse-kernels would
/// compute it again for them if it saw it: a mask, a mean taken to the shape of
/// what it is subtracted from. So that is not kept from forward to backward.
void sinkCheapValues(llvm::SmallVectorImpl<mlir::Operation *> &ops);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_SCHEDULE_OUTLINEMICROBATCHES_SINKCHEAPVALUES_H
