//===- ShardFile.cpp - What a process writes of a state -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/ShardFile.h"

#include "CopyBox.h"
#include "checkpoint/Chunks.h"
#include "whale/ProgramFormat/Pieces.h"
#include "whale/Runtime/Safetensors.h"
#include "whale/System/Io.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace whale::runtime {

/// The tensor of a share: its leaf, and where it begins in that.
static std::string nameOf(const StateLeaf &leaf, const Share &share) {
  bool isWhole = share.box == Box::whole(leaf.array.layout().view);
  return isWhole ? leaf.name : leaf.name + "@" + toString(share.box.start);
}

ShardFile::ShardFile(const std::vector<StateLeaf> &leaves,
                     std::vector<Share> shares,
                     std::shared_ptr<Buffer> &memory) {
  auto bytesOf = [&](const Share &share) {
    return share.box.elements() * byteSize(leaves[share.leaf].array.dtype());
  };
  // Each begins at a multiple of the widest element.
  constexpr int64_t alignment = 16;
  auto padded = [](int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  int64_t total = 0;
  for (const Share &share : shares)
    total += padded(bytesOf(share));
  if (!memory || memory->bytes < total)
    memory = Buffer::allocate(total);
  this->memory = memory;
  auto *next = static_cast<uint8_t *>(memory->data.get());
  for (const Share &share : shares) {
    const StateLeaf &leaf = leaves[share.leaf];
    int64_t width = byteSize(leaf.array.dtype());
    const Box &held = *leaf.array.layout().boxes[share.holder];
    auto [begin, end] = format::rangeIn(held, share.box);
    std::shared_ptr<Buffer> shard = leaf.array.heldShards().at(share.holder);
    if (!shard)
      throw Error(leaf.name + ": this process does not have the part that is " +
                  "its own to save");
    copyBox(next, share.box.size, Shape(share.box.size.size()),
            shard->host(begin * width, end * width), held.size,
            format::startIn(held, share.box), share.box.size, width);
    tensors.push_back({nameOf(leaf, share), leaf.array.dtype(), share.box.size,
                       next, bytesOf(share)});
    next += padded(bytesOf(share));
  }
}

ShardFile::Written ShardFile::write(const std::filesystem::path &path) const {
  std::vector<TensorToWrite> entries;
  for (const Tensor &tensor : tensors)
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, nullptr});
  SafetensorsHeader header = makeHeader(entries);
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return header.offsets[i]; });

  system::FileWriter file(path);
  file.write(header.text);
  std::vector<std::vector<std::string>> checksums(tensors.size());
  for (size_t i : order) {
    const Tensor &tensor = tensors[i];
    for (int64_t chunk = 0, end = 0; end < tensor.bytes; ++chunk) {
      int64_t begin;
      std::tie(begin, end) = chunkOf(tensor.bytes, chunk);
      checksums[i].push_back(checksumOf(tensor.data + begin, end - begin));
      file.write(tensor.data + begin, static_cast<size_t>(end - begin));
    }
  }
  file.sync();
  file.commit();
  return {header.bytes, std::move(header.offsets), std::move(checksums)};
}

} // namespace whale::runtime
