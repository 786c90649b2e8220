//===- ShardFile.h - What a process writes of a state -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shares of a process are copied into memory of the host at once, and
// written to a file of safetensors later: steps go on meanwhile.
//
// Cost: one copy of the shares; writing reads them twice, for the file and for
// checksums.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H
#define WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H

#include "checkpoint/Shares.h"
#include "whale/Runtime/Checkpoint.h"

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
    std::string name;
    DType dtype;
    Shape shape;
    const uint8_t *data;
    int64_t bytes;
  };
  /// By share.
  std::vector<Tensor> tensors;
  std::shared_ptr<Buffer> memory;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CHECKPOINT_SHARDFILE_H
