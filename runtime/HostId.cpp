//===- HostId.cpp - Which host a process is on ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostId.h"

#include <fstream>
#include <unistd.h>

namespace whale::runtime {

/// "net:[4026531840]".
static std::string namespaceOf(const std::string &kind) {
  char text[64] = {};
  [[maybe_unused]] ssize_t size =
      readlink(("/proc/self/ns/" + kind).c_str(), text, sizeof(text) - 1);
  return text;
}

std::string machineId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string hostId() { return machineId() + " " + namespaceOf("net"); }

std::string memoryId() {
  return hostId() + " " + namespaceOf("ipc") + " " + namespaceOf("pid") + " " +
         namespaceOf("mnt") + " " + namespaceOf("user") + " " +
         std::to_string(geteuid());
}

} // namespace whale::runtime
