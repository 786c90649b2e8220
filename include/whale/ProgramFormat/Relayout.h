//===- Relayout.h - Transfers between two layouts ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_RELAYOUT_H
#define WHALE_PROGRAMFORMAT_RELAYOUT_H

#include "whale/Cluster/Topology.h"
#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Returns the transfers that bring an array from one layout to another of the
/// same view and as many ranks, whose hosts are the nodes of `hosts`.
/// `processOf` is by rank. The table is that of the compiler's resolver for one
/// batch of messages between such placements, with processes for groups: boxes
/// are cut alike, and owners chosen alike (OwnerCost). All processes must call
/// it with the same values. Cost: the cells, times the holders of each.
Collective relayoutOf(DType dtype, const Layout &from, const Layout &to,
                      std::span<const int64_t> processOf,
                      const Topology &hosts);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_RELAYOUT_H
