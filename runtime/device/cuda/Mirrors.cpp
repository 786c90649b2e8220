//===- Mirrors.cpp - Arrays of the host on a GPU --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the tables of host memory that the operations of a run name. Out:
// addresses on the GPU, and copies there before a run and back after it. A
// recorded run can be used again only with the addresses that it was recorded
// with. So a table remembers its last sets of addresses, and new arrays get
// those of one set where that memory is free. Cost: for each run, the buffers
// of a table times the sets that it remembers.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Mirrors.h"

#include <algorithm>
#include <ranges>

namespace whale::runtime::cuda {

/// Finds the memory of a mirror that has none, if its array is here.
void Mirrors::find(const Buffer &buffer, Mirror &mirror) {
  auto known =
      std::dynamic_pointer_cast<ArrayCopy>(std::atomic_load(&buffer.backing));
  mirror.isHere = known && known->isOf(*gpu);
  if (mirror.isHere)
    mirror.copy = std::move(known);
  else
    buffer.host(); // perhaps from another GPU
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
  std::vector<Mirror *> named;
  for (const auto &[place, region] : regions) {
    const Buffer &buffer = *region.allocation;
    auto [it, isNew] = mirrors.try_emplace(
        &buffer, Mirror{buffer.data.get(), buffer.bytes, region.isOfArray});
    Mirror &mirror = it->second;
    if (isNew) {
      if (region.isOfArray)
        find(buffer, mirror);
      isCurrent = false;
    }
    if (mirror.uses++ == 0 && !mirror.isCurrent)
      mirror.isRead = mirror.isWritten = false;
    if (region.isRead && !mirror.isRead && mirror.isCurrent) {
      mirror.isCurrent = false;
      isCurrent = false;
    }
    mirror.isRead |= region.isRead;
    mirror.isWritten |= region.isWritten;
    table.buffers.push_back(&buffer);
    named.push_back(&mirror);
  }
  try {
    provide(table, named);
  } catch (...) {
    for (const Buffer *buffer : table.buffers)
      --mirrors.at(buffer).uses;
    table.buffers.clear();
    std::erase_if(mirrors,
                  [](const auto &mirror) { return !mirror.second.copy; });
    throw;
  }

  std::vector<void *> addresses;
  for (size_t i = 0; i < regions.size(); ++i)
    addresses.push_back(static_cast<char *>(named[i]->memory()) +
                        regions[i].second.offset);
  return addresses;
}

/// Gives mirrors memory so that all lie as they did in an earlier run, where
/// that can be: it may have been recorded.
void Mirrors::provide(Table &table, const std::vector<Mirror *> &named) {
  constexpr size_t mostStaged = 8;
  constexpr int64_t mostStagedBytes = 64 << 10;

  // What a caller keeps of each step lies elsewhere in each.
  std::unordered_map<Mirror *, size_t> staged;
  for (size_t i = 0; i < named.size(); ++i)
    if (Mirror &mirror = *named[i]; !mirror.copy && mirror.isOfArray &&
                                    mirror.isWritten && !mirror.isRead &&
                                    mirror.bytes <= mostStagedBytes)
      staged.try_emplace(&mirror, i);
  if (staged.size() <= mostStaged)
    for (auto [mirror, place] : staged) {
      std::shared_ptr<ArrayCopy> &own = table.staged[place];
      if (!own || own->bytes != mirror->bytes)
        own = memory->take(mirror->bytes, nullptr);
      mirror->staged = own;
    }

  // Where what is staged lies matters to the run that takes it, not to this
  // one.
  auto &layouts = table.layouts;
  auto fits = [&](const std::vector<void *> &layout) {
    if (layout.size() != named.size())
      return false;
    for (size_t i = 0; i < named.size(); ++i) {
      const Mirror &mirror = *named[i];
      if (mirror.copy
              ? mirror.copy->memory != layout[i]
              : !mirror.staged && !memory->isFree(mirror.bytes, layout[i]))
        return false;
    }
    return true;
  };
  auto take = [&](size_t place, const std::vector<void *> &layout) {
    Mirror &mirror = *named[place];
    if (!mirror.copy && place < layout.size() &&
        memory->isFree(mirror.bytes, layout[place]))
      mirror.copy = memory->take(mirror.bytes, layout[place]);
  };
  auto known = std::ranges::find_if(layouts, fits);
  if (known == layouts.end())
    known = layouts.insert(known, std::vector<void *>());
  for (size_t i = 0; i < named.size(); ++i)
    if (!named[i]->staged)
      take(i, *known);
  // Else where it has lain the longest ago.
  for (size_t i = 0; i < named.size(); ++i)
    for (const std::vector<void *> &layout : std::views::reverse(layouts))
      take(i, layout);
  known->clear();
  for (Mirror *mirror : named) {
    if (!mirror->copy)
      mirror->copy = memory->take(mirror->bytes, nullptr);
    known->push_back(mirror->copy->memory);
  }
  std::rotate(layouts.begin(), known, known + 1);
  if (layouts.size() > mostLayouts)
    layouts.pop_back();
}

void Mirrors::giveBack() {
  for (auto &[key, table] : tables)
    table.staged.clear();
  memory->freeUnused();
}

void Mirrors::deliver(Stream stream) {
  for (auto &[buffer, mirror] : mirrors)
    if (mirror.staged && mirror.isCurrent)
      gpu->copy(mirror.copy->memory, mirror.staged->memory, mirror.bytes,
                stream);
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

bool Mirrors::areOfArrays() const {
  return std::ranges::all_of(
      mirrors, [](const auto &mirror) { return mirror.second.isOfArray; });
}

std::vector<std::shared_ptr<ArrayCopy>> Mirrors::bringBack(Stream stream) {
  std::vector<std::shared_ptr<ArrayCopy>> arrays;
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
    std::atomic_store(&buffer->backing, std::shared_ptr<Backing>(mirror.copy));
    arrays.push_back(mirror.copy);
  }
  dropArrays();
  dropUnused();
  return arrays;
}

} // namespace whale::runtime::cuda
