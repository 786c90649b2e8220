//===- ChannelNumbers.cpp - Channels of several programs ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/ChannelNumbers.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace whale::runtime {

int64_t ChannelNumbers::add(const Channels &channels, int64_t end) {
  assert((channels.empty() || channels.rbegin()->first < end) && "too large");
  std::lock_guard lock(mutex);
  programs.emplace(last, channels);
  // One without channels has a number, too, which it is dropped by.
  return std::exchange(last, last + std::max<int64_t>(end, 1));
}

void ChannelNumbers::drop(int64_t first) {
  std::lock_guard lock(mutex);
  dropped.push_back(first);
}

void ChannelNumbers::clean(const std::function<void(int64_t)> &forget) {
  std::lock_guard lock(mutex);
  for (int64_t first : std::exchange(dropped, {})) {
    auto it = programs.find(first);
    assert(it != programs.end() && "dropped once");
    for (const auto &[number, collective] : it->second)
      forget(first + number);
    programs.erase(it);
  }
}

ChannelNumbers::Programs::const_iterator
ChannelNumbers::find(int64_t number) const {
  return std::prev(programs.upper_bound(number));
}

const Collective &ChannelNumbers::at(int64_t number) const {
  std::lock_guard lock(mutex);
  auto program = find(number);
  return *program->second.at(number - program->first);
}

int64_t ChannelNumbers::givenOf(int64_t number) const {
  std::lock_guard lock(mutex);
  return number - find(number)->first;
}

/// One more than the largest number of all processes' channels.
static int64_t endOf(const format::Program &program) {
  int64_t read =
      program.channels.empty() ? 0 : program.channels.rbegin()->first + 1;
  return std::max(read, program.unreadChannelEnd);
}

/// What devices copy from and to their hosts is no transport's.
static Channels exchangedIn(const format::Program &program) {
  Channels channels = program.channels;
  std::erase_if(channels,
                [](const auto &entry) { return entry.second->isHostCopy(); });
  return channels;
}

ProgramChannels::ProgramChannels(Transport &transport,
                                 const format::Program &program)
    : transport(transport),
      first(transport.addChannels(exchangedIn(program), endOf(program))) {}

} // namespace whale::runtime
