//===- Shadow.cpp - Who has used which byte -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "emulator/Shadow.h"

namespace whale::runtime {

/// Pages that are kept from kernel to kernel; 120 KiB each.
static constexpr size_t kMaxPages = 1024;

void Shadow::forget() {
  ++turn;
  if (turn == 0 || pages.size() > kMaxPages) {
    pages.clear();
    lastPage = nullptr;
    turn = 1;
  }
}

Shadow::Cell &Shadow::find(uintptr_t address) {
  uintptr_t number = address / std::tuple_size_v<Page>;
  if (!lastPage || number != lastNumber) {
    std::unique_ptr<Page> &page = pages[number];
    if (!page)
      page = std::make_unique<Page>();
    lastPage = page.get();
    lastNumber = number;
  }
  return (*lastPage)[address % std::tuple_size_v<Page>];
}

static std::string describe(int32_t block, int32_t thread, const char *does) {
  std::string text = thread < 0 ? ", which other threads"
                                : ", which thread " + std::to_string(thread);
  if (block < 0)
    return ", which other blocks " + std::string(does) + " too";
  return text + " of block " + std::to_string(block) + " " + does +
         " without a barrier between";
}

std::string Shadow::use(Cell &cell, bool writes, User user,
                        bool mustBeWritten) {
  // Whether what `other` did may come before or after.
  auto isUnordered = [&](const User &other) {
    return other.block != user.block ||
           (other.thread != user.thread && other.barriers == user.barriers);
  };
  std::string problem;
  if (cell.isWritten && isUnordered(cell.writer))
    problem = describe(cell.writer.block, cell.writer.thread, "writes");
  else if (writes && cell.isRead && isUnordered(cell.reader))
    problem = describe(cell.reader.block, cell.reader.thread, "reads");
  else if (!writes && mustBeWritten && !cell.isWritten)
    problem = ", which nobody has written";
  if (writes) {
    cell.isWritten = true;
    cell.writer = user;
    return problem;
  }
  // Reads before the last barrier are ordered with all that this block does.
  if (!cell.isRead) {
    cell.reader = user;
  } else if (cell.reader.block != user.block) {
    cell.reader.block = kMany;
  } else if (cell.reader.barriers != user.barriers) {
    cell.reader = user;
  } else if (cell.reader.thread != user.thread) {
    cell.reader.thread = kMany;
  }
  cell.isRead = true;
  return problem;
}

std::string Shadow::access(const void *address, int32_t bytes, bool writes,
                           User user, bool mustBeWritten) {
  std::string problem;
  for (int32_t byte = 0; byte < bytes; ++byte) {
    Cell &cell = find(reinterpret_cast<uintptr_t>(address) +
                      static_cast<uintptr_t>(byte));
    if (cell.turn != turn)
      cell = {.turn = turn};
    std::string found = use(cell, writes, user, mustBeWritten);
    if (problem.empty())
      problem = std::move(found);
  }
  return problem;
}

} // namespace whale::runtime
