//===- Resolver.h - From one placement to another ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All communication comes from here: a pure function from two placements to the
// steps between them. See docs/resolver.md.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_RESOLVER_H
#define WHALE_PLACEMENT_RESOLVER_H

#include "whale/Placement/Cells.h"

namespace whale {

struct ResolveOptions {
  /// Whether a value may be reduced in two steps (inside nodes, then across).
  /// False for types whose sums must be rounded once.
  bool hierarchical = true;
};

/// The steps that turn `from` into `to`, for a tensor of `shape` of which both
/// views must be views (asserted). Empty if every device holds already what it
/// should. Consecutive steps meet: the first starts at `from`, the last ends at
/// `to`. Where neither is partial each device receives exactly what it lacks.
/// Deterministic; ties go to fewer steps, then to lower ids.
std::vector<Step> resolve(llvm::ArrayRef<int64_t> shape, const Placement &from,
                          const Placement &to, const Topology &topology = {},
                          const ResolveOptions &options = {});

} // namespace whale

#endif // WHALE_PLACEMENT_RESOLVER_H
