//===- SharedMemory.h - What processes of a host read -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_SHAREDMEMORY_H
#define WHALE_RUNTIME_TRANSPORT_SHAREDMEMORY_H

#include "transport/message/Mover.h"

#include <memory>

namespace whale::runtime {

/// By process: whether this one, `self`, has found something of it, as `found`
/// says, and it of this one. Collective.
std::vector<bool> foundByBoth(const Exchange &exchange, size_t self,
                              const std::vector<bool> &found);

/// Memory of each process that others of its host read.
class SharedMemory {
public:
  /// As many bytes of each process. Collective. Where there is no memory, or
  /// the system does not let processes see that of each other, they share none.
  SharedMemory(size_t bytes, const Exchange &exchange);

  /// That of this process; null if no other reads it.
  char *own() const { return mine.get(); }
  /// That of another process, which reads this one's, too; else null.
  const char *of(int64_t process) const { return others[process].get(); }

private:
  std::shared_ptr<char> mine;
  /// By process.
  std::vector<std::shared_ptr<char>> others;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_SHAREDMEMORY_H
