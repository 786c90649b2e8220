//===- Chunks.h - Checksums of what a checkpoint holds ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: some 10 GB/s a thread, several times what a disk reads.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CHECKPOINT_CHUNKS_H
#define WHALE_RUNTIME_CHECKPOINT_CHUNKS_H

#include <cstdint>
#include <string>
#include <utility>

namespace whale::runtime {

/// The bytes of a chunk of a piece that has so many.
std::pair<int64_t, int64_t> chunkOf(int64_t pieceBytes, int64_t chunk);

/// As a manifest has it.
std::string checksumOf(const void *data, int64_t bytes);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CHECKPOINT_CHUNKS_H
