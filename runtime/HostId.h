//===- HostId.h - Which host a process is on --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_HOSTID_H
#define WHALE_RUNTIME_HOSTID_H

#include <string>

namespace whale::runtime {

/// A kernel of Linux that was started once: whose cores this process uses.
std::string machineId();
/// What has network interfaces of its own: a machine, or a container. Two of
/// them may have one name.
std::string hostId();
/// Processes of a host that can share memory have the same one.
std::string memoryId();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_HOSTID_H
