//===- JoinTransfers.h - Collectives before they are started --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_SCHEDULE_JOINTRANSFERS_H
#define WHALE_LIB_TRANSFORMS_SCHEDULE_JOINTRANSFERS_H

#include "mlir/IR/Block.h"

namespace whale {

/// Undoes what an earlier order of the transfers has decided: the block's
/// starts and waits are whole collectives again, and what only prepares or
/// takes apart what they transfer (reshapes, packs, unpacks) is where its
/// operands are there, or where it is needed first.
void joinTransfers(mlir::Block *block);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_SCHEDULE_JOINTRANSFERS_H
