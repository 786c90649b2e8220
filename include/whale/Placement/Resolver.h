//===- Resolver.h - From one placement to another ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only source of communication: a pure function from two placements to the
// steps between them. See docs/resolver.md.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_RESOLVER_H
#define WHALE_PLACEMENT_RESOLVER_H

#include "whale/Placement/Cells.h"

namespace whale {

/// Returns the steps that turn `from` into `to`. Both views must be views of
/// `shape` (asserted). Empty if every device already holds its part of `to`.
/// The first step starts at `from`, each next one where the previous ends, the
/// last ends at `to`. If neither is partial, each device receives exactly the
/// elements that it does not hold. Deterministic; ties go to fewer steps, then
/// to lower ids.
std::vector<Step> resolve(llvm::ArrayRef<int64_t> shape, const Placement &from,
                          const Placement &to, const Topology &topology = {});

} // namespace whale

#endif // WHALE_PLACEMENT_RESOLVER_H
