//===- Network.h - Links between ranks --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_NETWORK_H
#define WHALE_RUNTIME_NETWORK_H

#include "whale/Cluster/Cluster.h"

#include <memory>

namespace whale::runtime {

/// The cluster whose links are emulated, with a device for each rank; null for
/// a program whose transfers take no longer than they do.
using Network = std::shared_ptr<const Cluster>;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_NETWORK_H
