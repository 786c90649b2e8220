//===- DeviceIds.h - Numbers that devices can have --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_DEVICEIDS_H
#define WHALE_CLUSTER_DEVICEIDS_H

#include "whale/Cluster/ClusterRanges.h"

namespace whale {

static_assert(kMostDevices == 32768, "the message below names it");

/// Returns why a number is that of no device in any cluster, as the end of a
/// sentence; null if it may be one. The largest integers would also be keys
/// that hash tables keep for themselves.
inline const char *findDeviceFault(int64_t device) {
  if (device < 0)
    return " is negative";
  return device < kMostDevices
             ? nullptr
             : " is in no cluster: the largest has 32768 devices";
}

} // namespace whale

#endif // WHALE_CLUSTER_DEVICEIDS_H
