//===- Replicas.cpp - Whether replicas are equal --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Replicas.h"

#include "whale/System/Checksum.h"

namespace whale::runtime {

std::vector<std::string> checksumsOf(const Array &array) {
  const Layout &layout = array.layout();
  std::vector<std::string> checksums(layout.boxes.size());
  for (size_t rank = 0; rank < layout.boxes.size(); ++rank)
    if (layout.boxes[rank])
      if (std::shared_ptr<Buffer> shard = array.shard(rank))
        checksums[rank] =
            system::Checksum::of({static_cast<const char *>(shard->data.get()),
                                  static_cast<size_t>(shard->bytes)});
  return checksums;
}

std::optional<std::array<size_t, 2>>
findDifference(const Layout &layout,
               const std::vector<std::string> &checksums) {
  // Ranks with the first shard of each part.
  std::vector<size_t> firsts;
  for (size_t rank = 0; rank < layout.boxes.size(); ++rank) {
    if (!layout.boxes[rank] || checksums[rank].empty())
      continue;
    bool isReplica = false;
    for (size_t first : firsts) {
      if (*layout.boxes[first] != *layout.boxes[rank])
        continue;
      if (checksums[first] != checksums[rank])
        return std::array{first, rank};
      isReplica = true;
    }
    if (!isReplica)
      firsts.push_back(rank);
  }
  return std::nullopt;
}

} // namespace whale::runtime
