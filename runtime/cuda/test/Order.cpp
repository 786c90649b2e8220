//===- Order.cpp - Which operations come before which ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Order.h"

#include <algorithm>

namespace whale::runtime::cuda::test {

/// Makes a cell begin at the address, if one has it inside.
void Shadow::cut(Address address) {
  auto after = cells.upper_bound(address);
  if (after == cells.begin())
    return;
  auto cell = std::prev(after);
  if (cell->first == address || cell->second.end <= address)
    return;
  Cell upper = cell->second;
  cell->second.end = address;
  cells.emplace(address, std::move(upper));
}

void Shadow::forget(Address address, int64_t bytes) {
  Address end = address + static_cast<Address>(bytes);
  cut(address);
  cut(end);
  cells.erase(cells.lower_bound(address), cells.lower_bound(end));
}

std::optional<std::string> Shadow::use(const Access &access, size_t stream,
                                       const Clock &clock,
                                       const std::string &what) {
  if (access.bytes <= 0)
    return std::nullopt;
  Address begin = access.address,
          end = begin + static_cast<Address>(access.bytes);
  cut(begin);
  cut(end);
  std::optional<std::string> conflict;
  auto meet = [&](const User &user) {
    if (clock.at(user.stream) < user.time && !conflict)
      conflict = user.what;
  };
  User self = {stream, clock.at(stream), what};
  Address next = begin;
  auto fill = [&](Address to) {
    if (next < to)
      cells.emplace(next, Cell{to, std::nullopt, {}});
  };
  for (auto it = cells.lower_bound(begin); it != cells.end() && it->first < end;
       ++it) {
    fill(it->first);
    next = it->second.end;
  }
  fill(end);
  for (auto it = cells.lower_bound(begin); it != cells.end() && it->first < end;
       ++it) {
    Cell &cell = it->second;
    if (cell.writer)
      meet(*cell.writer);
    if (access.writes) {
      for (const User &reader : cell.readers)
        meet(reader);
      cell.writer = self;
      cell.readers.clear();
      continue;
    }
    auto own = std::find_if(
        cell.readers.begin(), cell.readers.end(),
        [&](const User &reader) { return reader.stream == stream; });
    if (own == cell.readers.end())
      cell.readers.push_back(self);
    else
      *own = self;
  }
  return conflict;
}

} // namespace whale::runtime::cuda::test
