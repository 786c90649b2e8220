//===- ShardFile.h - What a process writes of a state -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shares of a process are copied at once into memory of the host that is as
// a file of safetensors has them, and written later: steps go on meanwhile.
//
// Cost: one copy of the shares; writing reads them for checksums, and then, out
// of the cache, for the file, which goes past the cache of the system: neither
// the pages nor who writes them back take time from the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H
#define WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H

#include "checkpoint/Shares.h"
#include "whale/Runtime/Checkpoint.h"
#include "whale/Runtime/Safetensors.h"

namespace whale::runtime {

class ShardFile {
public:
  /// Copies the shares, in `memory` where that is as large as they are, once
  /// the steps that compute them have ended. Throws their Error.
  ShardFile(const std::vector<StateLeaf> &leaves, std::vector<Share> shares,
            std::shared_ptr<Buffer> &memory);

  /// Writes the file, on the disk when this returns. Throws Error.
  struct Written {
    int64_t bytes;
    /// By share: the first byte in the file, and the checksums of its chunks.
    std::vector<int64_t> offsets;
    std::vector<std::vector<std::string>> checksums;
  };
  Written write(const std::filesystem::path &path) const;

private:
  struct Tensor {
    int64_t offset, bytes;
  };
  /// By share.
  std::vector<Tensor> tensors;
  SafetensorsHeader header;
  /// The whole file, at a multiple of its blocks in `memory`.
  uint8_t *image = nullptr;
  std::shared_ptr<Buffer> memory;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H
