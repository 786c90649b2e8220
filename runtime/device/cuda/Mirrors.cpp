//===- Mirrors.cpp - Arrays of the host on a GPU --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Mirrors.h"

namespace whale::runtime::cuda {

Mirrors::~Mirrors() {
  auto release = [&](void *memory) {
    gpu->driver.memFree.function(addressOf(memory));
  };
  for (auto &[buffer, mirror] : mirrors)
    release(mirror.memory);
  for (auto &[bytes, memory] : unused)
    release(memory);
}

/// Memory of that size: at the address that is wanted if it is free.
void *Mirrors::take(int64_t bytes, void *wanted) {
  auto [begin, end] = unused.equal_range(bytes);
  if (begin == end) {
    sum += bytes;
    return reinterpret_cast<void *>(gpu->allocate(bytes));
  }
  auto found = begin;
  for (auto it = begin; it != end; ++it)
    if (it->second == wanted)
      found = it;
  void *memory = found->second;
  unused.erase(found);
  return memory;
}

void Mirrors::drop(Known::iterator mirror) {
  unused.emplace(mirror->second.bytes, mirror->second.memory);
  mirrors.erase(mirror);
}

void Mirrors::dropUnused() {
  for (auto it = mirrors.begin(); it != mirrors.end();) {
    auto mirror = it++;
    if (mirror->second.uses == 0)
      drop(mirror);
  }
}

std::vector<void *>
Mirrors::bind(const void *key,
              std::span<const std::pair<size_t, Region>> regions) {
  Table &table = tables[key];
  for (const Buffer *buffer : table.buffers)
    --mirrors.at(buffer).uses;
  // What is bound again stays; what was used in this run has to be brought
  // back.
  for (const auto &[place, region] : regions) {
    auto it = mirrors.find(region.allocation);
    if (it == mirrors.end())
      continue;
    const Buffer &buffer = *region.allocation;
    // Another array whose handle is where one was that is gone.
    if (it->second.host != buffer.data.get() ||
        it->second.bytes != buffer.bytes) {
      if (it->second.uses == 0)
        drop(it);
      continue;
    }
    ++it->second.uses;
  }
  for (const Buffer *buffer : table.buffers)
    if (auto it = mirrors.find(buffer);
        it != mirrors.end() && it->second.uses == 0 && !it->second.isCurrent)
      drop(it);
  for (const auto &[place, region] : regions)
    if (auto it = mirrors.find(region.allocation); it != mirrors.end())
      --it->second.uses;

  table.buffers.clear();
  std::vector<void *> addresses;
  for (const auto &[place, region] : regions) {
    const Buffer &buffer = *region.allocation;
    auto it = mirrors.find(&buffer);
    void *&address = table.addresses[place];
    if (it == mirrors.end()) {
      Mirror mirror{buffer.data.get(), buffer.bytes,
                    take(buffer.bytes, address)};
      it = mirrors.emplace(&buffer, mirror).first;
      isCurrent = false;
    }
    Mirror &mirror = it->second;
    if (mirror.uses++ == 0 && !mirror.isCurrent)
      mirror.isRead = mirror.isWritten = false;
    if (region.isRead && !mirror.isRead && mirror.isCurrent) {
      mirror.isCurrent = false;
      isCurrent = false;
    }
    mirror.isRead |= region.isRead;
    mirror.isWritten |= region.isWritten;
    table.buffers.push_back(&buffer);
    address = mirror.memory;
    addresses.push_back(static_cast<char *>(mirror.memory) + region.offset);
  }
  return addresses;
}

void Mirrors::reset() {
  for (auto &[buffer, mirror] : mirrors)
    mirror.isCurrent = false;
  dropUnused();
  isCurrent = mirrors.empty();
}

void Mirrors::bringThere(Stream stream) {
  for (auto &[buffer, mirror] : mirrors) {
    if (mirror.isCurrent)
      continue;
    if (mirror.isRead)
      upload(*gpu, pool, mirror.memory, mirror.host, mirror.bytes, stream);
    mirror.isCurrent = true;
  }
  isCurrent = true;
}

void Mirrors::bringBack(Stream stream) {
  for (auto &[buffer, mirror] : mirrors)
    if (mirror.isCurrent && mirror.isWritten)
      download(*gpu, pool, mirror.host, mirror.memory, mirror.bytes, stream);
  dropUnused();
}

} // namespace whale::runtime::cuda
