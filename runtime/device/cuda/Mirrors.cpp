//===- Mirrors.cpp - Arrays of the host on a GPU --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Mirrors.h"

namespace whale::runtime::cuda {

Mirrors::Mirror Mirrors::mirrorOf(const Region &region, void *wanted) {
  const Buffer &buffer = *region.allocation;
  Mirror mirror{buffer.data.get(), buffer.bytes, nullptr, region.isOfArray,
                false};
  if (region.isOfArray) {
    auto known = std::dynamic_pointer_cast<ArrayCopy>(
        std::atomic_load(&buffer.onDevice));
    mirror.isHere = known && known->isOf(*gpu);
    if (mirror.isHere)
      mirror.copy = std::move(known);
    else
      buffer.host(); // perhaps from another GPU
  }
  if (!mirror.copy)
    mirror.copy = memory->take(buffer.bytes, wanted);
  return mirror;
}

void Mirrors::dropUnused() {
  std::erase_if(mirrors,
                [](const auto &mirror) { return mirror.second.uses == 0; });
}

/// Arrays may go before their tables are bound again.
void Mirrors::dropArrays() {
  auto isOfArray = [&](const Buffer *buffer) {
    return mirrors.at(buffer).isOfArray;
  };
  for (auto &[key, table] : tables)
    std::erase_if(table.buffers, isOfArray);
  std::erase_if(mirrors,
                [](const auto &mirror) { return mirror.second.isOfArray; });
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
        mirrors.erase(it);
      continue;
    }
    ++it->second.uses;
  }
  for (const Buffer *buffer : table.buffers)
    if (auto it = mirrors.find(buffer);
        it != mirrors.end() && it->second.uses == 0 && !it->second.isCurrent)
      mirrors.erase(it);
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
      it = mirrors.emplace(&buffer, mirrorOf(region, address)).first;
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
    address = mirror.copy->memory;
    addresses.push_back(static_cast<char *>(address) + region.offset);
  }
  return addresses;
}

void Mirrors::reset() {
  dropArrays();
  for (auto &[buffer, mirror] : mirrors)
    mirror.isCurrent = mirror.isHere = false;
  dropUnused();
  isCurrent = mirrors.empty();
}

void Mirrors::bringThere(Stream stream) {
  for (auto &[buffer, mirror] : mirrors) {
    if (mirror.isCurrent)
      continue;
    if (mirror.isRead && !mirror.isHere) {
      upload(*gpu, pool, mirror.copy->memory, mirror.host, mirror.bytes,
             stream);
      mirror.isHere = true;
    }
    mirror.isCurrent = true;
  }
  isCurrent = true;
}

void Mirrors::bringBack(Stream stream) {
  for (auto &[buffer, mirror] : mirrors) {
    if (!mirror.isCurrent)
      continue;
    if (!mirror.isOfArray) {
      if (mirror.isWritten)
        download(*gpu, pool, mirror.host, mirror.copy->memory, mirror.bytes,
                 stream);
      continue;
    }
    if (mirror.isWritten)
      mirror.copy->setNewer();
    std::atomic_store(&buffer->onDevice,
                      std::shared_ptr<DeviceCopy>(mirror.copy));
  }
  dropArrays();
  dropUnused();
}

} // namespace whale::runtime::cuda
