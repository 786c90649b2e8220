//===- Replicas.h - Whether replicas are equal ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_REPLICAS_H
#define WHALE_RUNTIME_REPLICAS_H

#include "whale/Runtime/Array.h"

#include <array>
#include <optional>

namespace whale::runtime {

/// By rank, the checksum of its shard; empty for ranks of other processes and
/// for those without a shard.
std::vector<std::string> checksumsOf(const Array &array);

/// The first two ranks that have the same part of an array but not the same
/// checksum. An empty checksum counts for nothing.
std::optional<std::array<size_t, 2>>
findDifference(const Layout &layout, const std::vector<std::string> &checksums);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_REPLICAS_H
