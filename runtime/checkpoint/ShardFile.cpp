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
#include "whale/System/Io.h"

#include <algorithm>
#include <memory>
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
  std::vector<TensorToWrite> entries;
  for (const Share &share : shares) {
    const StateLeaf &leaf = leaves[share.leaf];
    entries.push_back(
        {nameOf(leaf, share), leaf.array.dtype(), share.box.size, nullptr});
  }
  header = makeHeader(entries);
  constexpr auto block = static_cast<int64_t>(system::FileWriter::blockBytes);
  if (!memory || memory->bytes < header.bytes + block)
    memory = Buffer::allocate(header.bytes + block);
  this->memory = memory;
  void *begin = memory->data.get();
  auto room = static_cast<size_t>(memory->bytes);
  image = static_cast<uint8_t *>(
      std::align(system::FileWriter::blockBytes, header.bytes, begin, room));
  std::ranges::copy(header.text, image);
  for (size_t i = 0; i < shares.size(); ++i) {
    const Share &share = shares[i];
    const StateLeaf &leaf = leaves[share.leaf];
    int64_t width = byteSize(leaf.array.dtype());
    const Box &held = *leaf.array.layout().boxes[share.holder];
    auto [begin, end] = format::rangeIn(held, share.box);
    std::shared_ptr<Buffer> shard = leaf.array.heldShards().at(share.holder);
    if (!shard)
      throw Error(leaf.name + ": this process does not have the part that is " +
                  "its own to save");
    copyBox(image + header.offsets[i], share.box.size,
            Shape(share.box.size.size()),
            shard->host(begin * width, end * width), held.size,
            format::startIn(held, share.box), share.box.size, width);
    tensors.push_back({header.offsets[i], share.box.elements() * width});
  }
}

ShardFile::Written ShardFile::write(const std::filesystem::path &path) const {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return header.offsets[i]; });

  system::FileWriter file(path);
  int64_t written = 0;
  // What is in the cache is written.
  auto writeUpTo = [&](int64_t end) {
    file.writeDirectly(image + written, static_cast<size_t>(end - written));
    written = end;
  };
  constexpr auto block = static_cast<int64_t>(system::FileWriter::blockBytes);
  constexpr int64_t leastBytes = 4 << 20;
  std::vector<std::vector<std::string>> checksums(tensors.size());
  for (size_t i : order) {
    const Tensor &tensor = tensors[i];
    const uint8_t *data = image + tensor.offset;
    for (int64_t chunk = 0, end = 0; end < tensor.bytes; ++chunk) {
      int64_t begin;
      std::tie(begin, end) = chunkOf(tensor.bytes, chunk);
      checksums[i].push_back(checksumOf(data + begin, end - begin));
      int64_t done = (tensor.offset + end) / block * block;
      if (done - written >= leastBytes)
        writeUpTo(done);
    }
  }
  writeUpTo(header.bytes);
  file.sync();
  file.commit();
  return {header.bytes, header.offsets, std::move(checksums)};
}

} // namespace whale::runtime
