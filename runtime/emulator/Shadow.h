//===- Shadow.h - Who has used which byte -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EMULATOR_SHADOW_H
#define WHALE_RUNTIME_EMULATOR_SHADOW_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace whale::runtime {

/// Remembers which threads have read and written each byte, and finds those
/// that do so in no order: threads of two blocks, or of one without a barrier
/// between them. Time and memory: some 24 bytes and a few nanoseconds for each
/// byte that is used.
class Shadow {
public:
  /// Who accesses, and after how many barriers of the block.
  struct User {
    int32_t block, thread;
    uint32_t barriers;
  };

  /// Begins anew: nothing has been used.
  void forget();

  /// Notes an access. Returns what is wrong with it, as the end of a sentence,
  /// or nothing; with `mustBeWritten`, reading what nobody has written is
  /// wrong.
  std::string access(const void *address, int32_t bytes, bool writes, User user,
                     bool mustBeWritten);

private:
  /// Several threads, or blocks.
  static constexpr int32_t kMany = -1;
  struct Cell {
    /// The `forget` that it is of; else it is empty.
    uint32_t turn = 0;
    bool isWritten = false, isRead = false;
    User writer = {}, reader = {};
  };
  using Page = std::array<Cell, 4096>;

  Cell &find(uintptr_t address);
  static std::string use(Cell &cell, bool writes, User user,
                         bool mustBeWritten);

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  uintptr_t lastNumber = 0;
  Page *lastPage = nullptr;
  uint32_t turn = 0;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EMULATOR_SHADOW_H
